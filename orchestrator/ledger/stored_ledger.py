"""The ledger over any store: the port's methods as transactions of the store."""

from __future__ import annotations

from collections.abc import Iterator

from manifests.errors import ClaimDoesNotHold
from manifests.statements import Statement
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.append import LedgerAppend, LedgerView, open_at
from orchestrator.ledger.ledger_store import LedgerStore, LedgerTransaction
from orchestrator.ledger.ports import Decide
from orchestrator.ledger.rules.entries import Entry, Scope, StoredLeaf
from orchestrator.ledger.rules.keyset import Keyset
from orchestrator.ledger.rules.merkle import consistency_proof, inclusion_proof

_BATCH = 500


class StoredLedger:
    """Implements the port `Ledger` on a store."""

    def __init__(self, store: LedgerStore, *, keys: SigningKeys) -> None:
        self._store = store
        self._keys = keys

    @property
    def place(self) -> str:
        """Where the ledger is, for messages."""
        return self._store.place

    def append(self, statement: Statement) -> Entry:
        """Sign and append one statement; durable when this returns."""
        with self._store.exclusive() as transaction:
            return LedgerAppend(transaction, self._keys, place=self.place).append(statement)

    def decide(
        self,
        decide: Decide,
        *,
        edition: str | None = None,
        team: str | None = None,
        run_id: str | None = None,
        kind: str | None = None,
    ) -> Entry:
        """Append what `decide` returns of the scope's entries, in one exclusive transaction."""
        scope = Scope(edition=edition, team=team, run_id=run_id, kind=kind)
        with self._store.exclusive() as transaction:
            appending = LedgerAppend(transaction, self._keys, place=self.place)
            return appending.append(decide(appending.view.entries(scope)))

    def entries(
        self,
        *,
        edition: str | None = None,
        team: str | None = None,
        run_id: str | None = None,
        kind: str | None = None,
    ) -> Iterator[Entry]:
        """Yield the matching entries up to the present size, verified, in short transactions."""
        scope = Scope(edition=edition, team=team, run_id=run_id, kind=kind)
        with self._store.snapshot() as transaction:
            size, keyset = transaction.size(), LedgerView(transaction, place=self.place).keyset
        for leaf in self._leaves(scope, size):
            yield open_at(leaf, keyset, place=self.place)

    def stored_leaves(self) -> Iterator[StoredLeaf]:
        """Yield every leaf as it is stored, unverified, with low memory."""
        with self._store.snapshot() as transaction:
            size = transaction.size()
        return self._leaves(Scope(), size)

    def size(self) -> int:
        """Return the number of leaves."""
        with self._store.snapshot() as transaction:
            return transaction.size()

    def keyset(self) -> Keyset:
        """Return the keys that the log has published so far."""
        with self._store.snapshot() as transaction:
            return LedgerView(transaction, place=self.place).keyset

    def checkpoint(self) -> bytes:
        """Return the signed note over the present tree."""
        with self._store.snapshot() as transaction:
            return transaction.checkpoint()

    def node(self, level: int, index: int) -> bytes:
        """Return the hash of a complete subtree."""
        with self._store.snapshot() as transaction:
            return transaction.node(level, index)

    def inclusion_proof(self, sequence: int, size: int | None = None) -> tuple[bytes, ...]:
        """Return the audit path of a leaf in the tree of `size` (default: the present one)."""
        with self._store.snapshot() as transaction:
            within = self._size_within(transaction, size)
            if not 0 <= sequence < within:
                raise ClaimDoesNotHold(
                    f"{self.place}: statement {sequence} is not among the first {within}"
                )
            return inclusion_proof(sequence, within, transaction.node)

    def consistency_proof(
        self, older_size: int, newer_size: int | None = None
    ) -> tuple[bytes, ...]:
        """Return the proof that the newer tree extends the older one."""
        with self._store.snapshot() as transaction:
            newer = self._size_within(transaction, newer_size)
            if not 0 <= older_size <= newer:
                raise ClaimDoesNotHold(
                    f"{self.place}: the log has {newer} statements and cannot extend {older_size}"
                )
            return consistency_proof(older_size, newer, transaction.node)

    def _size_within(self, transaction: LedgerTransaction, size: int | None) -> int:
        present = transaction.size()
        if size is not None and size > present:
            raise ClaimDoesNotHold(f"{self.place}: the log has {present} statements, not {size}")
        return present if size is None else size

    def _leaves(self, scope: Scope, size: int) -> Iterator[StoredLeaf]:
        after = -1
        while True:
            with self._store.snapshot() as transaction:
                batch = transaction.leaves(scope, after=after, limit=_BATCH)
            for leaf in batch:
                if leaf.sequence >= size:
                    return
                yield leaf
            if len(batch) < _BATCH:
                return
            after = batch[-1].sequence
