"""One edition's statements, sorted by what they speak of: the input of a board. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from manifests.errors import RefusedByPolicy
from manifests.statements import (
    EditionSealed,
    LabelsAdded,
    LabelsCommitment,
    RunReserved,
    RunScored,
    RunStarted,
    RunVoided,
    Statement,
    SubmissionRecorded,
    SubmissionReviewed,
    TeamRegistered,
)


@dataclass(slots=True)
class EditionStatements:
    """One edition's statements, sorted by what they speak of."""

    sealed: EditionSealed | None = None
    labels: list[LabelsCommitment] = field(default_factory=list)
    teams: dict[str, TeamRegistered] = field(default_factory=dict)
    reserved: dict[str, RunReserved] = field(default_factory=dict)
    started: dict[str, RunStarted] = field(default_factory=dict)
    voided: dict[str, RunVoided] = field(default_factory=dict)
    submitted: dict[str, SubmissionRecorded] = field(default_factory=dict)
    reviewed: dict[str, SubmissionReviewed] = field(default_factory=dict)
    """The latest decision on each submission."""
    scored: list[RunScored] = field(default_factory=list)
    about_runs: list[Statement] = field(default_factory=list)

    def edition(self) -> EditionSealed:
        """Return the statement that sealed the edition.

        Raises:
            RefusedByPolicy: there is none.

        """
        if self.sealed is None:
            raise RefusedByPolicy("this edition is not sealed in this ledger")
        return self.sealed

    def take(self, statement: Statement, edition: str) -> None:
        """Take in one statement; those of other editions are passed over."""
        if isinstance(statement, TeamRegistered):
            self.teams.setdefault(statement.team, statement)
            return
        if getattr(statement, "edition", None) != edition:
            return
        match statement:
            case EditionSealed():
                self.sealed = statement
                self.labels.append(statement.labels)
            case LabelsAdded():
                self.labels.append(statement.labels)
            case _:
                self.about_runs.append(statement)
                self._take_of_run(statement)

    def _take_of_run(self, statement: Statement) -> None:
        match statement:
            case RunReserved():
                self.reserved[statement.run_id] = statement
            case RunStarted():
                self.started[statement.run_id] = statement
            case RunVoided():
                self.voided[statement.run_id] = statement
            case SubmissionRecorded():
                self.submitted[statement.run_id] = statement
            case SubmissionReviewed():
                self.reviewed[statement.run_id] = statement
            case RunScored():
                self.scored.append(statement)
            case _:
                pass
