"""One stage of a run: an image on an exam's clips, in the sandbox, to a verdict.

`certify`, `dry-run`, `replay` and the frozen consumer all come through here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from manifests.annotations import EntrantAnnotation
from manifests.images import ImageIdentity
from manifests.predictions.lines import ClipExpectation
from orchestrator.editions.open_clips import ExamInput
from orchestrator.editions.rules.clip_archives import stream_input
from orchestrator.engine.ports import ContainerEngine
from orchestrator.runs.rules.verdict import Verdict, judge_output
from orchestrator.sandbox.request import (
    RunObserver,
    SandboxRequest,
    SandboxResult,
    StartFacts,
)
from orchestrator.sandbox.rules.gpu import GpuRequest
from orchestrator.sandbox.run_in_sandbox import run_in_sandbox
from orchestrator.support.clock import Clock
from orchestrator.support.reporter import Reporter, Step
from sandbox_profiles.profile import SandboxProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one stage runs. `before_start` is the last moment at which it may still be refused."""

    run_id: str
    identity: ImageIdentity
    image_config: Mapping[str, Any]
    profile: SandboxProfile
    exam: ExamInput
    before_start: Callable[[StartFacts], None]
    suffix: str = ""
    gpu: GpuRequest | None = None
    gpu_is_lost: Callable[[], bool] | None = None
    observe: RunObserver | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """How a stage ended, and what its output is worth."""

    sandbox: SandboxResult
    verdict: Verdict
    annotations: Mapping[str, EntrantAnnotation] = field(default_factory=dict)


def run_stage(
    stage: Stage, *, engine: ContainerEngine, clock: Clock, reporter: Reporter
) -> StageResult:
    """Run the image once and validate what it wrote. Raises as `run_in_sandbox`."""
    annotations: dict[str, EntrantAnnotation] = {}

    def see(annotation: EntrantAnnotation) -> None:
        annotations[annotation.clip_id] = annotation

    request = SandboxRequest(
        run_id=stage.run_id,
        image_id=stage.identity.engine_image_id,
        image_config=stage.image_config,
        platform=stage.identity.platform,
        profile=stage.profile,
        input_members=lambda: stream_input(stage.exam.files(see)),
        input_bytes=stage.exam.size_bytes,
        input_sums=stage.exam.sums,
        before_start=stage.before_start,
        gpu=stage.gpu,
        gpu_is_lost=stage.gpu_is_lost,
        suffix=stage.suffix,
        allow_pose=stage.exam.exam.track == "translation",
        observe=stage.observe,
    )
    result = run_in_sandbox(engine, clock, reporter, request=request)
    reporter.step(Step.VALIDATE)
    verdict = judge_output(
        stage.exam.exam.track,
        outcome=result.outcome,
        diagnostics=result.diagnostics,
        files=result.files,
        clips={clip: _expectation(each) for clip, each in annotations.items()},
    )
    return StageResult(sandbox=result, verdict=verdict, annotations=annotations)


def _expectation(annotation: EntrantAnnotation) -> ClipExpectation:
    return ClipExpectation(n_segments=len(annotation.segments), n_frames=annotation.n_frames)
