"""How many runs and attempts a team has left in an edition: a fold over the log, nothing stored.

One definition (design, section 3): a run that started counts unless it was voided; a reserved run
that has not started yet holds its place; an attempt is every reservation, refunded ones included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from manifests.errors import RefusedByPolicy
from manifests.statements import QuotaRule, RunReserved
from orchestrator.ledger.rules.entries import Entry
from orchestrator.ledger.rules.run_states import Run, RunState, fold_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaState:
    """One team's runs in one edition, and what is left of both caps."""

    certified_runs: int
    attempts: int
    used: int
    pending: int
    voided: int
    attempts_used: int

    @property
    def left(self) -> int:
        """Certified runs that can still be reserved, by the first cap alone."""
        return max(0, self.certified_runs - self.used - self.pending)

    @property
    def attempts_left(self) -> int:
        """Reservations that are still allowed."""
        return max(0, self.attempts - self.attempts_used)


def quota_state(runs: Iterable[Run], *, rule: QuotaRule) -> QuotaState:
    """Count one team's runs in one edition; submissions are no runs."""
    certified = [run for run in runs if run.state is not RunState.SUBMITTED]
    return QuotaState(
        certified_runs=rule.certified_runs,
        attempts=rule.attempts,
        used=sum(run.counts for run in certified),
        pending=sum(run.pending for run in certified),
        voided=sum(run.state is RunState.VOIDED for run in certified),
        attempts_used=len(certified),
    )


def quota_fault(state: QuotaState, *, edition: str, team: str) -> str | None:
    """Return why the team may not reserve another run, or None if it may."""
    if state.left == 0:
        pending = f" and reserved {state.pending}" if state.pending else ""
        advice = (
            "; if a reserved run's host died, give it back with: piste runs reap"
            if state.pending
            else ""
        )
        return (
            f"team {team} has used {state.used}{pending} of {state.certified_runs} runs "
            f"in {edition}; {_voided(state.voided)}{advice}"
        )
    if state.attempts_left == 0:
        return (
            f"team {team} has made {state.attempts_used} of {state.attempts} attempts "
            f"in {edition}, {state.used} of {state.certified_runs} runs used; "
            f"{_voided(state.voided)}"
        )
    return None


def _voided(count: int) -> str:
    match count:
        case 0:
            return "none was voided"
        case 1:
            return "1 was voided"
        case _:
            return f"{count} were voided"


def decide_reservation(
    history: Sequence[Entry],
    *,
    quota: QuotaRule,
    edition: str,
    team: str,
    make: Callable[[int], RunReserved],
) -> RunReserved:
    """Return `make(attempt)` when the team may reserve another run; for `Ledger.decide`.

    `history` is the team's in the edition, complete. `attempt` counts from 1, refunded ones
    included.

    Raises:
        RefusedByPolicy: with what was used, reserved and voided, and the cap.

    """
    runs = fold_runs(entry.statement for entry in history).values()
    ours = [run for run in runs if (run.edition, run.team) == (edition, team)]
    state = quota_state(ours, rule=quota)
    fault = quota_fault(state, edition=edition, team=team)
    if fault is not None:
        raise RefusedByPolicy(fault)
    return make(state.attempts_used + 1)
