"""The three-run rule as a fold: what is used, held, given back and left."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import RefusedByPolicy
from manifests.statements import QuotaRule, RunReserved, Statement
from orchestrator.ledger.rules.entries import Entry
from orchestrator.ledger.rules.quota import QuotaState, decide_reservation, quota_fault, quota_state
from orchestrator.ledger.rules.run_states import fold_runs
from tests.support.synthetic_ledger import (
    EDITION,
    TEAM,
    run_finished,
    run_reserved,
    run_started,
    run_voided,
)

FATES = {
    "pending": (),
    "started": (run_started,),
    "finished": (run_started, run_finished),
    "given-back": (run_voided,),
    "voided": (run_started, run_finished, run_voided),
}


def story(*fates: str, team: str = TEAM) -> list[Statement]:
    statements: list[Statement] = []
    for number, fate in enumerate(fates, 1):
        run_id = f"{number:016x}"
        statements.append(run_reserved(run_id, number, team=team))
        statements += [make(run_id, team=team) for make in FATES[fate]]
    return statements


def state_of(*fates: str, quota: QuotaRule | None = None) -> QuotaState:
    return quota_state(fold_runs(story(*fates)).values(), rule=quota or QuotaRule())


def reserve(*fates: str, quota: QuotaRule | None = None, team: str = TEAM) -> RunReserved:
    history = [
        Entry(sequence=sequence, statement=statement, envelope=b"")
        for sequence, statement in enumerate(story(*fates, team=team))
    ]
    return decide_reservation(
        history,
        quota=quota or QuotaRule(),
        edition=EDITION,
        team=TEAM,
        make=lambda attempt: run_reserved("00000000000000ff", attempt),
    )


@pytest.mark.parametrize(
    ("fates", "used", "pending", "voided", "left", "attempts_left"),
    [
        ((), 0, 0, 0, 3, 10),
        (("pending",), 0, 1, 0, 2, 9),
        (("started", "finished"), 2, 0, 0, 1, 8),
        (("voided", "given-back", "finished"), 1, 0, 2, 2, 7),
        (("finished", "finished", "finished"), 3, 0, 0, 0, 7),
    ],
)
def test_one_definition_counts_used_reserved_voided_and_left(
    fates: tuple[str, ...], used: int, pending: int, voided: int, left: int, attempts_left: int
) -> None:
    state = state_of(*fates)
    assert (state.used, state.pending, state.voided) == (used, pending, voided)
    assert (state.left, state.attempts_left) == (left, attempts_left)


@pytest.mark.parametrize(
    ("fates", "message"),
    [
        (
            ("finished",) * 3,
            "team nova has used 3 of 3 runs in epee200-final-2026; none was voided",
        ),
        (
            ("finished", "started", "voided", "finished"),
            "team nova has used 3 of 3 runs in epee200-final-2026; 1 was voided",
        ),
        (
            ("finished", "pending", "finished"),
            (
                "team nova has used 2 and reserved 1 of 3 runs in epee200-final-2026; none was voided; "
                "if a reserved run's host died, give it back with: piste runs reap"
            ),
        ),
        (
            ("voided",) * 9 + ("finished",),
            (
                "team nova has made 10 of 10 attempts in epee200-final-2026, 1 of 3 runs used; "
                "9 were voided"
            ),
        ),
    ],
)
def test_a_refusal_names_team_count_bound_and_voids(fates: tuple[str, ...], message: str) -> None:
    with pytest.raises(RefusedByPolicy) as refusal:
        reserve(*fates)
    assert str(refusal.value) == message


def test_a_failing_image_cannot_be_retried_for_ever() -> None:
    quota = QuotaRule(certified_runs=3, attempts=4)
    assert reserve("voided", "voided", "voided", quota=quota).attempt == 4
    with pytest.raises(RefusedByPolicy, match="4 of 4 attempts"):
        reserve("voided", "voided", "voided", "given-back", quota=quota)


def test_the_attempt_counts_refunded_ones_and_other_teams_do_not_matter() -> None:
    assert reserve("voided", "finished").attempt == 3
    assert reserve("finished", "finished", "finished", team="lyra").attempt == 1


@given(
    fates=st.lists(st.sampled_from(sorted(FATES)), max_size=14),
    certified_runs=st.integers(1, 5),
    attempts=st.integers(1, 12),
)
@settings(max_examples=80)
def test_no_history_ever_allows_more_than_both_caps(
    fates: list[str], certified_runs: int, attempts: int
) -> None:
    quota = QuotaRule(certified_runs=certified_runs, attempts=attempts)
    state = state_of(*fates, quota=quota)
    held = sum(fate in {"pending", "started", "finished"} for fate in fates)
    allowed = held < certified_runs and len(fates) < attempts
    assert (quota_fault(state, edition=EDITION, team=TEAM) is None) == allowed
    assert state.used + state.pending + state.voided == state.attempts_used == len(fates)
