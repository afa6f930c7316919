"""Examine a host: may it do certified runs, under which profiles, and what would help.

Limits are probed, not read: each profile's container is started and walks into them. Nothing stays
behind but probe images of some kilobytes, and nothing is repaired here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import PlatformFault, RefusedByPolicy
from manifests.text import escape_untrusted
from orchestrator.engine.ports import ContainerEngine, EngineDescription, EngineUnavailable
from orchestrator.engine.rules.platforms import engine_platform
from orchestrator.host.doctor_engine import engine_findings
from orchestrator.host.doctor_host import (
    ClockReadings,
    clock_findings,
    disk_finding,
    host_findings,
    leftover_findings,
)
from orchestrator.host.doctor_sandbox import (
    NewRunId,
    ProfileTrial,
    mounts_without_swap,
    try_profile,
)
from orchestrator.host.ports import Host
from orchestrator.host.rules.host_findings import HostFinding, Status, Topic, judged
from orchestrator.sandbox.parts import list_leftovers
from orchestrator.sandbox.ports import GpuInventory
from orchestrator.sandbox.rules.gpu import GpuRequest
from orchestrator.support.clock import Clock
from orchestrator.workspace.ports import WorkspaceStore
from sandbox_profiles.profile import SandboxProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What an examination needs; `store` is None where there is no workspace."""

    engine: ContainerEngine
    host: Host
    gpus: GpuInventory
    clock: Clock
    new_run_id: NewRunId
    folder: Path
    """The workspace, or where one would be made."""
    store: WorkspaceStore | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Everything that was found. `engine` is None where none answers, or it was lost."""

    engine: EngineDescription | None
    findings: tuple[HostFinding, ...]
    trials: tuple[ProfileTrial, ...]

    @property
    def host_holds(self) -> bool:
        """Tell whether nothing beside the profiles keeps this host from certified runs."""
        return all(each.status is not Status.FAIL for each in self.findings)

    def may_run(self, profile: str) -> bool:
        """Tell whether a certified run under a profile may be done on this host."""
        return self.host_holds and any(
            trial.may_run for trial in self.trials if trial.profile == profile
        )


def examine_host(examination: Examination, profiles: tuple[SandboxProfile, ...]) -> DoctorReport:
    """Look at everything, whatever fails; an engine that does not answer is a finding too."""
    clock = examination.clock
    wall_before, monotonic_before_s = clock.now(), clock.monotonic()
    engine, found, trials, noswap = _examine_engine(examination, profiles)
    facts = examination.host.facts()
    readings = ClockReadings(
        wall_before=wall_before,
        wall_after=clock.now(),
        monotonic_before_s=monotonic_before_s,
        monotonic_after_s=clock.monotonic(),
    )
    folder = examination.folder.absolute()
    found.append(disk_finding("workspace", str(folder), examination.host.free_bytes(str(folder))))
    found += clock_findings(readings, facts)
    found += host_findings(facts, noswap=noswap)
    order = list(Topic)
    findings = tuple(sorted(found, key=lambda each: order.index(each.topic)))
    return DoctorReport(engine=engine, findings=findings, trials=trials)


def _examine_engine(
    examination: Examination, profiles: tuple[SandboxProfile, ...]
) -> tuple[EngineDescription | None, list[HostFinding], tuple[ProfileTrial, ...], bool | None]:
    """Return the engine, findings, the profiles' trials, and whether volumes are kept off swap."""
    found: list[HostFinding] = []
    trials: list[ProfileTrial] = []
    try:
        engine = examination.engine.describe()
        found += engine_findings(engine, now=examination.clock.now())
        free_bytes = examination.host.free_bytes(engine.data_root)
        found.append(disk_finding("engine's data", engine.data_root, free_bytes))
        found += _leftovers(examination)
        trials.extend(
            try_profile(
                examination.engine, each, description=engine, new_run_id=examination.new_run_id
            )
            for each in profiles
        )
        found += _gpus(examination.gpus)
        noswap = _noswap(examination, engine, profiles, found)
    except EngineUnavailable as error:
        found.append(_lost(error))
        return None, found, tuple(trials), None
    return engine, found, tuple(trials), noswap


def _lost(error: EngineUnavailable) -> HostFinding:
    fact, _, step = str(error).partition(": ")
    return HostFinding(
        topic=Topic.ENGINE,
        name="engine",
        status=Status.FAIL,
        seen=escape_untrusted(fact, 200),
        remedy=escape_untrusted(step or "restart it", 200),
    )


def _noswap(
    examination: Examination,
    engine: EngineDescription,
    profiles: tuple[SandboxProfile, ...],
    found: list[HostFinding],
) -> bool | None:
    """Start the holder once; a host where it does not start can run nothing."""
    try:
        return mounts_without_swap(
            examination.engine,
            profiles[0],
            platform=engine_platform(engine.architecture),
            run_id=examination.new_run_id(),
        )
    except EngineUnavailable:
        raise
    except (RefusedByPolicy, PlatformFault) as error:
        fact = escape_untrusted(str(error), 300)
        remedy = "see the engine's own log: every run starts with this container"
        found.append(judged(Topic.SANDBOX, "holder", fact, holds=False, remedy=remedy))
        return None


def _gpus(gpus: GpuInventory) -> Iterator[HostFinding]:
    """Look from inside a container: lists of the host lie."""
    devices = gpus.available()
    if not devices:
        seen = "none that the engine can give; editions that require one are refused here"
        yield judged(Topic.GPU, "devices", seen)
        return
    yield judged(Topic.GPU, "devices", escape_untrusted(", ".join(devices), 160))
    try:
        seen_inside = gpus.probe(GpuRequest(kind=gpus.kind, devices=devices[:1]))
    except EngineUnavailable:
        raise
    except (RefusedByPolicy, PlatformFault) as error:
        yield judged(
            Topic.GPU,
            "inside a container",
            escape_untrusted(str(error).removesuffix("; nothing was spent"), 300),
            holds=False,
            otherwise=Status.WARN,
            remedy="install the vendor's container toolkit and restart the engine",
        )
        return
    names = (f"{gpu.name}, driver {gpu.driver_version}" for gpu in seen_inside)
    yield judged(Topic.GPU, "inside a container", escape_untrusted("; ".join(names), 200))


def _leftovers(examination: Examination) -> Iterator[HostFinding]:
    parts = list_leftovers(examination.engine)
    store = examination.store
    known = frozenset(store.intents()) if store is not None else frozenset()
    alive = frozenset(run for run in known if store is not None and store.is_run_alive(run))
    yield from leftover_findings(parts, alive=alive, abandoned=known - alive)
