"""Show that the sandbox holds on this engine: a probe tries what an entrant must not be able to.

One container, started exactly as an entrant's but with little memory and few processes, makes a
list of system calls and reports each result; at the end it asks for more memory than it may have.
Under gVisor, which ends at its limits, the two limits have containers of their own. A profile that
an engine silently ignores shows here.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final, assert_never

from manifests.errors import RefusedByPolicy
from manifests.text import escape_untrusted
from orchestrator.engine.ports import ContainerEngine
from orchestrator.sandbox.probe_container import run_probe
from orchestrator.sandbox.rules.probe_checks import Check, greedy_check, probe_checks
from orchestrator.sandbox.rules.sentry_checks import (
    ended_at_process_limit,
    process_check,
    sentry_checks,
)
from sandbox_profiles.profile import Boundary, SandboxProfile

_MEMORY_BYTES: Final = {
    Boundary.HOST_KERNEL: 96 * 2**20,
    Boundary.SENTRY: 192 * 2**20,  # it takes some of it for itself
}
_PIDS: Final = 512
_MEMORY_RETRIES: Final = 2
"""An engine may lose the news of a memory kill for good: a container's end takes its group away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One named check: what was expected, what was seen, whether it holds."""

    name: str
    holds: bool
    expected: str
    seen: str


def _number(result: int) -> str:
    if result < 0:
        return errno.errorcode.get(-result, str(result))
    return str(result)


def _checked(check: Check, result: int | None) -> CheckResult:
    return CheckResult(
        name=check.name,
        holds=result is not None and check.accepts(result),
        expected=check.expected,
        seen="no answer" if result is None else _number(result),
    )


def _pair(checks: tuple[Check, ...], results: list[int]) -> list[CheckResult]:
    """Give each check the result of its last call."""
    paired, position = [], 0
    for check in checks:
        position += len(check.calls)
        result = results[position - 1] if position <= len(results) else None
        paired.append(_checked(check, result))
    return paired


def run_checks(
    engine: ContainerEngine,
    profile: SandboxProfile,
    checks: tuple[Check, ...],
    *,
    run_id: str,
    platform: str,
) -> tuple[tuple[CheckResult, ...], bool]:
    """Make the checks' calls in a container under `profile`, in one go.

    Returns every check with its result, and whether the engine saw a memory kill. `run_id` names
    the probe's parts, so that recovery finds them. Nothing stays behind but a probe image of some
    kilobytes.

    Raises:
        RefusedByPolicy: when the engine made another container than was asked for.
        PlatformFault: when the engine does not start or end it.

    """
    end = run_probe(engine, profile, checks, run_id=run_id, platform=platform)
    return tuple(_pair(checks, end.results)), end.memory_killed


def _memory_result(
    engine: ContainerEngine,
    profile: SandboxProfile,
    *,
    killed: bool,
    run_id: str,
    platform: str,
) -> CheckResult:
    """Ask again in a container of its own where no memory kill was seen."""
    memory = (greedy_check(profile),)
    for _ in range(_MEMORY_RETRIES):
        if killed:
            break
        _, killed = run_checks(engine, profile, memory, run_id=run_id, platform=platform)
    return CheckResult(
        name="the memory limit acts",
        holds=killed,
        expected="out of memory",
        seen="out of memory" if killed else "no memory kill",
    )


def _probe_filtered(
    engine: ContainerEngine, profile: SandboxProfile, *, run_id: str, platform: str
) -> tuple[CheckResult, ...]:
    """Check everything in one container, for the host's kernel outlives its limits."""
    checks = probe_checks(profile)
    results, killed = run_checks(engine, profile, checks, run_id=run_id, platform=platform)
    memory = _memory_result(engine, profile, killed=killed, run_id=run_id, platform=platform)
    return (*results[:-1], memory)


def _probe_sentry(
    engine: ContainerEngine, profile: SandboxProfile, *, run_id: str, platform: str
) -> tuple[CheckResult, ...]:
    """Check in one container, and walk into the limits of processes and memory in one each."""
    checks = sentry_checks(profile)
    results, _ = run_checks(engine, profile, checks, run_id=run_id, platform=platform)
    process = process_check(profile)
    forks = run_probe(engine, profile, (process,), run_id=run_id, platform=platform)
    asked = len(process.calls)
    processes = CheckResult(
        name=process.name,
        holds=ended_at_process_limit(
            forks.results,
            asked=asked,
            exit_code=forks.exit_code,
            memory_killed=forks.memory_killed,
        ),
        expected=process.expected,
        seen=f"{len(forks.results)} of {asked} asked for, exit code {forks.exit_code}",
    )
    memory = _memory_result(engine, profile, killed=False, run_id=run_id, platform=platform)
    return (*results, processes, memory)


def probe_sandbox(
    engine: ContainerEngine, profile: SandboxProfile, *, run_id: str, platform: str
) -> tuple[CheckResult, ...]:
    """Run the probe under `profile` and return every check with its result.

    Raises:
        RefusedByPolicy, PlatformFault: as `run_checks`.

    """
    smaller = {"memory_bytes": _MEMORY_BYTES[profile.boundary], "pids": min(profile.pids, _PIDS)}
    small = profile.model_copy(update=smaller)
    match profile.boundary:
        case Boundary.HOST_KERNEL:
            return _probe_filtered(engine, small, run_id=run_id, platform=platform)
        case Boundary.SENTRY:
            return _probe_sentry(engine, small, run_id=run_id, platform=platform)
    assert_never(profile.boundary)


def require_sandbox(results: tuple[CheckResult, ...]) -> None:
    """Refuse where a check does not hold.

    Raises:
        RefusedByPolicy: with every check that fails.

    """
    failed = [result for result in results if not result.holds]
    if failed:
        facts = "; ".join(
            f"{result.name}: expected {result.expected}, saw {escape_untrusted(result.seen)}"
            for result in failed
        )
        raise RefusedByPolicy(
            f"the sandbox does not hold on this engine: {facts}; nothing was spent"
        )
