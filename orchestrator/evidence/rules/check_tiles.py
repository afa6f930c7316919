"""Check 11: the static files of the log, made anew from its leaves and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256

from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_listing import compare_listing
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.ledger.rules.merkle import CompactRange
from orchestrator.ledger.rules.tiles import (
    FULL_WIDTH,
    TILE_HEIGHT,
    entry_bundles_of,
    render_entry_bundle,
    render_tile,
    tiles_of,
)


def log_tiles(
    leaf_hashes: Sequence[bytes], leaf_at: Callable[[int], bytes]
) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of every static file of a log: tiles, then entry bundles."""
    levels = _levels(leaf_hashes)

    def node_at(height: int, index: int) -> bytes:
        return levels[height // TILE_HEIGHT][index]

    size = len(leaf_hashes)
    for tile in tiles_of(size):
        yield tile.path, render_tile(tile, node_at)
    for bundle in entry_bundles_of(size):
        yield bundle.path, render_entry_bundle(map(leaf_at, bundle.sequences))


def _levels(leaf_hashes: Sequence[bytes]) -> list[Sequence[bytes]]:
    levels = [leaf_hashes]
    while len(levels[-1]) >= FULL_WIDTH:
        below = levels[-1]
        full = range(0, len(below) - FULL_WIDTH + 1, FULL_WIDTH)
        levels.append([_root(below[begin : begin + FULL_WIDTH]) for begin in full])
    return levels


def _root(hashes: Sequence[bytes]) -> bytes:
    tree = CompactRange()
    for digest in hashes:
        tree, _ = tree.append(digest)
    return tree.root()


def check_tiles(
    findings: Findings,
    tiles: Folder,
    *,
    leaf_hashes: Sequence[bytes],
    leaf_at: Callable[[int], bytes],
) -> None:
    """Compare the files below `log/` that are named tile/… with those of the verified log."""
    found = {name: digest for name, digest in tiles.digests.items() if name.startswith("tile/")}
    if not found:
        findings.note(Check.TILES, "the log is here as entries alone; export with --log for tiles")
        return
    wanted = {path: sha256(data).hexdigest() for path, data in log_tiles(leaf_hashes, leaf_at)}
    compare_listing(findings, Check.TILES, place=tiles.place, listed=wanted, found=found)
