"""How often a team may submit in a qualifier round: rolling windows of an hour and a day."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from manifests.errors import RefusedByPolicy
from manifests.statements import Statement, SubmissionRecorded, SubmissionRule

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def submission_times(history: Iterable[Statement], *, edition: str, team: str) -> list[datetime]:
    """Return when the team submitted in the edition; a declined submission was still one."""
    return [
        statement.at
        for statement in history
        if isinstance(statement, SubmissionRecorded)
        and (statement.edition, statement.team) == (edition, team)
    ]


def next_free_slot(
    times: Iterable[datetime], *, rule: SubmissionRule, now: datetime
) -> datetime | None:
    """Return the moment from which the next submission is allowed, or None when it is now.

    A submission at time t is in the window of length w at `now` while t > now - w. Times after
    `now` (another host's clock runs ahead) count too, so that a wrong clock frees no slot.
    """
    newest_first = sorted(times, reverse=True)
    free = [
        newest_first[cap - 1] + window
        for cap, window in ((rule.per_hour, HOUR), (rule.per_day, DAY))
        if len(newest_first) >= cap
    ]
    return max((moment for moment in free if moment > now), default=None)


def check_submission_rate(
    times: Iterable[datetime], *, rule: SubmissionRule, now: datetime, edition: str, team: str
) -> None:
    """Refuse a submission that comes too early.

    Raises:
        RefusedByPolicy: with the counts of both windows and the next free moment.

    """
    known = list(times)
    free = next_free_slot(known, rule=rule, now=now)
    if free is None:
        return
    hour = sum(moment > now - HOUR for moment in known)
    day = sum(moment > now - DAY for moment in known)
    raise RefusedByPolicy(
        f"team {team} has submitted {hour} times in the last hour (at most {rule.per_hour}) and "
        f"{day} times in the last 24 hours (at most {rule.per_day}) in {edition}; "
        f"the next slot is free at {free.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    )
