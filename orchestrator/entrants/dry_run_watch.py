"""Watch a dry run: pass the log on, look into the container, remember the peaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orchestrator.engine.ports import ContainerEngine, UsageSample
from orchestrator.entrants.ports import (
    ContainerWindow,
    NetworkAttempts,
    SpaceUse,
    WindowOpener,
)
from orchestrator.support.reporter import Reporter
from sandbox_profiles.profile import Boundary, boundary_of


class DryRunDisplay(Reporter, Protocol):
    """A reporter that also shows the log and what is in use. The log is untrusted."""

    def log(self, piece: bytes) -> None:
        """Show a piece of the log; called from another thread."""

    def usage(self, sample: UsageSample, space: SpaceUse) -> None:
        """Show what the container uses at this moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was learnt by watching. `unseen` says why something was not measured."""

    tmp_bytes: int | None = None
    tmp_files: int | None = None
    shm_bytes: int | None = None
    tmp_names: tuple[str, ...] = ()
    network: NetworkAttempts | None = None
    unseen: str | None = None


class Watcher:
    """Implements RunObserver for one execution; `watched` holds what it learnt, once that ended."""

    def __init__(
        self, engine: ContainerEngine, windows: WindowOpener, display: DryRunDisplay
    ) -> None:
        self._engine = engine
        self._windows = windows
        self._display = display
        self._window: ContainerWindow | str = "it was not started"
        self._peak = SpaceUse()
        self.watched = Watched()

    def started(self, container_id: str) -> None:
        """Open the window at once: a short run is soon gone."""
        found = self._engine.inspect_container(container_id) or {}
        if boundary_of(str((found.get("HostConfig") or {}).get("Runtime"))) is Boundary.SENTRY:
            # The host's counters for this container stay at zero, whatever the entrant does.
            self._window = "gVisor's own kernel shows neither its network nor its memory"
            return
        pid = int((found.get("State") or {}).get("Pid") or 0)
        self._window = self._windows.open_window(container_id, pid)

    def log(self, piece: bytes) -> None:
        """Pass a piece of the log on."""
        self._display.log(piece)

    def usage(self, sample: UsageSample) -> None:
        """Pass a sample on, with the space in use."""
        self._display.usage(sample, self._look())

    def _look(self) -> SpaceUse:
        if isinstance(self._window, str):
            return SpaceUse()
        now = self._window.space()
        self._peak = SpaceUse(
            tmp_bytes=_larger(self._peak.tmp_bytes, now.tmp_bytes),
            tmp_files=_larger(self._peak.tmp_files, now.tmp_files),
            shm_bytes=_larger(self._peak.shm_bytes, now.shm_bytes),
            tmp_names=now.tmp_names,
        )
        return now

    def ended(self) -> None:
        """Look a last time, count the network's attempts and close the window."""
        if isinstance(self._window, str):
            self.watched = Watched(unseen=self._window)
            return
        self._look()
        network = self._window.network()
        self._window.close()
        self.watched = Watched(
            tmp_bytes=self._peak.tmp_bytes,
            tmp_files=self._peak.tmp_files,
            shm_bytes=self._peak.shm_bytes,
            tmp_names=self._peak.tmp_names,
            network=None if isinstance(network, str) else network,
            unseen=network if isinstance(network, str) else None,
        )


def _larger(one: int | None, other: int | None) -> int | None:
    known = [value for value in (one, other) if value is not None]
    return max(known) if known else None
