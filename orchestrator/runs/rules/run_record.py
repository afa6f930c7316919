"""Fold a run's statements into its record. Pure: the ledger is the truth, this only shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from manifests.outcomes import Outcome
from manifests.runs import RunRecord, Void
from manifests.statements import (
    ImageRemoved,
    RunFinished,
    RunReserved,
    RunScored,
    RunStarted,
    RunVoided,
    Statement,
)

_RECORDED = (RunReserved, RunStarted, RunFinished, RunVoided, ImageRemoved)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """The statements of one run by kind; at most one of each but scores."""

    reserved: RunReserved
    started: RunStarted | None
    finished: RunFinished | None
    voided: RunVoided | None
    removed: ImageRemoved | None
    scores: tuple[RunScored, ...]
    positions: tuple[int, ...]


def run_history(statements: Iterable[Statement]) -> RunHistory:
    """Sort one run's statements, which the ledger has already held to their order."""
    found: dict[type, Statement] = {}
    scores: list[RunScored] = []
    positions: list[int] = []
    for statement in statements:
        if isinstance(statement, RunScored):
            scores.append(statement)
        elif isinstance(statement, _RECORDED):
            found[type(statement)] = statement
            positions.append(statement.sequence)
    return RunHistory(
        reserved=found[RunReserved],  # type: ignore[arg-type]  # keyed by type
        started=found.get(RunStarted),  # type: ignore[arg-type]
        finished=found.get(RunFinished),  # type: ignore[arg-type]
        voided=found.get(RunVoided),  # type: ignore[arg-type]
        removed=found.get(ImageRemoved),  # type: ignore[arg-type]
        scores=tuple(scores),
        positions=tuple(positions),
    )


def certified_run_number(team_statements: Sequence[Statement], run_id: str) -> int | None:
    """Return k where this is the team's k-th counting run of the edition, by order of start.

    `team_statements` are one team's statements in one edition; a voided run has no number.
    """
    voided = {s.run_id for s in team_statements if isinstance(s, RunVoided)}
    counting = [
        s.run_id for s in team_statements if isinstance(s, RunStarted) and s.run_id not in voided
    ]
    return counting.index(run_id) + 1 if run_id in counting else None


def run_record(history: RunHistory, *, certified_run: int | None) -> RunRecord:
    """Render a run's record from its history alone.

    A run that never finished has the outcome `platform-fault`: only a void can end it so.
    """
    reserved, started, finished = history.reserved, history.started, history.finished
    voided = history.voided
    return RunRecord(
        run_id=reserved.run_id,
        edition=reserved.edition,
        team=reserved.team,
        attempt=reserved.attempt,
        certified_run=certified_run,
        outcome=finished.outcome if finished else Outcome.PLATFORM_FAULT,
        diagnostics=finished.diagnostics if finished else voided.diagnostics if voided else (),
        voided=Void(reason=voided.reason, by=voided.by) if voided else None,
        image=reserved.image,
        consumer=reserved.consumer,
        image_removed=history.removed.gone if history.removed else None,
        host=reserved.host,
        environment=started.environment if started else {},
        gpu=finished.gpu if finished else None,
        profile_sha256=reserved.profile_sha256,
        effective_sha256=started.effective_sha256 if started else None,
        clip_set_sha256=reserved.clip_set_sha256,
        predictions_sha256=finished.predictions_sha256 if finished else None,
        files=finished.files if finished else {},
        deadline_s=reserved.deadline_s,
        elapsed_s=finished.elapsed_s if finished else None,
        repeat=reserved.repeat,
        repeats_agree=finished.repeats_agree if finished else None,
        reserved_at=reserved.at,
        started_at=started.at if started else None,
        finished_at=finished.at if finished else None,
        statements=history.positions,
    )
