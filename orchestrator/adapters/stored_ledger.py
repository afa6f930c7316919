"""The ledger over any store: signs, checks and grows the tree inside the store's transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from manifests.errors import ClaimDoesNotHold, PlatformFault
from manifests.statements import Statement, WorkspaceCreated
from orchestrator.core.checkpoint import Checkpoint, render_checkpoint, verify_checkpoint
from orchestrator.core.entries import Entry, Scope, StoredLeaf, stored_leaf
from orchestrator.core.keyset import Keyset, begin_keyset
from orchestrator.core.leaves import open_stored_leaf, seal_statement
from orchestrator.core.log_state import LogState, check_append, rule_scopes
from orchestrator.core.merkle import (
    CompactRange,
    Node,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    range_at,
)
from orchestrator.ports.ledger import Decide
from orchestrator.ports.signing import Signer, SigningKeys

_BATCH = 500


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
            return _Append(transaction, self._keys, place=self.place).append(statement)

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
            appending = _Append(transaction, self._keys, place=self.place)
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
            size, keyset = transaction.size(), _View(transaction, place=self.place).keyset
        for leaf in self._leaves(scope, size):
            yield _open(leaf, keyset, place=self.place)

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
            return _View(transaction, place=self.place).keyset

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


class _View:
    """Verified entries inside one transaction; each leaf is opened once."""

    def __init__(self, transaction: LedgerTransaction, *, place: str) -> None:
        self._transaction = transaction
        self._place = place
        self._opened: dict[int, Entry] = {}
        self.keyset = self._fold_keys()

    def entries(self, *scopes: Scope) -> tuple[Entry, ...]:
        """Return the entries in any of the scopes, in the log's order."""
        found: dict[int, Entry] = {}
        for scope in scopes:
            for leaf in self._transaction.leaves(scope):
                found[leaf.sequence] = self._open(leaf)
        return tuple(found[sequence] for sequence in sorted(found))

    def _open(self, leaf: StoredLeaf) -> Entry:
        if leaf.sequence not in self._opened:
            self._opened[leaf.sequence] = _open(leaf, self.keyset, place=self._place)
        return self._opened[leaf.sequence]

    def _fold_keys(self) -> Keyset:
        first = self._transaction.leaves(Scope(), limit=1)
        if not first or first[0].sequence != 0:
            raise ClaimDoesNotHold(f"{self._place}: statement 0 is missing; restore a backup")
        statement = _open(first[0], None, place=self._place).statement
        assert isinstance(statement, WorkspaceCreated)  # open_leaf made sure
        keyset = begin_keyset(statement)
        for leaf in self._transaction.leaves(Scope(kind="key-rotated")):
            rotation = _open(leaf, keyset, place=self._place).statement
            keyset = keyset.after(rotation, leaf.sequence)
        return keyset


class _Append:
    """One append inside an exclusive transaction."""

    def __init__(self, transaction: LedgerTransaction, keys: SigningKeys, *, place: str) -> None:
        self._transaction = transaction
        self._keys = keys
        self._place = place
        self.view = _View(transaction, place=place)

    def append(self, statement: Statement) -> Entry:
        keyset = self.view.keyset
        tree = self._present_tree(keyset)
        stamped = statement.model_copy(update={"sequence": tree.size})
        self._check_rules(stamped)
        keyset.after(stamped, tree.size)  # an impossible rotation is refused before it is signed
        signer = self._signer_for(keyset.signer_at(stamped, tree.size).key_id, stamped, keyset)
        log_signer = self._log_signer(keyset, tree.size)
        entry, leaf = _seal(stamped, signer)
        grown, nodes = tree.append(leaf_hash(entry.envelope))
        note = _sign_checkpoint(keyset.origin, grown, log_signer)
        self._transaction.write((leaf,), nodes, note)
        return entry

    def _present_tree(self, keyset: Keyset) -> CompactRange:
        """Return the frontier after comparing it with the signed checkpoint."""
        size = self._transaction.size()
        tree = range_at(size, self._transaction.node)
        signed = verify_checkpoint(
            self._transaction.checkpoint(),
            key=keyset.key_at("log", size - 1),
            source=f"{self._place}: checkpoint",
        )
        if signed != Checkpoint(origin=keyset.origin, size=size, root=tree.root()):
            raise ClaimDoesNotHold(
                f"{self._place}: the tree is not the one that its checkpoint signed; "
                "nothing is appended to a changed ledger; run: piste verify"
            )
        return tree

    def _check_rules(self, statement: Statement) -> None:
        state = LogState()
        for entry in self.view.entries(*rule_scopes(statement)):
            state.add(entry.statement)
        check_append(state, statement)

    def _signer_for(self, key_id: str, statement: Statement, keyset: Keyset) -> Signer:
        return self._require(self._keys.signer(keyset.role_for(statement)), key_id)

    def _log_signer(self, keyset: Keyset, sequence: int) -> Signer:
        return self._require(self._keys.signer("log"), keyset.key_at("log", sequence).key_id)

    def _require(self, signer: Signer, key_id: str) -> Signer:
        held = signer.public_key
        if held.key_id != key_id:
            raise PlatformFault(
                f"{self._place}: this host's {held.role} key is {held.key_id[:16]}, the ledger's "
                f"is {key_id[:16]}; put the rotated key, or this workspace's own, into keys/"
            )
        return signer


def begin_log(
    statement: WorkspaceCreated, keys: SigningKeys, transaction: LedgerTransaction
) -> None:
    """Write statement 0 into an empty store.

    Raises:
        ClaimDoesNotHold: when the published keys are not one of each role.
        PlatformFault: when the published keys are not those that sign.

    """
    first = statement.model_copy(update={"sequence": 0})
    keyset = begin_keyset(first)
    if {key.key_id for key in keyset.published()} != {key.key_id for key in keys.held()}:
        raise PlatformFault("a new ledger publishes exactly the keys that this host holds")
    entry, leaf = _seal(first, keys.signer("run"))
    tree, nodes = CompactRange().append(leaf_hash(entry.envelope))
    transaction.write((leaf,), nodes, _sign_checkpoint(keyset.origin, tree, keys.signer("log")))


def _seal(statement: Statement, signer: Signer) -> tuple[Entry, StoredLeaf]:
    envelope = seal_statement(statement, key_id=signer.public_key.key_id, sign=signer.sign)
    entry = Entry(sequence=statement.sequence, statement=statement, envelope=envelope)
    return entry, stored_leaf(statement.sequence, statement, envelope)


def _sign_checkpoint(origin: str, tree: CompactRange, signer: Signer) -> bytes:
    checkpoint = Checkpoint(origin=origin, size=tree.size, root=tree.root())
    sign: Callable[[bytes], bytes] = signer.sign
    return render_checkpoint(checkpoint, key=signer.public_key, sign=sign)


def _open(leaf: StoredLeaf, keyset: Keyset | None, *, place: str) -> Entry:
    try:
        return open_stored_leaf(leaf, keyset=keyset)
    except ClaimDoesNotHold as error:
        raise ClaimDoesNotHold(f"{place}: {error}; the ledger was changed") from error
