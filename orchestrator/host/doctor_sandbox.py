"""Try a profile on an engine: does it fit, does every promise hold, does every limit act."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, assert_never

from manifests.errors import PlatformFault, RefusedByPolicy
from manifests.text import escape_untrusted
from orchestrator.engine.ports import (
    ContainerEngine,
    EngineDescription,
    EngineUnavailable,
    StartRefused,
)
from orchestrator.engine.rules.platforms import engine_platform
from orchestrator.host.rules.host_findings import HostFinding, Status, Topic, judged
from orchestrator.sandbox.engine_fitness import require_fit_engine
from orchestrator.sandbox.parts import PartNames, remove_parts, start_holder
from orchestrator.sandbox.rules import limit_checks as limit_probe
from orchestrator.sandbox.rules.limit_checks import limit_checks, small_limits
from orchestrator.sandbox.rules.runtimes import GVISOR_REGISTRATION, start_remedy
from orchestrator.sandbox.rules.sentry_checks import OWN_KERNEL
from orchestrator.sandbox.self_test import CheckResult, probe_sandbox, run_checks
from sandbox_profiles.profile import Boundary, SandboxProfile

NewRunId = Callable[[], str]
"""Names the parts of one probe; every call another name."""

_NO_TMPFS_LIMIT: Final = "memory volumes ignore their size here: use a Linux kernel with tmpfs"
_CONTROLLER: Final = "enable the cgroup controller {}, and see that the runtime uses cgroups"
_ROWS: Final[dict[str, tuple[str, str]]] = {
    "the memory limit acts": ("memory", _CONTROLLER.format("memory")),
    "the process limit acts": ("processes", _CONTROLLER.format("pids")),
    limit_probe.OWN_PROCESSOR: ("own processors", _CONTROLLER.format("cpuset")),
    limit_probe.OTHER_PROCESSOR: ("other processors", _CONTROLLER.format("cpuset")),
    limit_probe.TMP_SIZE: ("temp space, size", _NO_TMPFS_LIMIT),
    limit_probe.TMP_FILES: ("temp space, files", _NO_TMPFS_LIMIT),
    "/output has its size": ("output, size", _NO_TMPFS_LIMIT),
    limit_probe.SHM_SIZE: ("shared memory", _NO_TMPFS_LIMIT),
    limit_probe.NO_SHM: ("shared memory", "update the engine: it gives one unasked"),
    limit_probe.FILE_SIZE: ("file size", "let the engine set resource limits (ulimits)"),
    limit_probe.OPEN_FILES: ("open files", "let the engine set resource limits (ulimits)"),
    "the root is read-only": ("read-only root", "update the engine: it leaves the root writable"),
    "/input is read-only": ("read-only input", "update the engine: it leaves volumes writable"),
    "there is no network": ("no network", "update the engine: network none is not kept"),
    "system calls are filtered": ("seccomp", "use an engine and a kernel with seccomp"),
    OWN_KERNEL: ("own kernel", "register gVisor's runsc under this name"),
}
"""Check → the row's name and the remedy. All other checks share one row."""
_REASON_CHARACTERS: Final = 800
_REST: Final = "identity and system calls"
_REST_REMEDY: Final = "the profile's filter or user is not in force: update engine and runtime"
_SENTRY_REMEDY: Final = (
    "gVisor's kernel answers otherwise: use another release of runsc, or another profile"
)
_SENTRY_LIMITS: Final = (
    "take --ignore-cgroups, and --platform=kvm, out of the runtimeArgs of runsc in daemon.json"
)
_SENTRY_REMEDIES: Final = {
    "the memory limit acts": _SENTRY_LIMITS,
    "the process limit acts": _SENTRY_LIMITS,
    OWN_KERNEL: f"register gVisor's runsc: {GVISOR_REGISTRATION} in /etc/docker/daemon.json",
}
_LEFT_TO_SENTRY: Final = (
    "what is not asked of gVisor: to count the files of /tmp (they end with the memory), and to "
    "refuse what its own kernel carries out: io_uring, keyrings, namespaces, ptrace"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTrial:
    """What became of one profile: its findings, and why it may not be used here."""

    profile: str
    findings: tuple[HostFinding, ...]
    reasons: tuple[str, ...]

    @property
    def may_run(self) -> bool:
        """Tell whether a certified run under this profile would be let through."""
        return not self.reasons


def probe_limits(
    engine: ContainerEngine, profile: SandboxProfile, *, run_id: str, description: EngineDescription
) -> tuple[CheckResult, ...]:
    """Walk into every limit of the profile, made small. Raises as `run_checks`."""
    small = small_limits(profile)
    results, _ = run_checks(
        engine,
        small,
        limit_checks(small, processors=description.cpus),
        run_id=run_id,
        platform=engine_platform(description.architecture),
    )
    return results


def try_profile(
    engine: ContainerEngine,
    profile: SandboxProfile,
    *,
    description: EngineDescription,
    new_run_id: NewRunId,
) -> ProfileTrial:
    """Probe a profile. Raises EngineUnavailable when the engine is lost; all else is a finding."""
    try:
        require_fit_engine(description, profile)
    except RefusedByPolicy as error:
        return _refused(profile, str(error), Status.ABSENT)
    try:
        platform = engine_platform(description.architecture)
        results = probe_sandbox(engine, profile, run_id=new_run_id(), platform=platform)
        results += probe_limits(engine, profile, run_id=new_run_id(), description=description)
    except EngineUnavailable:
        raise
    except StartRefused as error:
        remedy = start_remedy(error.engine_message)
        return _refused(profile, str(error), Status.FAIL, remedy=remedy)
    except (RefusedByPolicy, PlatformFault) as error:
        return _refused(profile, str(error), Status.FAIL)
    findings = (_memory(description, profile), *sandbox_findings(profile, results))
    failed = [each for each in findings if each.status is Status.FAIL]
    reasons = tuple(f"{each.name}: {each.seen}" for each in failed)
    return ProfileTrial(profile=profile.name, findings=findings, reasons=reasons)


def _refused(
    profile: SandboxProfile, reason: str, status: Status, *, remedy: str | None = None
) -> ProfileTrial:
    shown = escape_untrusted(reason.removesuffix("; nothing was spent"), _REASON_CHARACTERS)
    finding = HostFinding(
        topic=Topic.SANDBOX,
        name="engine and profile",
        status=status,
        seen=shown,
        remedy=remedy or "change what it names, then run `piste doctor` again",
        profile=profile.name,
    )
    return ProfileTrial(profile=profile.name, findings=(finding,), reasons=(shown,))


def _memory(engine: EngineDescription, profile: SandboxProfile) -> HostFinding:
    enough = engine.memory_bytes > profile.memory_bytes
    found = judged(
        Topic.SANDBOX,
        "host's memory",
        f"{engine.memory_bytes / 2**30:.1f} GiB, a run gets {profile.memory_bytes / 2**30:.1f}",
        holds=enough,
        otherwise=Status.WARN,
        remedy="use a host with more memory: the kernel would end a run before its own limit does",
    )
    return _of(profile, found)


def _of(profile: SandboxProfile, found: HostFinding) -> HostFinding:
    return replace(found, profile=profile.name)


def sandbox_findings(
    profile: SandboxProfile, results: tuple[CheckResult, ...]
) -> Iterator[HostFinding]:
    """Yield a row for each limit and guarantee, and one for the many smaller checks."""
    rest = [result for result in results if result.name not in _ROWS]
    for result in results:
        if result.name in _ROWS:
            name, remedy = _ROWS[result.name]
            remedy = _remedy(profile, result.name, remedy)
            found = judged(Topic.SANDBOX, name, _seen(result), holds=result.holds, remedy=remedy)
            yield _of(profile, found)
    failed = [result for result in rest if not result.holds]
    facts = "; ".join(f"{each.name}: saw {escape_untrusted(each.seen, 40)}" for each in failed)
    remedy = _remedy(profile, _REST, _REST_REMEDY)
    seen = f"{len(failed)} of {len(rest)} checks fail: {facts}" if failed else ""
    seen = seen or f"{len(rest)} checks hold"
    yield _of(profile, judged(Topic.SANDBOX, _REST, seen, holds=not failed, remedy=remedy))
    if profile.boundary is Boundary.SENTRY:
        yield _of(profile, judged(Topic.SANDBOX, "left to gVisor", _LEFT_TO_SENTRY))


def _remedy(profile: SandboxProfile, check: str, otherwise: str) -> str:
    match profile.boundary:
        case Boundary.HOST_KERNEL:
            return otherwise
        case Boundary.SENTRY:
            return _SENTRY_REMEDIES.get(check, _SENTRY_REMEDY)
    assert_never(profile.boundary)


def _seen(result: CheckResult) -> str:
    seen = escape_untrusted(result.seen, 40)
    if result.holds:
        return f"{result.name} ({seen})"
    return f"{result.name}: expected {result.expected}, saw {seen}"


def mounts_without_swap(
    engine: ContainerEngine, profile: SandboxProfile, *, platform: str, run_id: str
) -> bool:
    """Start the holder as a run does, and tell whether its volumes are kept off swap."""
    names = PartNames.of(run_id, "")
    try:
        holder = start_holder(
            engine,
            names,
            profile,
            run_id=run_id,
            platform=platform,
            input_bytes=4096,
            input_files=1,
        )
        return holder.noswap
    finally:
        remove_parts(engine, names)
