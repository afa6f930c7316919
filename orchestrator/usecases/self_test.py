"""Show that the sandbox holds on this engine: a probe tries what an entrant must not be able to.

One container, started exactly as an entrant's but with little memory
and few processes, makes a list of system calls and
reports each result; at the end it asks for more memory than it may have. A profile that an
engine silently ignores shows here.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

from manifests.errors import PlatformFault, RefusedByPolicy
from manifests.names import ENTRANT_ID
from manifests.text import escape_untrusted
from orchestrator.core.container_options import EntrantSpec, entrant_options
from orchestrator.core.effective import differences
from orchestrator.core.elf import parse_probe_report, syscall_probe_elf
from orchestrator.core.image_config import neutralise
from orchestrator.core.sandbox_probe import Check, probe_checks
from orchestrator.core.tiny_image import tiny_image
from orchestrator.ports.engine import ContainerEngine, EngineError, VolumeSpec
from orchestrator.usecases.interruption import termination_as_error, termination_ignored
from orchestrator.usecases.sandbox_parts import (
    PartNames,
    architecture_of,
    ensure_image,
    remove_parts,
)
from sandbox_profiles.profile import SandboxProfile

_MEMORY_BYTES: Final = 96 * 2**20
_PIDS: Final = 512
_TIMEOUT_S: Final = 30.0
_REPORT_BYTES: Final = 2**20
_SUFFIX: Final = "0"
"""Sets the probe's parts apart from a run's own, which have no number, and its repeats' from 2."""


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


def _create_volumes(
    engine: ContainerEngine, names: PartNames, profile: SandboxProfile, *, noswap: bool
) -> None:
    for name, uid in ((names.input, 0), (names.output, ENTRANT_ID)):
        engine.create_volume(
            VolumeSpec(
                name=name,
                size_bytes=profile.output_bytes,
                inodes=64,
                uid=uid,
                gid=uid,
                mode=0o755,
                noswap=noswap,
            )
        )


def _create_probe(
    engine: ContainerEngine,
    names: PartNames,
    profile: SandboxProfile,
    *,
    run_id: str,
    platform: str,
    checks: tuple[Check, ...],
) -> str:
    architecture = architecture_of(platform)
    program = syscall_probe_elf(architecture, [call for check in checks for call in check.calls])
    image = tiny_image({"probe": program}, entrypoint=("/probe",), architecture=architecture)
    options = entrant_options(
        EntrantSpec(
            run_id=run_id,
            image_id=ensure_image(engine, image),
            platform=image.platform,
            input_volume=names.input,
            output_volume=names.output,
            profile=profile,
        )
    )
    container = engine.create_container(names.entrant, options)
    inspected = engine.inspect_container(container) or {}
    found = differences(options, neutralise({"Entrypoint": ["/probe"]}), inspected)
    if found:
        raise RefusedByPolicy(
            f"this engine does not make the container that the profile {profile.name} asks for: "
            + "; ".join(found)
        )
    return container


def _run_probe(
    engine: ContainerEngine,
    names: PartNames,
    profile: SandboxProfile,
    *,
    run_id: str,
    platform: str,
    checks: tuple[Check, ...],
) -> tuple[list[int], bool]:
    """Return the probe's results, and whether the memory limit was seen to act."""
    for noswap in (True, False):
        _create_volumes(engine, names, profile, noswap=noswap)
        container = _create_probe(
            engine, names, profile, run_id=run_id, platform=platform, checks=checks
        )
        try:
            engine.start_container(container)
        except EngineError as error:
            if not noswap or "invalid argument" not in error.engine_message:
                raise
            remove_parts(engine, names)
            continue
        break
    if not engine.wait_for_exit(container, _TIMEOUT_S):
        raise PlatformFault("the sandbox's probe did not end; see `piste doctor`")
    killed = engine.saw_oom(container)
    return parse_probe_report(engine.read_log(container, _REPORT_BYTES)), killed


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
    names = PartNames.of(run_id, _SUFFIX)
    with termination_as_error():
        try:
            results, killed = _run_probe(
                engine, names, profile, run_id=run_id, platform=platform, checks=checks
            )
        finally:
            with termination_ignored():
                remove_parts(engine, names)
    return tuple(_pair(checks, results)), killed


def probe_sandbox(
    engine: ContainerEngine, profile: SandboxProfile, *, run_id: str, platform: str
) -> tuple[CheckResult, ...]:
    """Run the probe under `profile` and return every check with its result.

    Raises:
        RefusedByPolicy, PlatformFault: as `run_checks`.

    """
    smaller = {"memory_bytes": _MEMORY_BYTES, "pids": min(profile.pids, _PIDS)}
    small = profile.model_copy(update=smaller)
    results, killed = run_checks(
        engine, small, probe_checks(small), run_id=run_id, platform=platform
    )
    memory = CheckResult(
        name="the memory limit acts",
        holds=killed,
        expected="out of memory",
        seen="out of memory" if killed else "no memory kill",
    )
    return (*results[:-1], memory)


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
