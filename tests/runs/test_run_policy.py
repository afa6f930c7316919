"""Who may run what, where and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from manifests.editions import EngineMinimum
from manifests.errors import RefusedByPolicy
from orchestrator.engine.rules.platforms import engine_platform
from orchestrator.runs.rules.run_policy import check_open, check_versions, registered_team
from tests.support.synthetic_ledger import edition_sealed, team_registered

OPENS = datetime(2026, 12, 1, tzinfo=UTC)
CLOSES = datetime(2027, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EDITION = edition_sealed().model_copy(update={"opens": OPENS, "closes": CLOSES})


def test_an_edition_is_open_from_its_first_moment_to_just_before_its_last() -> None:
    for moment in (OPENS, OPENS + SECOND, CLOSES - SECOND):
        check_open(EDITION, moment)


@pytest.mark.parametrize(
    ("moment", "words"),
    [(OPENS - SECOND, "opens at 2026-12-01T00:00:00Z"), (CLOSES, "closed at 2027-03-01")],
)
def test_outside_its_dates_it_is_refused_with_the_date_and_nothing_is_spent(
    moment: datetime, words: str
) -> None:
    with pytest.raises(RefusedByPolicy, match=f"{words}.*nothing was spent"):
        check_open(EDITION, moment)


def test_a_registered_team_is_found_by_its_whole_name() -> None:
    statements = [team_registered("nova"), team_registered("nova-2")]
    assert registered_team(statements, "nova-2") is statements[1]
    with pytest.raises(RefusedByPolicy, match="piste team add nov"):
        registered_team(statements, "nov")


def test_a_teams_name_is_escaped_in_the_refusal() -> None:
    with pytest.raises(RefusedByPolicy) as refused:
        registered_team([], "\x1b[2Jnova")
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("machine", "platform"),
    [("x86_64", "linux/amd64"), ("amd64", "linux/amd64"), ("aarch64", "linux/arm64")],
)
def test_an_engines_processor_names_the_platform(machine: str, platform: str) -> None:
    assert engine_platform(machine) == platform


def test_a_processor_without_a_filter_is_refused() -> None:
    with pytest.raises(RefusedByPolicy, match="riscv64; certified runs need amd64 or arm64"):
        engine_platform("riscv64")


def test_an_engine_or_runtime_older_than_the_edition_demands_is_refused_by_name() -> None:
    minimum = EngineMinimum(docker="28.0", runc="1.2.8")
    check_versions(docker="28.0.0", runc="1.2.8", minimum=minimum)
    with pytest.raises(RefusedByPolicy, match=r"docker is 27\.5\.1.*28\.0 or newer"):
        check_versions(docker="27.5.1", runc="1.3.0", minimum=minimum)
    with pytest.raises(RefusedByPolicy, match=r"runc is 1\.1\.5\+ds1"):
        check_versions(docker="28.0.0", runc="1.1.5+ds1", minimum=minimum)


def test_an_edition_that_demands_nothing_takes_any_version() -> None:
    check_versions(docker="1.0", runc="", minimum=EngineMinimum())
