"""Which GPUs this host can give a run: the vendor's list, the engine's CDI list, and a probe."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import cached_property

from manifests.errors import RefusedByPolicy
from orchestrator.engine.ports import ContainerEngine, EngineDescription
from orchestrator.engine.rules.platforms import engine_platform
from orchestrator.sandbox.gpu_probe import probe_gpus
from orchestrator.sandbox.ports import GpuInventory
from orchestrator.sandbox.rules.container_options import EntrantSpec
from orchestrator.sandbox.rules.gpu import GpuFacts, GpuKind, GpuPolicy, GpuRequest, choose_gpus
from orchestrator.sandbox.rules.runtimes import hides_gpus
from sandbox_profiles.profile import SandboxProfile, load_profile

CDI_VENDOR = "nvidia.com/gpu="


def choose_host_gpus(
    gpus: GpuInventory, policy: GpuPolicy, *, engine: EngineDescription, profile: SandboxProfile
) -> GpuRequest | None:
    """Decide which of the host's GPUs a run gets under a profile; None for none.

    Raises:
        RefusedByPolicy: when the edition requires a GPU and this host or its runtime offers none.

    """
    offered = gpus.available()
    if policy is GpuPolicy.REQUIRED and offered and hides_gpus(engine.raw, profile):
        raise RefusedByPolicy(
            f"the edition requires a GPU and the runtime {profile.runtime} shows none: add "
            '"--nvproxy" to its runtimeArgs in /etc/docker/daemon.json and reload the engine; '
            "nothing was spent"
        )
    usable = () if hides_gpus(engine.raw, profile) else offered
    return choose_gpus(policy, usable, kind=gpus.kind)


class HostGpus:
    """Implements `orchestrator.sandbox.ports.GpuInventory` over an engine.

    Where the engine knows CDI devices they are named to it, for that survives a reload of the
    host's service manager; otherwise UUIDs are.
    """

    def __init__(
        self,
        engine: ContainerEngine,
        *,
        list_uuids: Callable[[], tuple[str, ...]],
        load_helper: Callable[[], str],
        profile: SandboxProfile | None = None,
    ) -> None:
        """`load_helper` loads an image with a C library and returns its full id."""
        self._engine = engine
        self._list_uuids = list_uuids
        self._load_helper = load_helper
        self._profile = profile or load_profile("certified")

    @cached_property
    def _cdi(self) -> tuple[str, ...]:
        devices = self._engine.describe().cdi_devices
        return tuple(
            device
            for device in sorted(devices)
            if device.startswith(CDI_VENDOR) and device != f"{CDI_VENDOR}all"
        )

    @property
    def kind(self) -> GpuKind:
        """Return how devices are named to the engine."""
        return GpuKind.CDI if self._cdi else GpuKind.UUID

    def available(self) -> tuple[str, ...]:
        """Return the devices' names; empty where the engine has no way to give one."""
        if self._cdi:
            return self._cdi
        return self._list_uuids() if "nvidia" in self._engine.describe().runtimes else ()

    def probe(self, request: GpuRequest) -> tuple[GpuFacts, ...]:
        """Look at the devices from inside a container of our own."""
        spec = EntrantSpec(
            run_id=secrets.token_hex(8),
            image_id=self._load_helper(),
            platform=engine_platform(self._engine.describe().architecture),
            input_volume="",
            output_volume="",
            profile=self._profile,
            gpu=request,
        )
        return probe_gpus(self._engine, spec)
