"""What one execution in the sandbox is asked for, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.engine.ports import UsageSample
from orchestrator.sandbox.rules.collector import OutputViolation
from orchestrator.sandbox.rules.gpu import GpuRequest
from orchestrator.sandbox.rules.outcome import ExecutionFacts
from sandbox_profiles.profile import SandboxProfile


class RunObserver(Protocol):
    """Watches a dry run. A certified run has none: its log could carry clips."""

    def started(self, container_id: str) -> None:
        """Learn that the container runs now."""

    def log(self, piece: bytes) -> None:
        """Receive a piece of the log, from another thread; it is untrusted."""

    def usage(self, sample: UsageSample) -> None:
        """Receive what the container uses at this moment."""

    def ended(self) -> None:
        """Learn that the execution is over, however it went; called once, last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFacts:
    """What is known when the container is about to start."""

    container_id: str
    effective: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRequest:
    """One execution: which image, on which input, under which profile.

    `input_members` gives the tar of `/input`, names relative to it, and is read in a thread;
    `input_sums` holds the SHA-256 of every file in it, by name; `image_config` is the `Config`
    object of the image; `before_start` is called once, when everything is ready, and may refuse by
    raising.
    """

    run_id: str
    image_id: str
    image_config: Mapping[str, Any]
    platform: str
    profile: SandboxProfile
    input_members: Callable[[], Iterable[bytes]]
    input_bytes: int
    input_sums: Mapping[str, str]
    before_start: Callable[[StartFacts], None]
    gpu: GpuRequest | None = None
    gpu_is_lost: Callable[[], bool] | None = None
    """Asked after the run: is the GPU of before still there, unchanged?"""
    suffix: str = ""
    """Empty, or the number of a repeat."""
    allow_pose: bool = False
    observer: RunObserver | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePeaks:
    """The most that was seen in use; None where nothing was measured."""

    memory_bytes: int | None = None
    processes: int | None = None
    cpu_s: float | None = None

    def raised_to(self, sample: UsageSample) -> UsagePeaks:
        """Return the peaks with one more sample."""
        return UsagePeaks(
            memory_bytes=max(self.memory_bytes or 0, sample.memory_peak_bytes),
            processes=max(self.processes or 0, sample.processes),
            cpu_s=max(self.cpu_s or 0.0, sample.cpu_s),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """How an execution ended, and all that is kept of it."""

    facts: ExecutionFacts
    outcome: Outcome
    diagnostics: tuple[Diagnostic, ...]
    files: Mapping[str, bytes]
    violation: OutputViolation | None
    log: bytes
    """At most the profile's `log_bytes`; untrusted, and of a certified run secret."""
    effective: Mapping[str, Any]
    container_id: str
    usage: UsagePeaks
    elapsed_s: float
    engine_message: str | None = None
    """Why the engine would not start it, in the engine's words; untrusted."""
    leftovers: tuple[str, ...] = ()
    """What could not be removed: the host then is unclean."""
