"""The tree of RFC 6962, section 2.1: hashes, frontier, proofs and their verification.

A node is named by `(level, index)`: the complete subtree over leaves
`[index << level, (index + 1) << level)`. Level 0 is the leaves' hashes. Proofs are made from such
nodes alone, so that a store of them gives every proof in O(log n) look-ups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from manifests.errors import ClaimDoesNotHold

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()

NodeAt = Callable[[int, int], bytes]
"""Returns the hash of the complete subtree at `(level, index)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The hash of a complete subtree."""

    level: int
    index: int
    digest: bytes


def leaf_hash(data: bytes) -> bytes:
    """Return SHA-256(00 ‖ data)."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return SHA-256(01 ‖ left ‖ right)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True, slots=True)
class CompactRange:
    """The complete subtrees that cover leaves 0…size-1, the largest first: all an append needs."""

    size: int = 0
    hashes: tuple[bytes, ...] = ()

    def append(self, leaf: bytes) -> tuple[CompactRange, tuple[Node, ...]]:
        """Add one leaf's hash; return the new range and every node that became complete."""
        hashes, index, level = list(self.hashes), self.size, 0
        nodes = [Node(level=0, index=index, digest=leaf)]
        digest = leaf
        while index & 1:
            digest = node_hash(hashes.pop(), digest)
            index, level = index >> 1, level + 1
            nodes.append(Node(level=level, index=index, digest=digest))
        return CompactRange(self.size + 1, (*hashes, digest)), tuple(nodes)

    def root(self) -> bytes:
        """Return the tree's root; the empty tree's is SHA-256 of nothing."""
        if not self.hashes:
            return EMPTY_ROOT
        *rest, digest = self.hashes
        for left in reversed(rest):
            digest = node_hash(left, digest)
        return digest


def frontier(size: int) -> tuple[tuple[int, int], ...]:
    """Return the `(level, index)` of the subtrees in the compact range of a tree of `size`."""
    places, begin = [], 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            places.append((level, begin >> level))
            begin += 1 << level
    return tuple(places)


def range_at(size: int, node_at: NodeAt) -> CompactRange:
    """Return the compact range of the first `size` leaves."""
    return CompactRange(size, tuple(node_at(level, index) for level, index in frontier(size)))


def inclusion_proof(index: int, size: int, node_at: NodeAt) -> tuple[bytes, ...]:
    """Return PATH(index, D[size]) of RFC 6962, section 2.1.1, the leaf's sibling first.

    Raises ValueError unless 0 ≤ index < size.
    """
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} is not in a tree of {size}")
    proof: list[bytes] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            proof.append(_subtree(middle, end, node_at))
            end = middle
        else:
            proof.append(_subtree(begin, middle, node_at))
            begin = middle
    return tuple(reversed(proof))


def consistency_proof(older: int, newer: int, node_at: NodeAt) -> tuple[bytes, ...]:
    """Return PROOF(older, D[newer]) of RFC 6962, section 2.1.2.

    Empty when the sizes are equal or the older tree is empty. Raises ValueError unless
    0 ≤ older ≤ newer.
    """
    if not 0 <= older <= newer:
        raise ValueError(f"a tree of {newer} does not extend one of {older}")
    if older in (0, newer):
        return ()
    proof: list[bytes] = []
    begin, end = 0, newer
    while older != end:
        middle = begin + _split(end - begin)
        if older <= middle:
            proof.append(_subtree(middle, end, node_at))
            end = middle
        else:
            proof.append(_subtree(begin, middle, node_at))
            begin = middle
    if begin > 0:  # the verifier cannot know this subtree; otherwise it is the older root itself
        proof.append(_subtree(begin, end, node_at))
    return tuple(reversed(proof))


def verify_inclusion(
    leaf: bytes, *, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Check an audit path (RFC 9162, section 2.1.3.2).

    Raises:
        ClaimDoesNotHold: when the leaf's hash is not at `index` of the tree.

    """
    if not 0 <= index < size:
        raise ClaimDoesNotHold(f"leaf {index} cannot be in a tree of {size} leaves")
    position, last, digest = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise ClaimDoesNotHold(f"leaf {index}: the inclusion proof is too long")
        if position & 1 or position == last:
            digest = node_hash(sibling, digest)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            digest = node_hash(digest, sibling)
        position, last = position >> 1, last >> 1
    if last != 0 or digest != root:
        raise ClaimDoesNotHold(
            f"leaf {index}: the inclusion proof does not lead to the root of the {size} leaves"
        )


def verify_consistency(
    *, older: int, newer: int, older_root: bytes, newer_root: bytes, proof: Sequence[bytes]
) -> None:
    """Check that the newer tree extends the older one (RFC 9162, section 2.1.4.2).

    Raises:
        ClaimDoesNotHold: when it does not, or the proof has a wrong length.

    """
    fault = ClaimDoesNotHold(
        f"the log of {newer} statements does not extend the one of {older}: it was rewritten"
    )
    if not 0 <= older <= newer:
        raise fault
    if older in (0, newer):
        if proof or older_root != (newer_root if older else EMPTY_ROOT):
            raise fault
        return
    path = list(proof)
    if older & (older - 1) == 0:  # a power of two: the older root is itself the first node
        path.insert(0, older_root)
    if not path or _replay_consistency(older, newer, path) != (older_root, newer_root):
        raise fault


def _replay_consistency(older: int, newer: int, path: list[bytes]) -> tuple[bytes, bytes] | None:
    position, last = older - 1, newer - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return None
        if position & 1 or position == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        position, last = position >> 1, last >> 1
    return (old, new) if last == 0 else None


def _split(count: int) -> int:
    """Return the largest power of two below `count` (k of RFC 6962)."""
    return 1 << (count - 1).bit_length() - 1


def _subtree(begin: int, end: int, node_at: NodeAt) -> bytes:
    """Return MTH(D[begin:end]) where `begin` is a multiple of the largest power of two in it."""
    count = end - begin
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return node_at(level, begin >> level)
    middle = begin + _split(count)
    return node_hash(_subtree(begin, middle, node_at), _subtree(middle, end, node_at))
