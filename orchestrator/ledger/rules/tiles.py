"""The log as static files in the C2SP tlog-tiles layout: which files, where, with which bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from manifests.errors import MalformedDocument
from orchestrator.ledger.rules.merkle import HASH_BYTES, NodeAt

TILE_HEIGHT = 8
FULL_WIDTH = 1 << TILE_HEIGHT
_MAX_ENTRY_BYTES = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Up to 256 consecutive hashes of the tree at height 8 × `level`."""

    level: int
    index: int
    width: int

    @property
    def path(self) -> str:
        """Return `tile/<level>/<index>[.p/<width>]`."""
        return f"tile/{self.level}/{_index_path(self.index)}{_partial(self.width)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryBundle:
    """Up to 256 consecutive leaves, beginning with leaf 256 × `index`."""

    index: int
    width: int

    @property
    def path(self) -> str:
        """Return `tile/entries/<index>[.p/<width>]`."""
        return f"tile/entries/{_index_path(self.index)}{_partial(self.width)}"

    @property
    def sequences(self) -> range:
        """Return the positions of its leaves in the log."""
        return range(self.index * FULL_WIDTH, self.index * FULL_WIDTH + self.width)


def tiles_of(size: int) -> Iterator[Tile]:
    """Yield every tile of a tree of `size` leaves; only the last of a level can be partial."""
    level, hashes = 0, size
    while hashes > 0:
        for index, width in _widths(hashes):
            yield Tile(level=level, index=index, width=width)
        level, hashes = level + 1, hashes >> TILE_HEIGHT


def entry_bundles_of(size: int) -> Iterator[EntryBundle]:
    """Yield every entry bundle of a tree of `size` leaves."""
    for index, width in _widths(size):
        yield EntryBundle(index=index, width=width)


def render_tile(tile: Tile, node_at: NodeAt) -> bytes:
    """Return the tile's file: its hashes, one after the other."""
    height, begin = tile.level * TILE_HEIGHT, tile.index * FULL_WIDTH
    return b"".join(node_at(height, begin + offset) for offset in range(tile.width))


def parse_tile(data: bytes, *, tile: Tile) -> tuple[bytes, ...]:
    """Return a tile's hashes.

    Raises:
        MalformedDocument: when it does not hold exactly `tile.width` hashes.

    """
    if len(data) != tile.width * HASH_BYTES:
        raise MalformedDocument(
            f"{tile.path}: {len(data)} bytes, expected {tile.width} hashes of {HASH_BYTES} bytes"
        )
    return tuple(data[place : place + HASH_BYTES] for place in range(0, len(data), HASH_BYTES))


def render_entry_bundle(leaves: Iterable[bytes]) -> bytes:
    """Return the bundle's file: each leaf behind its length in two bytes, big-endian.

    Raises ValueError for a leaf of more than 65,535 bytes.
    """
    pieces = []
    for leaf in leaves:
        if len(leaf) > _MAX_ENTRY_BYTES:
            raise ValueError(f"a leaf of {len(leaf)} bytes does not fit into an entry bundle")
        pieces += [len(leaf).to_bytes(2, "big"), leaf]
    return b"".join(pieces)


def parse_entry_bundle(data: bytes, *, bundle: EntryBundle) -> Sequence[bytes]:
    """Return a bundle's leaves.

    Raises:
        MalformedDocument: when it does not hold exactly `bundle.width` leaves.

    """
    leaves: list[bytes] = []
    place = 0
    while place < len(data):
        end = place + 2 + int.from_bytes(data[place : place + 2], "big")
        if end > len(data) or place + 2 > len(data):
            raise MalformedDocument(f"{bundle.path}: leaf {len(leaves)} is cut off")
        leaves.append(data[place + 2 : end])
        place = end
    if len(leaves) != bundle.width:
        raise MalformedDocument(
            f"{bundle.path}: {len(leaves)} leaves, expected {bundle.width} by its name"
        )
    return leaves


def _widths(count: int) -> Iterator[tuple[int, int]]:
    for index in range(count // FULL_WIDTH):
        yield index, FULL_WIDTH
    if count % FULL_WIDTH:
        yield count // FULL_WIDTH, count % FULL_WIDTH


def _index_path(index: int) -> str:
    """Return the index in groups of three digits, all but the last after an x: x001/x234/067."""
    groups = [f"{index % 1000:03d}"]
    while index >= 1000:
        index //= 1000
        groups.append(f"x{index % 1000:03d}")
    return "/".join(reversed(groups))


def _partial(width: int) -> str:
    return "" if width == FULL_WIDTH else f".p/{width}"
