"""What the simulated engine lives in: a clock that is told to move, and scripted entrants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from orchestrator.engine.ports import EngineDescription

_EPOCH: Final = datetime(2026, 12, 1, tzinfo=UTC)


@dataclass(slots=True)
class SimulatedClock:
    """A clock that moves only when it is told to, or when the simulator waits."""

    seconds: float = 0.0

    def now(self) -> datetime:
        """Return the simulated UTC time with whole seconds."""
        return (_EPOCH + timedelta(seconds=self.seconds)).replace(microsecond=0)

    def monotonic(self) -> float:
        """Return the simulated seconds."""
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedEnd:
    """What an entrant does: the files it leaves, how and when it ends. `runs_s` None: never."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    exit_code: int = 0
    out_of_memory: bool = False
    log: bytes = b""
    runs_s: float | None = 0.0
    changed: tuple[str, ...] = ()
    """Paths that it adds to its root, where the root is writable."""
    output_archive: bytes | None = None
    """The tar to answer for `/output` instead, for what no well-behaved file system holds."""


Entrant = Callable[[Mapping[str, bytes]], SimulatedEnd]
"""Receives the files below `/input` and says what it does."""


def sleeps_for_ever(_files: Mapping[str, bytes]) -> SimulatedEnd:
    """Do what an image without a script does, the holder's among them."""
    return SimulatedEnd(runs_s=None)


def simulated_description() -> EngineDescription:
    """Return what a capable engine says of itself."""
    return EngineDescription(
        engine_id="SIMULATED",
        docker="20.10.24",
        api="1.41",
        default_runtime="runc",
        runtimes=("runc", "runsc"),
        runc="1.2.8",
        containerd="1.7.0",
        kernel="6.18.0",
        architecture="x86_64",
        operating_system="simulated",
        store="overlay2",
        cgroup_version="2",
        security_options=("name=seccomp,profile=default",),
        limits={"memory": True, "swap": True, "pids": True, "cpu": True},
        data_root="/var/lib/docker",
        cpus=4,
        memory_bytes=16 * 2**30,
    )
