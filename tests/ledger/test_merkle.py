"""The tree: against the definition of RFC 6962, against pymerkle, and against forged proofs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymerkle import InmemoryTree

from manifests.errors import ClaimDoesNotHold
from orchestrator.ledger.rules.merkle import (
    EMPTY_ROOT,
    CompactRange,
    consistency_proof,
    frontier,
    inclusion_proof,
    leaf_hash,
    node_hash,
    range_at,
    verify_consistency,
    verify_inclusion,
)

# The eight leaves of the Certificate Transparency reference implementation, and its roots.
LEAVES = tuple(
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
)
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


class Tree:
    """A tree with all its complete nodes, grown by appends alone."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self.nodes: dict[tuple[int, int], bytes] = {}
        self.range = CompactRange()
        for leaf in leaves:
            self.range, nodes = self.range.append(leaf_hash(leaf))
            self.nodes.update({(node.level, node.index): node.digest for node in nodes})

    def node(self, level: int, index: int) -> bytes:
        return self.nodes[level, index]


def by_definition(leaves: Sequence[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaf_hash(leaves[0])
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return node_hash(by_definition(leaves[:k]), by_definition(leaves[k:]))


def data(count: int) -> list[bytes]:
    return [number.to_bytes(3, "big") for number in range(count)]


@pytest.mark.parametrize("size", range(1, 9))
def test_the_roots_are_those_of_certificate_transparency(size: int) -> None:
    assert Tree(LEAVES[:size]).range.root().hex() == ROOTS[size - 1]


@given(st.integers(min_value=0, max_value=300))
@settings(max_examples=40)
def test_the_root_is_the_definitions_and_pymerkles(size: int) -> None:
    leaves = data(size)
    tree = Tree(leaves)
    assert tree.range.root() == by_definition(leaves)
    assert range_at(size, tree.node) == tree.range
    foreign = InmemoryTree(algorithm="sha256")
    for leaf in leaves:
        foreign.append_entry(leaf)
    assert foreign.get_root() == tree.range.root()


def test_an_empty_tree_has_the_hash_of_nothing_and_no_frontier() -> None:
    assert CompactRange().root() == EMPTY_ROOT
    assert frontier(0) == ()


@pytest.mark.parametrize("size", [*range(1, 20), 31, 32, 33])
def test_every_leaf_of_every_tree_has_a_proof_that_verifies(size: int) -> None:
    leaves = data(size)
    tree = Tree(leaves)
    for index, leaf in enumerate(leaves):
        verify_inclusion(
            leaf_hash(leaf),
            index=index,
            size=size,
            proof=inclusion_proof(index, size, tree.node),
            root=tree.range.root(),
        )


@pytest.mark.parametrize("newer", range(18))
def test_every_older_tree_has_a_proof_that_verifies(newer: int) -> None:
    leaves = data(newer)
    tree = Tree(leaves)
    for older in range(newer + 1):
        verify_consistency(
            older=older,
            newer=newer,
            older_root=by_definition(leaves[:older]),
            newer_root=by_definition(leaves),
            proof=consistency_proof(older, newer, tree.node),
        )


def test_a_proof_within_an_older_tree_uses_nothing_newer() -> None:
    tree, leaves = Tree(data(40)), data(40)
    for size in (1, 7, 8, 23):
        verify_inclusion(
            leaf_hash(leaves[size - 1]),
            index=size - 1,
            size=size,
            proof=inclusion_proof(size - 1, size, tree.node),
            root=by_definition(leaves[:size]),
        )


def test_a_proof_needs_logarithmically_many_nodes() -> None:
    size = 60_001
    asked: list[tuple[int, int]] = []

    def node(level: int, index: int) -> bytes:
        asked.append((level, index))
        return bytes(32)

    inclusion_proof(31_415, size, node)
    consistency_proof(31_415, size, node)
    assert len(asked) <= 4 * size.bit_length()


@given(st.data())
@settings(max_examples=100)
def test_a_changed_inclusion_proof_never_verifies(draw: st.DataObject) -> None:
    size = draw.draw(st.integers(1, 40))
    index = draw.draw(st.integers(0, size - 1))
    leaves, tree = data(size), Tree(data(size))
    proof = list(inclusion_proof(index, size, tree.node))
    leaf, root = leaf_hash(leaves[index]), tree.range.root()
    change = draw.draw(st.sampled_from(["leaf", "index", "root", "node", "longer", "shorter"]))
    if change == "leaf":
        leaf = leaf_hash(b"another")
    elif change == "index":
        index = draw.draw(st.integers(-1, size).filter(lambda other: other != index))
    elif change == "root":
        root = bytes(32)
    elif change == "node" and proof:
        proof[draw.draw(st.integers(0, len(proof) - 1))] = bytes(32)
    elif change == "shorter" and proof:
        proof.pop(draw.draw(st.integers(0, len(proof) - 1)))
    else:
        proof.insert(draw.draw(st.integers(0, len(proof))), bytes(32))
    with pytest.raises(ClaimDoesNotHold):
        verify_inclusion(leaf, index=index, size=size, proof=proof, root=root)


@given(st.data())
@settings(max_examples=100)
def test_a_changed_consistency_proof_never_verifies(draw: st.DataObject) -> None:
    newer = draw.draw(st.integers(2, 40))
    older = draw.draw(st.integers(1, newer - 1))
    leaves, tree = data(newer), Tree(data(newer))
    proof = list(consistency_proof(older, newer, tree.node))
    older_root, newer_root = by_definition(leaves[:older]), tree.range.root()
    change = draw.draw(st.sampled_from(["older", "newer", "node", "longer", "shorter", "sizes"]))
    if change == "older":
        older_root = bytes(32)
    elif change == "newer":
        newer_root = bytes(32)
    elif change == "node":
        proof[draw.draw(st.integers(0, len(proof) - 1))] = bytes(32)
    elif change == "shorter":
        proof.pop()
    elif change == "longer":
        proof.append(bytes(32))
    else:
        older, newer = newer, older
    with pytest.raises(ClaimDoesNotHold, match="it was rewritten"):
        verify_consistency(
            older=older, newer=newer, older_root=older_root, newer_root=newer_root, proof=proof
        )


def test_a_forked_log_is_never_consistent() -> None:
    honest, forked = data(9), [*data(4), b"another", *data(9)[5:]]
    tree = Tree(forked)
    with pytest.raises(ClaimDoesNotHold):
        verify_consistency(
            older=6,
            newer=9,
            older_root=by_definition(honest[:6]),
            newer_root=tree.range.root(),
            proof=consistency_proof(6, 9, tree.node),
        )


@pytest.mark.parametrize(("index", "size"), [(-1, 4), (4, 4), (0, 0)])
def test_no_proof_is_made_for_a_leaf_outside_the_tree(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="not in a tree"):
        inclusion_proof(index, size, Tree(data(size)).node)
    with pytest.raises(ValueError, match="does not extend"):
        consistency_proof(size + 1, size, Tree(data(size)).node)
