"""The life of one run as a fold over its statements, and which statement may come next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from manifests.errors import RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.statements import (
    ImageRemoved,
    RunFinished,
    RunReserved,
    RunScored,
    RunStarted,
    RunVoided,
    Statement,
    SubmissionRecorded,
    SubmissionReviewed,
)
from orchestrator.ledger.rules.entries import Entry

RunStatement = (
    RunReserved
    | RunStarted
    | RunFinished
    | RunVoided
    | ImageRemoved
    | RunScored
    | SubmissionRecorded
    | SubmissionReviewed
)
"""The statements that speak of one run."""


class RunState(StrEnum):
    """Where a run is in its life. A submission is self-reported and never runs."""

    RESERVED = "reserved"
    STARTED = "started"
    FINISHED = "finished"
    VOIDED = "voided"
    SUBMITTED = "submitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the log says of one run so far."""

    run_id: str
    edition: str
    team: str
    state: RunState
    attempt: int = 0
    started: bool = False
    outcome: Outcome | None = None
    predictions_sha256: str | None = None
    scored: frozenset[tuple[str, str]] = frozenset()
    """(labels version, scorer string) of every row."""
    image_gone: bool = False

    @property
    def counts(self) -> bool:
        """Tell whether the run uses up one of the certified runs: started, and not voided."""
        return self.started and self.state is not RunState.VOIDED

    @property
    def pending(self) -> bool:
        """Tell whether the run is set aside and has neither started nor been voided."""
        return self.state is RunState.RESERVED

    @property
    def open(self) -> bool:
        """Tell whether somebody still has to finish or void the run."""
        return self.state in {RunState.RESERVED, RunState.STARTED}


def transition_fault(run: Run | None, statement: RunStatement) -> str | None:
    """Return why `statement` may not follow on `run` (None: not begun yet), or None if it may."""
    name = f"run {statement.run_id}"
    if isinstance(statement, RunReserved | SubmissionRecorded):
        return None if run is None else f"{name} exists already; each run has an id of its own"
    if run is None:
        return f"{name} is not in the ledger; {statement.kind} needs a run"
    if (statement.edition, statement.team) != (run.edition, run.team):
        return f"{name} is of team {run.team} in {run.edition}, not {statement.team} in " + (
            statement.edition
        )
    return _state_fault(run, statement)


def _state_fault(run: Run, statement: RunStatement) -> str | None:
    fault: str | None = None
    match statement:
        case RunStarted() if run.state is not RunState.RESERVED:
            fault = f"is {run.state}; only a reserved run can start, and only once"
        case RunFinished() if run.state is not RunState.STARTED:
            fault = f"is {run.state}; only a started run can finish, and only once"
        case RunVoided() if run.state is RunState.VOIDED:
            fault = "is voided already; a run is voided at most once"
        case RunVoided() if run.state is RunState.SUBMITTED:
            fault = f"is a submission; decline it with: piste review {run.run_id} decline"
        case ImageRemoved() if run.state is RunState.SUBMITTED:
            fault = "is a submission and has no image"
        case ImageRemoved() if run.image_gone:
            fault = "has its image recorded as gone already"
        case SubmissionReviewed() if run.state is not RunState.SUBMITTED:
            fault = f"is {run.state}; only a self-reported submission is reviewed"
        case RunScored():
            fault = _scoring_fault(run, statement)
        case _:
            pass
    return None if fault is None else f"run {run.run_id} {fault}"


def _scoring_fault(run: Run, statement: RunScored) -> str | None:
    if run.state not in {RunState.FINISHED, RunState.SUBMITTED}:
        return f"is {run.state}; only a finished run is scored"
    if run.state is RunState.FINISHED and run.outcome is not Outcome.COMPLETED:
        return f"ended as {run.outcome}; only a completed run is scored"
    if statement.predictions_sha256 != run.predictions_sha256:
        return "recorded other predictions than the score is of"
    if (statement.labels.version, statement.scorer_string) in run.scored:
        return f"is scored on {statement.labels.version} by this scorer already"
    return None


def advance(run: Run | None, statement: RunStatement) -> Run:
    """Return the run after a statement that may follow; see `transition_fault`.

    Raises:
        RefusedByPolicy: when it may not.

    """
    fault = transition_fault(run, statement)
    if fault is not None:
        raise RefusedByPolicy(fault)
    if run is None or isinstance(statement, RunReserved | SubmissionRecorded):
        return _begin(statement)
    match statement:
        case RunStarted():
            after = replace(run, state=RunState.STARTED, started=True)
        case RunFinished():
            after = replace(
                run,
                state=RunState.FINISHED,
                outcome=statement.outcome,
                predictions_sha256=statement.predictions_sha256,
            )
        case RunVoided():
            after = replace(run, state=RunState.VOIDED)
        case ImageRemoved():
            after = replace(run, image_gone=statement.gone)
        case RunScored():
            row = (statement.labels.version, statement.scorer_string)
            after = replace(run, scored=run.scored | {row})
        case SubmissionReviewed():
            after = run
        case _:
            assert_never(statement)
    return after


def _begin(statement: RunStatement) -> Run:
    reserved = isinstance(statement, RunReserved)
    return Run(
        run_id=statement.run_id,
        edition=statement.edition,
        team=statement.team,
        state=RunState.RESERVED if reserved else RunState.SUBMITTED,
        attempt=statement.attempt if isinstance(statement, RunReserved) else 0,
        predictions_sha256=(
            statement.predictions_sha256 if isinstance(statement, SubmissionRecorded) else None
        ),
    )


def fold_runs(statements: Iterable[Statement]) -> dict[str, Run]:
    """Return every run of a history by id, in the order in which they began.

    Statements that speak of no run are passed over. Raises RefusedByPolicy on a history that
    breaks the rules.
    """
    runs: dict[str, Run] = {}
    for statement in statements:
        if isinstance(statement, RunStatement):
            runs[statement.run_id] = advance(runs.get(statement.run_id), statement)
    return runs


def check_transition(history: Sequence[Entry], statement: RunStatement) -> None:
    """Refuse a statement that may not follow on its run's history.

    Raises:
        RefusedByPolicy: with the state that the run is in.

    """
    runs = fold_runs(entry.statement for entry in history)
    fault = transition_fault(runs.get(statement.run_id), statement)
    if fault is not None:
        raise RefusedByPolicy(fault)
