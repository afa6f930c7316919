"""A ledger in memory: the simulator that passes the same contract as the real one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from manifests.statements import WorkspaceCreated
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.append import begin_log
from orchestrator.ledger.ledger_store import LedgerTransaction
from orchestrator.ledger.rules.entries import Scope, StoredLeaf
from orchestrator.ledger.rules.merkle import Node
from orchestrator.ledger.stored_ledger import StoredLedger


@dataclass(slots=True)
class MemoryTransaction:
    """Leaves, nodes and checkpoint in plain containers."""

    stored: list[StoredLeaf] = field(default_factory=list)
    nodes: dict[tuple[int, int], bytes] = field(default_factory=dict)
    note: bytes = b""

    def size(self) -> int:
        """Return the number of leaves."""
        return len(self.stored)

    def checkpoint(self) -> bytes:
        """Return the newest signed note."""
        return self.note

    def leaves(
        self, scope: Scope, *, after: int = -1, limit: int | None = None
    ) -> Sequence[StoredLeaf]:
        """Return the matching leaves above `after`, at most `limit`."""
        found = [leaf for leaf in self.stored[after + 1 :] if scope.matches(leaf)]
        return found[:limit]

    def node(self, level: int, index: int) -> bytes:
        """Return a complete subtree's hash."""
        return self.nodes[level, index]

    def write(self, leaves: Sequence[StoredLeaf], nodes: Sequence[Node], checkpoint: bytes) -> None:
        """Add leaves and nodes and replace the checkpoint."""
        self.stored.extend(leaves)
        self.nodes.update({(node.level, node.index): node.digest for node in nodes})
        self.note = checkpoint


class MemoryLedgerStore:
    """One process's memory; a lock makes the exclusive transaction.

    Only the append at a transaction's end writes, so there is never anything to undo.
    """

    place = "memory"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = MemoryTransaction()

    @contextmanager
    def exclusive(self) -> Iterator[LedgerTransaction]:
        """Hold the lock."""
        with self._lock:
            yield self._state

    @contextmanager
    def snapshot(self) -> Iterator[LedgerTransaction]:
        """Read under the lock."""
        with self._lock:
            yield self._state


def create_memory_ledger(created: WorkspaceCreated, *, keys: SigningKeys) -> StoredLedger:
    """Return a new ledger in memory that begins with `created`."""
    store = MemoryLedgerStore()
    with store.exclusive() as transaction:
        begin_log(created, keys, transaction)
    return StoredLedger(store, keys=keys)
