"""Refuse an engine that cannot keep a profile's promises, before anything is spent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import assert_never

from manifests.errors import RefusedByPolicy
from orchestrator.engine.ports import EngineDescription
from orchestrator.sandbox.rules.runtimes import GVISOR_NEXT_STEP, gives_up_limits
from sandbox_profiles.profile import Boundary, SandboxProfile


def _highest_cpu(cpuset: str) -> int:
    return max(int(number) for number in re.findall(r"[0-9]+", cpuset))


def _registering(profile: SandboxProfile) -> str:
    match profile.boundary:
        case Boundary.SENTRY:
            return GVISOR_NEXT_STEP
        case Boundary.HOST_KERNEL:
            return "add it to daemon.json"
    assert_never(profile.boundary)


def _shortcomings(engine: EngineDescription, profile: SandboxProfile) -> Iterator[str]:
    if profile.runtime not in engine.runtimes:
        known = ", ".join(engine.runtimes)
        yield f"it has no runtime {profile.runtime}, only {known}; {_registering(profile)}"
    if gives_up_limits(engine.raw, profile):
        yield (
            f"its runtime {profile.runtime} is registered with --ignore-cgroups, so that no limit "
            "acts; take it out of daemon.json"
        )
    missing = [name for name, able in engine.limits.items() if not able]
    if missing:
        yield f"it cannot limit {', '.join(missing)}; enable these cgroup controllers"
    if engine.cpus < profile.cpus or engine.cpus <= _highest_cpu(profile.cpuset):
        yield (
            f"it has {engine.cpus} CPUs and the profile uses {profile.cpus}, numbers "
            f"{profile.cpuset}; use a larger host"
        )
    if not any("seccomp" in option for option in engine.security_options):
        yield "it filters no system calls; use an engine with seccomp"
    if any("rootless" in option for option in engine.security_options) and (
        engine.cgroup_version != "2"
    ):
        yield "it is rootless without cgroup v2, where limits do not act"


def require_fit_engine(engine: EngineDescription, profile: SandboxProfile) -> None:
    """Refuse an engine by what it says of itself; the self-test shows what it does.

    Raises:
        RefusedByPolicy: with every shortcoming and its remedy.

    """
    found = list(_shortcomings(engine, profile))
    if found:
        raise RefusedByPolicy(
            f"the Docker engine {engine.docker} is too weak for the profile {profile.name}: "
            + "; ".join(found)
            + "; nothing was spent"
        )
