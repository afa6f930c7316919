"""What a host brings to a run: engine, registry, GPUs, free space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.engine.ports import ContainerEngine, EngineDescription
from orchestrator.engine.rules.platforms import engine_platform
from orchestrator.host.rules.advisories import runc_advisory
from orchestrator.images.bring_in_image import FreeBytes
from orchestrator.images.resolve_image import ImageSources
from orchestrator.sandbox.ports import GpuInventory
from orchestrator.sandbox.rules.runtimes import runtime_definition
from sandbox_profiles.profile import SandboxProfile

HOST_LOCK = "host"
"""One certified run at a time on a host and workspace: its limits are its own."""

SelfTest = Callable[[SandboxProfile, str], None]
"""Raises when the sandbox does not hold on this engine; the run's id names the probe's parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHost:
    """The machine that runs entrants."""

    name: str
    """The host's name as the record shows it."""
    sources: ImageSources
    free_bytes: FreeBytes
    gpus: GpuInventory
    self_test: SelfTest

    @property
    def engine(self) -> ContainerEngine:
        """Return the engine that images are run by."""
        return self.sources.engine

    def platform(self) -> str:
        """Return the platform that the engine runs, as `linux/amd64`."""
        return engine_platform(self.engine.describe().architecture)


def environment_document(
    engine: EngineDescription, *, profile: SandboxProfile, gpu: list[dict[str, str]] | None
) -> dict[str, object]:
    """Return the environment as the record and `certify --json` show it."""
    advisory = runc_advisory(engine.runc)
    return {
        "docker": engine.docker,
        "api": engine.api,
        "runtime": profile.runtime,
        "runtime_definition": runtime_definition(engine.raw, profile.runtime),
        "runc": engine.runc,
        "containerd": engine.containerd,
        "kernel": engine.kernel,
        "operating_system": engine.operating_system,
        "architecture": engine.architecture,
        "store": engine.store,
        "cgroup": engine.cgroup_version,
        "security": list(engine.security_options),
        "engine_id": engine.engine_id,
        "gpu": gpu,
        "advisories": [] if advisory is None else [advisory],
    }
