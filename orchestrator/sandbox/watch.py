"""What is learnt of one execution, fact by fact, until it is judged."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.sandbox.request import UsagePeaks
from orchestrator.sandbox.rules.collector import CollectedFiles, OutputViolation
from orchestrator.sandbox.rules.outcome import ExecutionFacts, StartFailure
from sandbox_profiles.profile import SandboxProfile


@dataclass(slots=True, kw_only=True)
class Watch:
    """What is learnt while the container runs."""

    exit_code: int | None = None
    deadline_fired: bool = False
    out_of_memory: bool = False
    start: StartFailure | None = None
    engine_message: str | None = None
    engine_lost: bool = False
    engine_error: bool = False
    holder_lost: bool = False
    input_changed: bool = False
    gpu_lost: bool = False
    output: CollectedFiles | OutputViolation | None = None
    log: bytes = b""
    usage: UsagePeaks = field(default_factory=UsagePeaks)
    elapsed_s: float = 0.0

    def facts(self, profile: SandboxProfile) -> ExecutionFacts:
        """Return what the outcome is judged by."""
        return ExecutionFacts(
            start_failure=self.start,
            deadline_fired=self.deadline_fired,
            out_of_memory=self.out_of_memory,
            engine_lost=self.engine_lost,
            engine_error=self.engine_error,
            holder_lost=self.holder_lost,
            input_changed=self.input_changed,
            gpu_lost=self.gpu_lost,
            exit_code=self.exit_code,
            output=self.output,
            output_limit_bytes=profile.output_bytes,
        )
