"""Judge what the host says of itself: disks, clock, swap, core dumps, leftovers of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from manifests.text import escape_untrusted
from orchestrator.host.ports import HostFacts
from orchestrator.host.rules.host_findings import HostFinding, Status, Topic, judged

GIB: Final = 2**30
_NEEDED_BYTES: Final = GIB
"""Below it not even a small image and its run's record fit."""
_COMFORTABLE_BYTES: Final = 20 * GIB
_EARLIEST_YEAR: Final = 2026
"""This version was not there before: a clock that says less is wrong."""
_LATEST_YEAR: Final = 2100
_STEP_S: Final = 2.0
_SHOWN_RUNS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReadings:
    """Both clocks of this host, read twice: before and after everything else."""

    wall_before: datetime
    wall_after: datetime
    monotonic_before_s: float
    monotonic_after_s: float


def disk_finding(name: str, folder: str, free_bytes: int | None) -> HostFinding:
    """Judge the free space below a folder; one that cannot be seen from here is no fault."""
    shown = escape_untrusted(folder, 120)
    if free_bytes is None:
        return judged(Topic.DISK, name, f"{shown}: cannot be seen from this host")
    return judged(
        Topic.DISK,
        name,
        f"{shown}: {free_bytes / GIB:.1f} GiB free",
        holds=free_bytes >= _COMFORTABLE_BYTES,
        otherwise=Status.WARN if free_bytes >= _NEEDED_BYTES else Status.FAIL,
        remedy=f"free space there: images often have {_COMFORTABLE_BYTES // GIB} GiB",
    )


def clock_findings(readings: ClockReadings, facts: HostFacts) -> Iterator[HostFinding]:
    """Judge the clocks without any network: deadlines and records depend on them."""
    now = readings.wall_after
    yield judged(
        Topic.CLOCK,
        "time",
        f"{now:%Y-%m-%dT%H:%M:%SZ}; the host's zone is {escape_untrusted(facts.time_zone, 20)}",
        holds=_EARLIEST_YEAR <= now.year < _LATEST_YEAR,
        remedy="set the clock: editions open and close by it, and every record carries it",
    )
    yield _monotonic(readings)
    yield _synchronised(facts.clock_is_synchronised)


def _monotonic(readings: ClockReadings) -> HostFinding:
    by_monotonic = readings.monotonic_after_s - readings.monotonic_before_s
    by_wall = (readings.wall_after - readings.wall_before).total_seconds()
    stepped = abs(by_wall - by_monotonic) > _STEP_S
    return judged(
        Topic.CLOCK,
        "steadiness",
        f"{by_wall:.0f} s by the wall clock, {by_monotonic:.1f} s by the monotonic one",
        holds=by_monotonic >= 0 and not stepped,
        otherwise=Status.FAIL if by_monotonic < 0 else Status.WARN,
        remedy="something sets the clock in steps: let one time service slew it",
    )


def _synchronised(synchronised: bool | None) -> HostFinding:
    words = {True: "the kernel says yes", False: "the kernel says no", None: "cannot be told here"}
    return judged(
        Topic.CLOCK,
        "synchronised",
        words[synchronised],
        holds=synchronised is not False,
        otherwise=Status.WARN,
        remedy="run a time service, as systemd-timesyncd or chrony",
    )


def host_findings(facts: HostFacts, *, noswap: bool | None) -> Iterator[HostFinding]:
    """Judge where plaintext could go beside the sandbox: dumps and swap.

    `noswap` tells whether the engine mounted a memory volume that never swaps; None: not tried.
    """
    pattern = facts.core_pattern
    yield judged(
        Topic.HOST,
        "core dumps",
        "the kernel does not tell" if pattern is None else escape_untrusted(pattern, 80),
        holds=pattern is None or not pattern.startswith("|"),
        otherwise=Status.WARN,
        remedy="a program receives dumps whatever the limit of a container says, and they could "
        "hold clips: sysctl -w kernel.core_pattern=core",
    )
    yield _swap(facts.swap_areas, noswap)


def _swap(areas: tuple[str, ...] | None, noswap: bool | None) -> HostFinding:
    shown = "none" if areas == () else "cannot be told here"
    if areas:
        shown = escape_untrusted(", ".join(areas), 80)
    able = {True: "memory volumes never swap", False: "memory volumes may swap", None: "not tried"}
    return judged(
        Topic.HOST,
        "swap",
        f"{shown}; {able[noswap]}",
        holds=areas == () or noswap is True,
        otherwise=Status.WARN,
        remedy="opened clips could reach the disk: swapoff -a, or use Linux 6.4 or later",
    )


def leftover_findings(
    parts: Mapping[str, Sequence[str]], *, alive: frozenset[str], abandoned: frozenset[str]
) -> Iterator[HostFinding]:
    """Judge what is named after runs at the engine, and runs whose process is gone.

    `alive` and `abandoned` are this workspace's; others' runs cannot be told apart from here.
    """
    yield judged(
        Topic.LEFTOVERS,
        "runs that died",
        _listed(sorted(abandoned)),
        holds=not abandoned,
        otherwise=Status.WARN,
        remedy="piste runs reap finishes or voids them, and removes what they left",
    )
    strange = sorted(parts.keys() - alive - abandoned)
    names = [name for run in strange[:_SHOWN_RUNS] for name in parts[run]]
    yield judged(
        Topic.LEFTOVERS,
        "parts of other runs",
        _listed(strange),
        holds=not strange,
        otherwise=Status.WARN,
        remedy="unless another piste runs now: `piste runs reap` in its workspace, or docker rm "
        f"--force --volumes and docker volume rm of {', '.join(names)}",
    )


def _listed(runs: list[str]) -> str:
    if not runs:
        return "none"
    more = f" and {len(runs) - _SHOWN_RUNS} more" if len(runs) > _SHOWN_RUNS else ""
    return ", ".join(runs[:_SHOWN_RUNS]) + more
