"""One append: judge it by the log's rules, sign it, grow the tree, sign the checkpoint."""

from __future__ import annotations

from manifests.errors import ClaimDoesNotHold, MalformedDocument, PlatformFault
from manifests.statements import Statement, WorkspaceCreated
from orchestrator.keys.signing_port import Signer, SigningKeys
from orchestrator.ledger.ledger_store import LedgerTransaction
from orchestrator.ledger.rules.checkpoint import (
    Checkpoint,
    render_checkpoint,
    require_origin,
    verify_checkpoint,
)
from orchestrator.ledger.rules.entries import Entry, Scope, StoredLeaf, stored_leaf
from orchestrator.ledger.rules.keyset import Keyset, begin_keyset
from orchestrator.ledger.rules.leaves import open_stored_leaf, seal_statement
from orchestrator.ledger.rules.log_state import LogState, check_append, rule_scopes
from orchestrator.ledger.rules.merkle import CompactRange, leaf_hash, range_at


class LedgerView:
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
            self._opened[leaf.sequence] = open_at(leaf, self.keyset, place=self._place)
        return self._opened[leaf.sequence]

    def _fold_keys(self) -> Keyset:
        first = self._transaction.leaves(Scope(), limit=1)
        if not first or first[0].sequence != 0:
            raise ClaimDoesNotHold(f"{self._place}: statement 0 is missing; restore a backup")
        statement = open_at(first[0], None, place=self._place).statement
        assert isinstance(statement, WorkspaceCreated)  # open_leaf made sure
        keyset = begin_keyset(statement)
        for leaf in self._transaction.leaves(Scope(kind="key-rotated")):
            rotation = open_at(leaf, keyset, place=self._place).statement
            keyset = keyset.after(rotation, leaf.sequence)
        return keyset


class LedgerAppend:
    """One append inside an exclusive transaction."""

    def __init__(self, transaction: LedgerTransaction, keys: SigningKeys, *, place: str) -> None:
        self._transaction = transaction
        self._keys = keys
        self._place = place
        self.view = LedgerView(transaction, place=place)

    def append(self, statement: Statement) -> Entry:
        """Append one statement; its `sequence` becomes the log's size.

        Raises:
            RefusedByPolicy: when a rule of the log forbids it, or this host lacks the key.
            PlatformFault: when this host's key is not the one in force.
            ClaimDoesNotHold: when the ledger was changed behind its checkpoint.

        """
        keyset = self.view.keyset
        tree = self._present_tree(keyset)
        stamped = statement.model_copy(update={"sequence": tree.size})
        self._check_rules(stamped)
        keyset.after(stamped, tree.size)  # an impossible rotation is refused before it is signed
        signer = self._signer_for(keyset.signer_at(stamped, tree.size).key_id, stamped, keyset)
        log_signer = self._log_signer(keyset, tree.size)
        entry, leaf = seal_entry(stamped, signer)
        grown, nodes = tree.append(leaf_hash(entry.envelope))
        note = sign_checkpoint(keyset.origin, grown, log_signer)
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
        MalformedDocument: when the origin cannot name a log.
        ClaimDoesNotHold: when the published keys are not one of each role.
        PlatformFault: when the published keys are not those that sign.

    """
    require_origin(statement.origin)
    first = statement.model_copy(update={"sequence": 0})
    keyset = begin_keyset(first)
    if {key.key_id for key in keyset.published()} != {key.key_id for key in keys.held()}:
        raise PlatformFault("a new ledger publishes exactly the keys that this host holds")
    entry, leaf = seal_entry(first, keys.signer("run"))
    tree, nodes = CompactRange().append(leaf_hash(entry.envelope))
    transaction.write((leaf,), nodes, sign_checkpoint(keyset.origin, tree, keys.signer("log")))


def seal_entry(statement: Statement, signer: Signer) -> tuple[Entry, StoredLeaf]:
    """Sign a statement whose sequence is set; return it as read and as stored."""
    envelope = seal_statement(statement, key_id=signer.public_key.key_id, sign=signer.sign)
    entry = Entry(sequence=statement.sequence, statement=statement, envelope=envelope)
    return entry, stored_leaf(statement.sequence, statement, envelope)


def sign_checkpoint(origin: str, tree: CompactRange, signer: Signer) -> bytes:
    """Return the signed note over `tree`."""
    checkpoint = Checkpoint(origin=origin, size=tree.size, root=tree.root())
    return render_checkpoint(checkpoint, key=signer.public_key, sign=signer.sign)


def open_at(leaf: StoredLeaf, keyset: Keyset | None, *, place: str) -> Entry:
    """Verify a stored leaf; errors name the ledger."""
    try:
        return open_stored_leaf(leaf, keyset=keyset)
    except (ClaimDoesNotHold, MalformedDocument) as error:
        raise ClaimDoesNotHold(f"{place}: {error}; the ledger was changed") from error
