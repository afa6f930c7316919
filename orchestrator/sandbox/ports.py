"""The GPUs that the engine can give a container."""

from __future__ import annotations

from typing import Protocol

from orchestrator.sandbox.rules.gpu import GpuFacts, GpuKind, GpuRequest


class GpuInventory(Protocol):
    """What this host offers, and a look from inside a container: lists lie."""

    @property
    def kind(self) -> GpuKind:
        """How devices are named to the engine."""

    def available(self) -> tuple[str, ...]:
        """Return the devices' names, empty where the engine offers none."""

    def probe(self, request: GpuRequest) -> tuple[GpuFacts, ...]:
        """Look at the devices from inside a container of our own.

        Raises:
            PlatformFault: when the engine cannot give them.

        """


class NoGpus:
    """A host without GPUs."""

    kind = GpuKind.UUID

    def available(self) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def probe(self, request: GpuRequest) -> tuple[GpuFacts, ...]:
        """Find nothing."""
        del request
        return ()
