"""What an engine and a host say is judged one by one, each fault with its remedy."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.host.doctor_engine import engine_findings
from orchestrator.host.doctor_host import (
    GIB,
    ClockReadings,
    clock_findings,
    disk_finding,
    host_findings,
    leftover_findings,
)
from orchestrator.host.ports import HostFacts
from orchestrator.host.rules.host_findings import HostFinding, Status
from sandbox_profiles.profile import load_profile
from tests.support.simulated_world import simulated_description

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
FACTS = HostFacts(core_pattern="core", swap_areas=(), clock_is_synchronised=True, time_zone="UTC")
CERTIFIED = load_profile("certified")


def named(findings: object, name: str) -> HostFinding:
    assert isinstance(findings, list | tuple)
    found = [each for each in findings if each.name == name]
    assert len(found) == 1, f"{len(found)} findings are named {name}"
    assert isinstance(found[0], HostFinding)
    return found[0]


def said(**changes: object) -> list[HostFinding]:
    description = replace(simulated_description(), **changes)  # type: ignore[arg-type]  # fields of EngineDescription
    return list(engine_findings(description, now=NOW))


def test_a_capable_engine_has_nothing_to_remedy() -> None:
    assert {each.status for each in said()} == {Status.OK}
    assert {each.remedy for each in said()} == {None}


@pytest.mark.parametrize(
    ("changes", "name", "status", "remedy"),
    [
        ({"api": "1.40"}, "engine", Status.FAIL, "20.10 or later"),
        ({"api": "unknown"}, "engine", Status.FAIL, "20.10 or later"),
        ({"runc": "1.1.5"}, "runc", Status.WARN, "CVE-2025-31133"),
        ({"store": "vfs"}, "storage", Status.WARN, "overlay2"),
        ({"store": "containerd/vfs"}, "storage", Status.WARN, "overlay2"),
        ({"security_options": ()}, "system-call filter", Status.FAIL, "seccomp"),
        (
            {"limits": {"memory": True, "swap": False, "pids": False, "cpu": True}},
            "limits it claims",
            Status.FAIL,
            "swap, pids",
        ),
        (
            {"cgroup_version": "1", "security_options": ("name=seccomp", "name=rootless")},
            "cgroup",
            Status.FAIL,
            "cgroup version 2",
        ),
        (
            {"raw": {"SystemTime": "2026-12-01T13:00:00.123456789+01:00"}},
            "engine's clock",
            Status.OK,
            None,
        ),
        (
            {"raw": {"SystemTime": "2026-12-01T12:02:00.5Z"}},
            "engine's clock",
            Status.WARN,
            "synchronise",
        ),
    ],
)
def test_what_an_engine_says_is_judged_with_a_remedy(
    changes: dict[str, object], name: str, status: Status, remedy: str | None
) -> None:
    found = named(said(**changes), name)
    assert found.status is status
    assert (remedy or "") in (found.remedy or "")
    assert (found.remedy is None) == (status is Status.OK)


@pytest.mark.parametrize(
    ("free_bytes", "status"),
    [(None, Status.OK), (50 * GIB, Status.OK), (5 * GIB, Status.WARN), (100, Status.FAIL)],
)
def test_free_space_is_judged_where_it_can_be_seen(free_bytes: int | None, status: Status) -> None:
    found = disk_finding("workspace", "/srv", free_bytes)
    assert found.status is status
    assert (found.remedy is None) == (status is Status.OK)


def readings(*, year: int = 2026, wall_s: float = 3, monotonic_s: float = 3) -> ClockReadings:
    before = NOW.replace(year=year)
    return ClockReadings(
        wall_before=before,
        wall_after=before + timedelta(seconds=wall_s),
        monotonic_before_s=100.0,
        monotonic_after_s=100.0 + monotonic_s,
    )


@pytest.mark.parametrize(
    ("given", "facts", "name", "status"),
    [
        (readings(), FACTS, "time", Status.OK),
        (readings(year=1970), FACTS, "time", Status.FAIL),
        (readings(year=2025), FACTS, "time", Status.FAIL),
        (readings(year=2300), FACTS, "time", Status.FAIL),
        (readings(), FACTS, "steadiness", Status.OK),
        (readings(wall_s=60), FACTS, "steadiness", Status.WARN),
        (readings(wall_s=-60), FACTS, "steadiness", Status.WARN),
        (readings(monotonic_s=-1, wall_s=-1), FACTS, "steadiness", Status.FAIL),
        (readings(), FACTS, "synchronised", Status.OK),
        (readings(), replace(FACTS, clock_is_synchronised=None), "synchronised", Status.OK),
        (readings(), replace(FACTS, clock_is_synchronised=False), "synchronised", Status.WARN),
    ],
)
def test_clocks_are_judged_without_a_network(
    given: ClockReadings, facts: HostFacts, name: str, status: Status
) -> None:
    found = named(list(clock_findings(given, facts)), name)
    assert found.status is status
    assert (found.remedy is None) == (status is Status.OK)


@pytest.mark.parametrize(
    ("facts", "noswap", "name", "status"),
    [
        (FACTS, True, "core dumps", Status.OK),
        (replace(FACTS, core_pattern="|/usr/share/apport %p"), True, "core dumps", Status.WARN),
        (replace(FACTS, core_pattern=None), True, "core dumps", Status.OK),
        (FACTS, False, "swap", Status.OK),
        (replace(FACTS, swap_areas=("/swapfile",)), True, "swap", Status.OK),
        (replace(FACTS, swap_areas=("/swapfile",)), False, "swap", Status.WARN),
        (replace(FACTS, swap_areas=("/swapfile",)), None, "swap", Status.WARN),
        (replace(FACTS, swap_areas=None), False, "swap", Status.WARN),
    ],
)
def test_the_host_s_ways_for_plaintext_are_judged(
    facts: HostFacts, noswap: bool | None, name: str, status: Status
) -> None:
    found = named(list(host_findings(facts, noswap=noswap)), name)
    assert found.status is status
    assert (found.remedy is None) == (status is Status.OK)


def test_leftovers_are_told_from_live_runs_and_from_dead_ones() -> None:
    live, dead, strange = "a" * 16, "b" * 16, "c" * 16
    parts = {run: (f"piste-{run}-holder",) for run in (live, dead, strange)}
    found = list(leftover_findings(parts, alive=frozenset({live}), abandoned=frozenset({dead})))
    assert named(found, "runs that died").seen == dead
    assert "piste runs reap" in (named(found, "runs that died").remedy or "")
    assert named(found, "parts of other runs").seen == strange
    assert f"piste-{strange}-holder" in (named(found, "parts of other runs").remedy or "")
    clean = list(leftover_findings({}, alive=frozenset(), abandoned=frozenset()))
    assert {each.status for each in clean} == {Status.OK}
