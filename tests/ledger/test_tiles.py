"""The static layout of the log: paths, widths and bytes of C2SP tlog-tiles."""

from __future__ import annotations

import pytest

from manifests.errors import MalformedDocument
from orchestrator.ledger.rules.merkle import CompactRange, leaf_hash
from orchestrator.ledger.rules.tiles import (
    EntryBundle,
    Tile,
    entry_bundles_of,
    parse_entry_bundle,
    parse_tile,
    render_entry_bundle,
    render_tile,
    tiles_of,
)


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (Tile(level=0, index=0, width=256), "tile/0/000"),
        (Tile(level=1, index=7, width=1), "tile/1/007.p/1"),
        (Tile(level=0, index=1_234_067, width=256), "tile/0/x001/x234/067"),
        (Tile(level=2, index=1_000, width=255), "tile/2/x001/000.p/255"),
    ],
)
def test_a_tiles_path_is_the_formats_own(tile: Tile, path: str) -> None:
    assert tile.path == path
    bundle = EntryBundle(index=tile.index, width=tile.width)
    assert bundle.path == path.replace(f"tile/{tile.level}/", "tile/entries/")


@pytest.mark.parametrize(
    ("size", "paths"),
    [
        (0, []),
        (1, ["tile/0/000.p/1"]),
        (256, ["tile/0/000", "tile/1/000.p/1"]),
        (
            70_000,
            [f"tile/0/{index:03d}" for index in range(273)]
            + ["tile/0/273.p/112", "tile/1/000", "tile/1/001.p/17", "tile/2/000.p/1"],
        ),
    ],
)
def test_a_tree_has_exactly_the_tiles_that_its_size_asks_for(size: int, paths: list[str]) -> None:
    assert [tile.path for tile in tiles_of(size)] == paths


def test_the_bundles_hold_every_leaf_once_and_in_order() -> None:
    bundles = list(entry_bundles_of(600))
    assert [bundle.path for bundle in bundles] == [
        "tile/entries/000",
        "tile/entries/001",
        "tile/entries/002.p/88",
    ]
    assert [place for bundle in bundles for place in bundle.sequences] == list(range(600))


def test_the_tiles_alone_give_back_the_root() -> None:
    leaves = [str(number).encode() for number in range(700)]
    tree, nodes = CompactRange(), {}
    for leaf in leaves:
        tree, grown = tree.append(leaf_hash(leaf))
        nodes.update({(node.level, node.index): node.digest for node in grown})
    files = {
        tile: render_tile(tile, lambda level, index: nodes[level, index])
        for tile in tiles_of(len(leaves))
    }
    rebuilt = CompactRange()
    for tile, data in files.items():
        if tile.level == 0:
            for digest in parse_tile(data, tile=tile):
                rebuilt, _ = rebuilt.append(digest)
    assert rebuilt.root() == tree.root()
    (upper,) = (parse_tile(data, tile=tile) for tile, data in files.items() if tile.level == 1)
    assert upper == (nodes[8, 0], nodes[8, 1])


def test_a_bundle_gives_back_its_leaves() -> None:
    leaves = [b"", b"a", b"x" * 65_535]
    bundle = EntryBundle(index=0, width=3)
    data = render_entry_bundle(leaves)
    assert data[:5] == b"\x00\x00\x00\x01a"
    assert parse_entry_bundle(data, bundle=bundle) == leaves
    with pytest.raises(ValueError, match="does not fit"):
        render_entry_bundle([b"x" * 65_536])


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b"\x00", "leaf 0 is cut off"),
        (b"\x00\x02a", "leaf 0 is cut off"),
        (b"\x00\x01a", "1 leaves"),
    ],
)
def test_a_bundle_out_of_form_is_refused_with_its_path(data: bytes, fact: str) -> None:
    with pytest.raises(MalformedDocument, match=fact) as raised:
        parse_entry_bundle(data, bundle=EntryBundle(index=0, width=2))
    assert str(raised.value).startswith("tile/entries/000.p/2")


def test_a_tile_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(MalformedDocument, match="expected 2 hashes"):
        parse_tile(b"x" * 63, tile=Tile(level=0, index=0, width=2))
