"""Checks 4 to 11: the log from its first statement to its checkpoint, and what it says.

The log is read once, leaf by leaf. Of a run only its envelopes are kept, which are parsed again
when the run's folder is checked: so memory grows with the log's bytes and not with its objects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from manifests.dsse import parse_envelope
from manifests.errors import MalformedDocument
from manifests.statements import (
    STATEMENT,
    EditionRevealed,
    EditionSealed,
    LabelsAdded,
    LabelsCommitment,
    RunReserved,
    RunStarted,
    RunVoided,
    Statement,
)
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_quota import QuotaCount
from orchestrator.evidence.rules.findings import Findings
from orchestrator.ledger.rules.checkpoint import SignedCheckpoint, parse_checkpoint
from orchestrator.ledger.rules.entries import StoredLeaf
from orchestrator.ledger.rules.keyset import Keyset
from orchestrator.ledger.rules.log_audit import LogAudit, LogCheck
from orchestrator.ledger.rules.merkle import leaf_hash
from orchestrator.ledger.rules.run_states import Run, RunStatement
from orchestrator.runs.rules.run_record import RunHistory, run_history

_CHECK_OF: dict[LogCheck, Check] = {
    LogCheck.POSITION: Check.STATEMENTS,
    LogCheck.SIGNATURE: Check.STATEMENTS,
    LogCheck.COLUMNS: Check.COLUMNS,
    LogCheck.RULES: Check.RULES,
    LogCheck.TREE: Check.CHECKPOINT,
    LogCheck.OLDER_TREE: Check.OLDER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedAt:
    """An edition's seal statement, and its position in the log."""

    sequence: int
    statement: EditionSealed


@dataclass(slots=True)
class _Starts:
    order: list[tuple[int, str]] = field(default_factory=list)
    voids: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class LogFacts:
    """What a log says, verified statement by statement."""

    size: int = 0
    keyset: Keyset | None = None
    checkpoint: SignedCheckpoint | None = None
    editions: dict[str, SealedAt] = field(default_factory=dict)
    labels: dict[str, dict[str, LabelsCommitment]] = field(default_factory=dict)
    revealed: dict[str, EditionRevealed] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    leaf_hashes: list[bytes] = field(default_factory=list)
    _leaves: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    _starts: dict[tuple[str, str], _Starts] = field(default_factory=lambda: defaultdict(_Starts))

    def add(self, statement: Statement, envelope: bytes) -> None:
        """Take in one verified statement."""
        match statement:
            case EditionSealed():
                found = SealedAt(sequence=statement.sequence, statement=statement)
                self.editions.setdefault(statement.edition, found)
                self._commit(statement.edition, statement.labels)
            case LabelsAdded():
                self._commit(statement.edition, statement.labels)
            case EditionRevealed():
                self.revealed.setdefault(statement.edition, statement)
            case _ if isinstance(statement, RunStatement):
                self._leaves[statement.run_id].append(envelope)
                self._count(statement)
            case _:
                pass

    def _commit(self, edition: str, labels: LabelsCommitment) -> None:
        self.labels.setdefault(edition, {}).setdefault(labels.version, labels)

    def _count(self, statement: RunStatement) -> None:
        starts = self._starts[statement.edition, statement.team]
        if isinstance(statement, RunStarted):
            starts.order.append((statement.sequence, statement.run_id))
        elif isinstance(statement, RunVoided):
            starts.voids.setdefault(statement.run_id, statement.sequence)

    def statements_of(self, run_id: str) -> tuple[Statement, ...]:
        """Return the run's statements in order; their envelopes were verified on the way in."""
        return tuple(
            STATEMENT.validate_json(parse_envelope(envelope, source=run_id).payload)
            for envelope in self._leaves.get(run_id, ())
        )

    def run_number(self, history: RunHistory, *, at: int) -> int | None:
        """Return k of the team's k-th counting run as the first `at` + 1 statements tell it."""
        starts = self._starts[history.reserved.edition, history.reserved.team]
        counting = [
            run_id
            for sequence, run_id in starts.order
            if sequence <= at and not starts.voids.get(run_id, at + 1) <= at
        ]
        run_id = history.reserved.run_id
        return counting.index(run_id) + 1 if run_id in counting else None


def history_in(statements: Sequence[Statement]) -> RunHistory | None:
    """Return the history that a run's statements tell, or None for a submission."""
    reserved = any(isinstance(statement, RunReserved) for statement in statements)
    return run_history(statements) if reserved else None


def check_log(
    findings: Findings,
    leaves: Iterable[StoredLeaf],
    *,
    checkpoint: bytes | None,
    older: bytes | None = None,
    with_columns: bool = True,
    keep_hashes: bool = False,
) -> LogFacts:
    """Check a whole log (5 to 10) and return what it says.

    `older` is a checkpoint that the auditor kept; `keep_hashes` keeps the leaves' for the tiles.

    Raises:
        MalformedDocument: `older`, which is the auditor's own file, is no checkpoint.

    """
    kept = None if older is None else parse_checkpoint(older, source="--checkpoint")
    audit = LogAudit(older_size=None if kept is None else kept.checkpoint.size)
    facts, quota = LogFacts(), QuotaCount()
    for leaf in leaves:
        entry = audit.add(leaf, with_columns=with_columns)
        if keep_hashes:
            facts.leaf_hashes.append(leaf_hash(leaf.envelope))
        if entry is not None:
            quota.add(entry.statement)
            facts.add(entry.statement, entry.envelope)
    facts.size, facts.keyset, facts.runs = audit.tree.size, audit.keyset, audit.state.runs
    _compare_checkpoints(findings, audit, facts, checkpoint=checkpoint, older=older)
    quota.judge(findings)
    _sum_up(findings, audit, with_columns=with_columns)
    return facts


def _compare_checkpoints(
    findings: Findings,
    audit: LogAudit,
    facts: LogFacts,
    *,
    checkpoint: bytes | None,
    older: bytes | None,
) -> None:
    if checkpoint is None:
        findings.fault(Check.CHECKPOINT, "the log has no checkpoint")
    else:
        audit.compare_checkpoint(checkpoint)
        findings.compared(Check.CHECKPOINT, audit.tree.size)
        with findings.judging(Check.CHECKPOINT):
            facts.checkpoint = parse_checkpoint(checkpoint, source="checkpoint")
    if older is None:
        findings.note(
            Check.OLDER, "no older checkpoint was given; keep one and give it with --checkpoint"
        )
    else:
        audit.compare_older(older)
        findings.compared(Check.OLDER)


def _sum_up(findings: Findings, audit: LogAudit, *, with_columns: bool) -> None:
    findings.compared(Check.STATEMENTS, audit.tree.size)
    findings.compared(Check.RULES, audit.tree.size)
    if with_columns:
        findings.compared(Check.COLUMNS, audit.tree.size)
    else:
        findings.note(Check.COLUMNS, "a published log has no columns, only its statements")
    for fault in audit.faults:
        findings.fault(_CHECK_OF[fault.check], fault.text)
    if audit.fault_count > len(audit.faults):
        more = audit.fault_count - len(audit.faults)
        findings.fault(Check.STATEMENTS, f"the log has {more} faults more than are kept")
    if audit.tree.size == 0:
        findings.fault(Check.STATEMENTS, "the log is empty")


def check_anchor(
    findings: Findings, keyset: Keyset | None, *, key_ids: tuple[str, ...], origin: str | None
) -> None:
    """Check the log's keys and origin against what the auditor holds from elsewhere (check 4)."""
    if keyset is None:
        findings.fault(Check.ANCHOR, "the log publishes no keys")
        return
    known = {key.key_id for key in keyset.published()}
    for key_id in key_ids:
        findings.require(
            Check.ANCHOR, key_id in known, f"key {key_id} was never published in this log"
        )
    if origin is not None:
        findings.require(
            Check.ANCHOR, origin == keyset.origin, f"the log is {keyset.origin}, not {origin}"
        )
    if not key_ids:
        first = ", ".join(f"{key.role} {key.key_id}" for key in keyset.published()[:3])
        findings.note(
            Check.ANCHOR,
            f"compare with what the organizer announced, or give --key: {keyset.origin}: {first}",
        )


def split_entries(data: bytes, *, source: str) -> Iterable[StoredLeaf]:
    """Yield the leaves of an exported log, one envelope a line, as leaves without columns.

    Raises:
        MalformedDocument: when the last line has no end.

    """
    if data and not data.endswith(b"\n"):
        raise MalformedDocument(f"{source}: the last line has no end; the file was cut")
    for sequence, line in enumerate(data.split(b"\n")[:-1]):
        yield StoredLeaf(
            sequence=sequence, kind="", edition=None, team=None, run_id=None, envelope=line
        )
