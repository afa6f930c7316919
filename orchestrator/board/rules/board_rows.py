"""Fold the ledger into an edition's board rows on one label version. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from manifests.errors import RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.statements import (
    EditionSealed,
    LabelsCommitment,
    RunScored,
    Statement,
)
from orchestrator.ledger.rules.edition_statements import EditionStatements
from orchestrator.ledger.rules.run_states import Run, RunState, fold_runs
from orchestrator.runs.rules.run_record import certified_run_number
from orchestrator.scoring.rules.board_figures import FLOOR
from orchestrator.scoring.rules.scoring import MAIN_FIGURE

DataTrack = Literal["open-data", "private-data"]


class RowStatus(StrEnum):
    """Who vouches for a row. An organizer's own row is never certified."""

    CERTIFIED = "certified"
    SELF_REPORTED = "self-reported"
    ORGANIZER = "organizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """One run's figures under one scorer string, and the versions behind them."""

    run_id: str
    team: str
    status: RowStatus
    data_track: DataTrack
    """What the model was trained on: the submission's declaration, or the team's."""
    training_note: str
    certified_run: int | None
    """This is run k of the team's certified runs; null for a submission."""
    labels: LabelsCommitment
    scorer_string: str
    image: str | None
    docker: str | None
    predictions_sha256: str
    figures: dict[str, float | None]
    main: float
    floor: float | None
    sequence: int
    """The statement that brought the row onto the board: its score, or its acceptance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrankedRun:
    """A run without a place on the board, and why. It shows no figure."""

    run_id: str
    team: str
    status: RowStatus
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFacts:
    """What the ledger says for one edition's board on one label version."""

    sealed: EditionSealed
    labels: LabelsCommitment
    versions: tuple[str, ...]
    """Every label version of the edition, the oldest first."""
    rows: tuple[BoardRow, ...] = ()
    """Complete, figure known, accepted where it is a submission; in the order of the log."""
    asked_final: tuple[BoardRow, ...] = ()
    """Rows that the organizer holds until the team's Final run."""
    unranked: tuple[UnrankedRun, ...] = ()
    awaiting_review: int = 0
    declined: int = 0


def fold_board(
    statements: Iterable[Statement], edition: str, labels_version: str | None = None
) -> BoardFacts:
    """Return the rows of `edition` on one label version; by default the one it was sealed with.

    `statements` hold at least the edition's and every team's registration, in the log's order.

    Raises:
        RefusedByPolicy: the edition is not sealed, or has no such label version.

    """
    gathered = EditionStatements()
    for statement in statements:
        gathered.take(statement, edition)
    sealed = gathered.edition()
    labels = _labels(gathered, edition, labels_version)
    runs = fold_runs(gathered.about_runs)
    decisions = [_decision(gathered, run) for run in runs.values()]
    rows = [row for run in runs.values() for row in _rows(gathered, run, labels)]
    held = {run_id for run_id, one in gathered.reviewed.items() if one.decision == "ask-final"}
    return BoardFacts(
        sealed=sealed,
        labels=labels,
        versions=tuple(one.version for one in gathered.labels),
        rows=tuple(sorted((r for r in rows if r.run_id not in held), key=_by_log)),
        asked_final=tuple(sorted((r for r in rows if r.run_id in held), key=_by_log)),
        unranked=tuple(_unranked(gathered, runs.values(), rows, labels)),
        awaiting_review=decisions.count("none"),
        declined=decisions.count("decline"),
    )


def _by_log(row: BoardRow) -> tuple[int, str]:
    return row.sequence, row.run_id


def _labels(gathered: EditionStatements, edition: str, version: str | None) -> LabelsCommitment:
    for labels in gathered.labels:
        if version is None or labels.version == version:
            return labels
    known = ", ".join(labels.version for labels in gathered.labels)
    raise RefusedByPolicy(f"edition {edition}: no labels {version}; the versions are: {known}")


def _decision(gathered: EditionStatements, run: Run) -> str:
    if run.state is not RunState.SUBMITTED:
        return "not needed"
    review = gathered.reviewed.get(run.run_id)
    return "none" if review is None else review.decision


def _listed(gathered: EditionStatements, run: Run) -> bool:
    """Tell whether a run may be spoken of: a submission only once it was reviewed."""
    return _decision(gathered, run) in {"not needed", "accept", "ask-final"}


def _rows(gathered: EditionStatements, run: Run, labels: LabelsCommitment) -> Iterator[BoardRow]:
    if run.state is RunState.VOIDED or not _listed(gathered, run):
        return
    for scored in gathered.scored:
        if scored.run_id == run.run_id and scored.labels == labels and scored.complete:
            main = scored.figures.get(MAIN_FIGURE[gathered.edition().track])
            if main is not None:
                yield _row(gathered, run, scored, main)


def _row(gathered: EditionStatements, run: Run, scored: RunScored, main: float) -> BoardRow:
    submitted = gathered.submitted.get(run.run_id)
    review = gathered.reviewed.get(run.run_id)
    reserved = gathered.reserved.get(run.run_id)
    floor = FLOOR[gathered.edition().track]
    of_team = [s for s in gathered.about_runs if getattr(s, "team", None) == run.team]
    return BoardRow(
        run_id=run.run_id,
        team=run.team,
        status=_status(gathered, run),
        data_track=_data_track(gathered, run),
        training_note=submitted.training_note if submitted else "",
        certified_run=certified_run_number(of_team, run.run_id),
        labels=scored.labels,
        scorer_string=scored.scorer_string,
        image=reserved.image.config_digest if reserved else None,
        docker=_docker(gathered, run),
        predictions_sha256=scored.predictions_sha256,
        figures=scored.figures,
        main=main,
        floor=scored.figures.get(floor) if floor else None,
        sequence=max(scored.sequence, review.sequence if review else -1),
    )


def _data_track(gathered: EditionStatements, run: Run) -> DataTrack:
    """Return what the model was trained on: as declared with it, else as the team registered."""
    submitted = gathered.submitted.get(run.run_id)
    if submitted is not None:
        return submitted.training_data
    team = gathered.teams.get(run.team)
    return "private-data" if team is None else team.data_track


def _docker(gathered: EditionStatements, run: Run) -> str | None:
    started = gathered.started.get(run.run_id)
    version = started.environment.get("docker") if started else None
    return version if isinstance(version, str) else None


def _status(gathered: EditionStatements, run: Run) -> RowStatus:
    team = gathered.teams.get(run.team)
    if team is not None and team.organizer:
        return RowStatus.ORGANIZER
    submitted = run.state is RunState.SUBMITTED
    return RowStatus.SELF_REPORTED if submitted else RowStatus.CERTIFIED


def _unranked(
    gathered: EditionStatements,
    runs: Iterable[Run],
    rows: Iterable[BoardRow],
    labels: LabelsCommitment,
) -> Iterator[UnrankedRun]:
    ranked = {row.run_id for row in rows}
    for run in runs:
        if run.run_id not in ranked and _listed(gathered, run):
            yield UnrankedRun(
                run_id=run.run_id,
                team=run.team,
                status=_status(gathered, run),
                reason=_reason(gathered, run, labels),
            )


def _reason(gathered: EditionStatements, run: Run, labels: LabelsCommitment) -> str:
    main = MAIN_FIGURE[gathered.edition().track]
    scores = [s for s in gathered.scored if s.run_id == run.run_id and s.labels == labels]
    match run.state:
        case RunState.VOIDED:
            return f"voided: {gathered.voided[run.run_id].reason}"
        case RunState.RESERVED | RunState.STARTED:
            return f"{run.state}: not finished"
        case RunState.FINISHED if run.outcome is not Outcome.COMPLETED:
            return f"{run.outcome}: not scored"
        case _ if not scores:
            return f"not scored on {labels.version} yet"
        case _ if not any(one.complete for one in scores):
            return "incomplete: not scored"
        case _:
            return f"{main} could not be computed; its score card says why"
