"""Rolling windows of a qualifier round: five an hour, twenty a day, and when the next is free."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import RefusedByPolicy
from manifests.statements import Statement, SubmissionRecorded, SubmissionRule
from orchestrator.ledger.rules.submission_rate import (
    check_submission_rate,
    next_free_slot,
    submission_times,
)
from tests.support.synthetic_ledger import EDITION, NOW, TEAM, team_registered

RULE = SubmissionRule(per_hour=5, per_day=20)
MIDNIGHT = datetime(2026, 12, 2, tzinfo=UTC)


def minutes_ago(*minutes: float) -> list[datetime]:
    return [NOW - timedelta(minutes=count) for count in minutes]


def test_below_both_caps_the_next_slot_is_now() -> None:
    assert next_free_slot(minutes_ago(1, 2, 3, 4), rule=RULE, now=NOW) is None
    assert next_free_slot([], rule=RULE, now=NOW) is None


def test_the_sixth_in_an_hour_waits_for_the_first_to_leave_the_window() -> None:
    free = next_free_slot(minutes_ago(59, 40, 30, 20, 10), rule=RULE, now=NOW)
    assert free == NOW + timedelta(minutes=1)
    assert next_free_slot(minutes_ago(60, 40, 30, 20, 10), rule=RULE, now=NOW) is None


def test_the_day_window_rolls_across_midnight() -> None:
    times = [MIDNIGHT - timedelta(hours=hours) for hours in range(1, 21)]
    free = next_free_slot(times, rule=RULE, now=MIDNIGHT)
    assert free == MIDNIGHT + timedelta(hours=4)


def test_when_both_windows_are_full_the_later_one_decides() -> None:
    rule = SubmissionRule(per_hour=1, per_day=2)
    free = next_free_slot(minutes_ago(30, 600), rule=rule, now=NOW)
    assert free == NOW + timedelta(minutes=24 * 60 - 600)


def test_a_clock_that_ran_ahead_frees_no_slot() -> None:
    rule = SubmissionRule(per_hour=1, per_day=20)
    ahead = NOW + timedelta(minutes=10)
    assert next_free_slot([ahead], rule=rule, now=NOW) == ahead + timedelta(hours=1)


def test_a_refusal_names_both_counts_and_the_next_free_moment() -> None:
    with pytest.raises(RefusedByPolicy) as refusal:
        check_submission_rate(
            minutes_ago(300, 59, 40, 30, 20, 10), rule=RULE, now=NOW, edition=EDITION, team=TEAM
        )
    assert str(refusal.value) == (
        "team nova has submitted 5 times in the last hour (at most 5) and 6 times in the last "
        "24 hours (at most 20) in epee200-final-2026; the next slot is free at "
        "2026-12-01T12:01:00Z"
    )


@given(
    ages=st.lists(st.integers(0, 3000), max_size=30),
    per_hour=st.integers(1, 6),
    per_day=st.integers(1, 25),
)
@settings(max_examples=80)
def test_the_named_moment_is_the_first_that_is_allowed(
    ages: list[int], per_hour: int, per_day: int
) -> None:
    rule = SubmissionRule(per_hour=per_hour, per_day=per_day)
    times = minutes_ago(*ages)

    def allowed(now: datetime) -> bool:
        hour = sum(moment > now - timedelta(hours=1) for moment in times)
        day = sum(moment > now - timedelta(days=1) for moment in times)
        return hour < per_hour and day < per_day

    free = next_free_slot(times, rule=rule, now=NOW)
    assert (free is None) == allowed(NOW)
    if free is not None:
        assert allowed(free)
        assert not allowed(free - timedelta(seconds=1))
        check_submission_rate(times, rule=rule, now=free, edition=EDITION, team=TEAM)


def test_only_this_teams_submissions_in_this_edition_count() -> None:
    def submitted(team: str, edition: str) -> SubmissionRecorded:
        return SubmissionRecorded(
            at=NOW,
            run_id="00000000000000aa",
            edition=edition,
            team=team,
            predictions_sha256="0" * 64,
            training_data="open-data",
        )

    history: list[Statement] = [
        team_registered(),
        submitted(TEAM, EDITION),
        submitted("lyra", EDITION),
        submitted(TEAM, "other-2026"),
    ]
    assert submission_times(history, edition=EDITION, team=TEAM) == [NOW]
