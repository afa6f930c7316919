"""What a store must offer for a ledger to live in it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from orchestrator.ledger.rules.entries import Scope, StoredLeaf
from orchestrator.ledger.rules.merkle import Node


class LedgerTransaction(Protocol):
    """What a store offers inside one transaction."""

    def size(self) -> int:
        """Return the number of leaves."""

    def checkpoint(self) -> bytes:
        """Return the newest signed note."""

    def leaves(
        self, scope: Scope, *, after: int = -1, limit: int | None = None
    ) -> Sequence[StoredLeaf]:
        """Return matching leaves with a sequence above `after`, in order, at most `limit`."""

    def node(self, level: int, index: int) -> bytes:
        """Return a complete subtree's hash."""

    def write(self, leaves: Sequence[StoredLeaf], nodes: Sequence[Node], checkpoint: bytes) -> None:
        """Add leaves and nodes and replace the checkpoint and the size."""


class LedgerStore(Protocol):
    """A place that holds leaves, nodes and one checkpoint."""

    @property
    def place(self) -> str:
        """Where it is, for messages: a path, or a URL without password."""

    def exclusive(self) -> AbstractContextManager[LedgerTransaction]:
        """Begin the only writing transaction; durable when it ends, undone by an exception."""

    def snapshot(self) -> AbstractContextManager[LedgerTransaction]:
        """Begin a reading transaction."""
