"""The log's own rules: what the statements so far allow the next one to say.

One fold serves two readers. The ledger feeds it the few entries that `rule_scopes` names and asks
before it appends; an audit feeds it the whole log, one statement at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from manifests.errors import RefusedByPolicy
from manifests.statements import (
    EditionRevealed,
    EditionSealed,
    KeyRotated,
    LabelsAdded,
    RunReserved,
    RunScored,
    Statement,
    SubmissionRecorded,
    TeamRegistered,
    WorkspaceCreated,
)
from orchestrator.ledger.rules.entries import Scope
from orchestrator.ledger.rules.quota import quota_fault, quota_state
from orchestrator.ledger.rules.run_states import Run, RunStatement, advance, transition_fault


@dataclass(slots=True, kw_only=True)
class EditionFacts:
    """What the log holds of one edition."""

    sealed: EditionSealed
    labels: dict[str, str]
    """SHA-256 of the committed file by label version."""
    revealed: bool = False


@dataclass(slots=True)
class LogState:
    """Editions, teams and runs after the statements so far. Grows with runs, not with bytes."""

    editions: dict[str, EditionFacts] = field(default_factory=dict)
    teams: dict[str, TeamRegistered] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    entered: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Run ids by edition and team, in the order in which they began."""

    def runs_of(self, edition: str, team: str) -> list[Run]:
        """Return the team's runs in the edition, in order."""
        return [self.runs[run_id] for run_id in self.entered.get((edition, team), [])]

    def fault_of(self, statement: Statement) -> str | None:
        """Return the rule that `statement` would break if it came next, or None."""
        fault: str | None = None
        match statement:
            case WorkspaceCreated():
                fault = "the log has begun already" if statement.sequence > 0 else None
            case KeyRotated():
                pass  # the keyset judges it
            case EditionSealed():
                known = statement.edition in self.editions
                fault = f"edition {statement.edition} is sealed already" if known else None
            case TeamRegistered():
                known = statement.team in self.teams
                fault = f"team {statement.team} is registered already" if known else None
            case LabelsAdded() | EditionRevealed():
                fault = self._edition_fault(statement)
            case _:
                fault = transition_fault(self.runs.get(statement.run_id), statement)
        if fault is None and isinstance(statement, RunReserved | SubmissionRecorded):
            fault = self._entry_fault(statement)
        if fault is None and isinstance(statement, RunScored):
            fault = self._labels_fault(statement)
        return fault

    def add(self, statement: Statement) -> None:
        """Take one statement in. One that breaks a rule is taken as far as it makes sense."""
        match statement:
            case EditionSealed():
                self.editions.setdefault(
                    statement.edition,
                    EditionFacts(
                        sealed=statement, labels={statement.labels.version: statement.labels.sha256}
                    ),
                )
            case TeamRegistered():
                self.teams.setdefault(statement.team, statement)
            case LabelsAdded() if statement.edition in self.editions:
                labels = self.editions[statement.edition].labels
                labels.setdefault(statement.labels.version, statement.labels.sha256)
            case EditionRevealed() if statement.edition in self.editions:
                self.editions[statement.edition].revealed = True
            case _ if isinstance(statement, RunStatement):
                self._add_to_run(statement)
            case _:
                pass

    def _add_to_run(self, statement: RunStatement) -> None:
        run = self.runs.get(statement.run_id)
        if transition_fault(run, statement) is not None:
            return
        self.runs[statement.run_id] = advance(run, statement)
        if run is None:
            place = (statement.edition, statement.team)
            self.entered.setdefault(place, []).append(statement.run_id)

    def _edition_fault(self, statement: LabelsAdded | EditionRevealed) -> str | None:
        facts = self.editions.get(statement.edition)
        if facts is None:
            return f"edition {statement.edition} is not sealed"
        if isinstance(statement, EditionRevealed):
            return f"edition {statement.edition} is revealed already" if facts.revealed else None
        if statement.labels.version in facts.labels:
            return (
                f"labels {statement.labels.version} of {statement.edition} exist already; "
                "choose a new version"
            )
        return None

    def _entry_fault(self, statement: RunReserved | SubmissionRecorded) -> str | None:
        edition, team = statement.edition, statement.team
        if edition not in self.editions:
            return f"edition {edition} is not sealed in this workspace"
        if team not in self.teams:
            return f"team {team} is not registered; register it with: piste team add {team}"
        if isinstance(statement, SubmissionRecorded):
            return None
        sealed = self.editions[edition].sealed
        state = quota_state(self.runs_of(edition, team), rule=sealed.quota)
        if statement.attempt != state.attempts_used + 1:
            return (
                f"run {statement.run_id} claims attempt {statement.attempt} of team {team} "
                f"in {edition}, expected {state.attempts_used + 1}"
            )
        if statement.clip_set_sha256 != sealed.clip_set_sha256:
            return f"run {statement.run_id} is on other clips than {edition} sealed"
        return quota_fault(state, edition=edition, team=team)

    def _labels_fault(self, statement: RunScored) -> str | None:
        facts = self.editions.get(statement.edition)
        if facts is None:
            return f"edition {statement.edition} is not sealed"
        if facts.labels.get(statement.labels.version) != statement.labels.sha256:
            return (
                f"labels {statement.labels.version} with this digest were never committed "
                f"for {statement.edition}"
            )
        return None


def rule_scopes(statement: Statement) -> tuple[Scope, ...]:
    """Return the scopes whose entries `LogState` needs to judge `statement`."""
    scopes: tuple[Scope, ...] = ()
    match statement:
        case WorkspaceCreated() | KeyRotated():
            pass
        case EditionSealed():
            scopes = (Scope(edition=statement.edition, kind="edition-sealed"),)
        case TeamRegistered():
            scopes = (Scope(team=statement.team, kind="team-registered"),)
        case LabelsAdded() | EditionRevealed():
            scopes = _edition_scopes(statement.edition)
        case RunReserved() | SubmissionRecorded():
            scopes = (
                Scope(edition=statement.edition, kind="edition-sealed"),
                Scope(team=statement.team, kind="team-registered"),
                Scope(edition=statement.edition, team=statement.team),
                Scope(run_id=statement.run_id),
            )
        case RunScored():
            scopes = (Scope(run_id=statement.run_id), *_edition_scopes(statement.edition))
        case _:
            scopes = (Scope(run_id=statement.run_id),)
    return scopes


def _edition_scopes(edition: str) -> tuple[Scope, ...]:
    return tuple(
        Scope(edition=edition, kind=kind)
        for kind in ("edition-sealed", "labels-added", "edition-revealed")
    )


def check_append(state: LogState, statement: Statement) -> None:
    """Refuse a statement that breaks the log's rules.

    Raises:
        RefusedByPolicy: with the rule.

    """
    fault = state.fault_of(statement)
    if fault is not None:
        raise RefusedByPolicy(fault)
