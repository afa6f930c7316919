"""Check a whole log, one leaf at a time: form, keys, order, rules, columns, and the tree.

Linear in the leaves; memory grows with the number of runs only. Every check is one that an auditor
without keys can repeat from the leaves and the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.statements import WorkspaceCreated
from orchestrator.ledger.rules.checkpoint import verify_checkpoint
from orchestrator.ledger.rules.entries import Entry, StoredLeaf, stored_leaf
from orchestrator.ledger.rules.keyset import Keyset, begin_keyset
from orchestrator.ledger.rules.leaves import open_leaf
from orchestrator.ledger.rules.log_state import LogState
from orchestrator.ledger.rules.merkle import EMPTY_ROOT, CompactRange, leaf_hash

MAX_FAULTS = 100
"""More are counted and not kept: one broken key would otherwise name every leaf."""


class LogCheck(StrEnum):
    """What was compared."""

    POSITION = "statements are numbered from 0 without a gap"
    SIGNATURE = "each statement is in form and signed by the key in force"
    COLUMNS = "the store's columns are those of the signed statement"
    RULES = "runs, quota, editions, teams and labels keep the log's rules"
    TREE = "the signed checkpoint is of exactly these statements"
    OLDER_TREE = "the log extends the checkpoint that was kept from before"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFault:
    """One claim that does not hold. `sequence` is None where it is of the whole log."""

    check: LogCheck
    sequence: int | None
    text: str


class LogAudit:
    """Takes leaves in order, then compares the tree with a checkpoint."""

    def __init__(self, *, older_size: int | None = None) -> None:
        """Remember the root at `older_size` leaves on the way, for `compare_older`."""
        self.faults: list[LogFault] = []
        self.fault_count = 0
        self.state = LogState()
        self.keyset: Keyset | None = None
        self.tree = CompactRange()
        self._older_size = older_size
        self._older_root = EMPTY_ROOT if older_size == 0 else None

    def add(self, leaf: StoredLeaf, *, with_columns: bool = True) -> Entry | None:
        """Take in the next leaf; return its verified entry, or None after recording a fault."""
        position = self.tree.size
        if leaf.sequence != position:
            self._record(
                LogCheck.POSITION,
                position,
                f"statement {position} is missing: the store goes on with {leaf.sequence}",
            )
        self.tree, _ = self.tree.append(leaf_hash(leaf.envelope))
        if self.tree.size == self._older_size:
            self._older_root = self.tree.root()
        entry = self._open(leaf.envelope, position)
        if entry is not None:
            self._check_entry(entry, leaf if with_columns else None)
        return entry

    def add_envelope(self, envelope: bytes) -> Entry | None:
        """Take in the next leaf of a published log, which has no columns."""
        leaf = StoredLeaf(
            sequence=self.tree.size,
            kind="",
            edition=None,
            team=None,
            run_id=None,
            envelope=envelope,
        )
        return self.add(leaf, with_columns=False)

    def compare_checkpoint(self, note: bytes) -> None:
        """Check that `note` is signed by the log's key and is of exactly these leaves."""
        if self.keyset is None or self.tree.size == 0:
            self._record(LogCheck.TREE, None, "there is no log that a checkpoint could be of")
            return
        try:
            signed = verify_checkpoint(
                note, key=self.keyset.key_at("log", self.tree.size - 1), source="checkpoint"
            )
        except (ClaimDoesNotHold, MalformedDocument) as error:
            self._record(LogCheck.TREE, None, str(error))
            return
        if signed.origin != self.keyset.origin:
            text = f"the checkpoint is of the log {signed.origin}, this is {self.keyset.origin}"
        elif signed.size != self.tree.size:
            text = f"the checkpoint is of {signed.size} statements, here are {self.tree.size}"
        elif signed.root != self.tree.root():
            text = "the checkpoint signs another tree: a statement was changed or moved"
        else:
            return
        self._record(LogCheck.TREE, None, text)

    def compare_older(self, note: bytes) -> None:
        """Check a checkpoint from before; its size must have been given to the constructor."""
        if self.keyset is None:
            self._record(LogCheck.OLDER_TREE, None, "there is no log to compare with")
            return
        try:
            key = self.keyset.key_at("log", max(0, (self._older_size or 0) - 1))
            older = verify_checkpoint(note, key=key, source="older checkpoint")
        except (ClaimDoesNotHold, MalformedDocument) as error:
            self._record(LogCheck.OLDER_TREE, None, str(error))
            return
        if older.size != self._older_size or older.root != self._older_root:
            self._record(
                LogCheck.OLDER_TREE,
                None,
                f"the first {older.size} statements are not those of the older checkpoint: "
                f"the log was cut or rewritten (it has {self.tree.size} now)",
            )

    def _open(self, envelope: bytes, position: int) -> Entry | None:
        if self.keyset is None and position > 0:
            self._record(LogCheck.SIGNATURE, position, f"statement {position}: no key to check by")
            return None
        try:
            entry = open_leaf(envelope, sequence=position, keyset=self.keyset)
            statement = entry.statement
            if isinstance(statement, WorkspaceCreated) and position == 0:
                self.keyset = begin_keyset(statement)
            elif self.keyset is not None:
                self.keyset = self.keyset.after(statement, position)
        except (ClaimDoesNotHold, MalformedDocument) as error:
            self._record(LogCheck.SIGNATURE, position, str(error))
            return None
        return entry

    def _check_entry(self, entry: Entry, leaf: StoredLeaf | None) -> None:
        sequence, statement = entry.sequence, entry.statement
        if leaf is not None and stored_leaf(leaf.sequence, statement, leaf.envelope) != leaf:
            self._record(
                LogCheck.COLUMNS,
                sequence,
                f"statement {sequence}: the store's columns differ from what was signed",
            )
        fault = self.state.fault_of(statement)
        if fault is not None:
            self._record(LogCheck.RULES, sequence, f"statement {sequence}: {fault}")
        self.state.add(statement)

    def _record(self, check: LogCheck, sequence: int | None, text: str) -> None:
        self.fault_count += 1
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(LogFault(check=check, sequence=sequence, text=text))


def audit_log(leaves: Iterable[StoredLeaf], *, checkpoint: bytes) -> LogAudit:
    """Check a stored log against its checkpoint; the result holds faults, keys, runs and tree."""
    audit = LogAudit()
    for leaf in leaves:
        audit.add(leaf)
    audit.compare_checkpoint(checkpoint)
    return audit
