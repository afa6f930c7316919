"""The one executor: `certify`, `dry-run` and `replay` run images through here and nowhere else.

What differs between them is passed in: the clips with the request, and hooks for what is written
down or shown on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from manifests.annotations import EntrantAnnotation
from manifests.images import ImageIdentity
from manifests.outcomes import Diagnostic, Outcome
from manifests.predictions.lines import ClipExpectation
from orchestrator.editions.open_clips import ExamInput
from orchestrator.editions.rules.clip_archives import stream_input
from orchestrator.images.bring_in_image import bring_in
from orchestrator.images.resolve_image import ResolvedImage
from orchestrator.runs.consumer_exam import consumer_exam
from orchestrator.runs.prepare_run import PreparedRun
from orchestrator.runs.rules.verdict import Verdict, differing_clips, judge_output
from orchestrator.runs.run_host import RunHost
from orchestrator.sandbox.gpu_probe import GpuUnavailable
from orchestrator.sandbox.request import RunObserver, SandboxRequest, SandboxResult, StartFacts
from orchestrator.sandbox.rules.gpu import GpuFacts, GpuRequest, gpu_lost
from orchestrator.sandbox.run_in_sandbox import run_in_sandbox
from orchestrator.support.clock import Clock
from orchestrator.support.reporter import Reporter, Step

CONSUMER_SUFFIX = "9"
"""Sets the consumer's containers apart from the entrant's, whose repeats count from 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunImages:
    """A run's images at the engine."""

    entrant: ImageIdentity
    consumer: ImageIdentity | None


def _nothing(_facts: object) -> None:
    """Go on: nobody asked to be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHooks:
    """Who is told on the way. The first two may still refuse the run, by raising."""

    brought_in: Callable[[RunImages], None] = _nothing
    """The images are at the engine."""
    before_start: Callable[[StartFacts], None] = _nothing
    """The entrant's container was compared with the profile and starts next, for the first time."""
    observer: RunObserver | None = None
    """Watches the first execution. A certified run has none: its log could carry clips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution of an image: how it ended, and what its output is worth."""

    sandbox: SandboxResult
    verdict: Verdict
    annotations: Mapping[str, EntrantAnnotation]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedRun:
    """How the run ended. The log is that of all executions, one after another: secret."""

    images: RunImages
    first: Execution
    verdict: Verdict
    """The first execution's, with what repeats and consumer add to it."""
    consumer: bytes | None
    log: bytes
    differing: tuple[str, ...] | None
    """The clips that a repeat answered differently; None where nothing was repeated."""
    gpu_after: tuple[GpuFacts, ...]
    leftovers: tuple[str, ...]

    @property
    def elapsed_s(self) -> float:
        """Return the whole seconds that the first execution took."""
        return float(round(self.first.sandbox.elapsed_s))

    @property
    def repeats_agree(self) -> bool | None:
        """Tell whether all repeats gave the same answers; None where nothing was repeated."""
        return None if self.differing is None else not self.differing


def execute_run(
    prepared: PreparedRun,
    *,
    host: RunHost,
    clock: Clock,
    reporter: Reporter,
    hooks: RunHooks,
) -> ExecutedRun:
    """Bring the images in, then run the entrant's, its repeats, and the consumer on its answers.

    Raises as `bring_in` and `run_in_sandbox`: once the entrant's container has started, what
    happens to it is a verdict.
    """
    return _Executor(prepared, host, clock, reporter, hooks).run()


class _Executor:
    """Carries one run; each execution adds its log and what it could not remove."""

    def __init__(
        self,
        prepared: PreparedRun,
        host: RunHost,
        clock: Clock,
        reporter: Reporter,
        hooks: RunHooks,
    ) -> None:
        self.prepared = prepared
        self.request = prepared.request
        self.host = host
        self.clock = clock
        self.reporter = reporter
        self.hooks = hooks
        self.logs: list[bytes] = []
        self.leftovers: list[str] = []
        self.gpu_after: tuple[GpuFacts, ...] = ()

    def run(self) -> ExecutedRun:
        images = self._bring_in()
        self.hooks.brought_in(images)
        first = self._first(images.entrant)
        differing = self._repeat(images.entrant, first.verdict)
        verdict = first.verdict
        if differing:
            codes = (*verdict.diagnostics, Diagnostic.PREDICTIONS_DISAGREE)
            verdict = replace(verdict, diagnostics=codes)
        consumer = None
        if images.consumer is not None and verdict.outcome is Outcome.COMPLETED:
            verdict, consumer = self._consume(verdict, first, images.consumer)
        return ExecutedRun(
            images=images,
            first=first,
            verdict=verdict,
            consumer=consumer,
            log=b"".join(self.logs),
            differing=differing,
            gpu_after=self.gpu_after,
            leftovers=tuple(self.leftovers),
        )

    def _bring_in(self) -> RunImages:
        self.reporter.step(Step.PULL)
        consumer = self.prepared.consumer
        brought_in = None if consumer is None else self._bring_in_one(consumer)
        return RunImages(entrant=self._bring_in_one(self.prepared.image), consumer=brought_in)

    def _bring_in_one(self, image: ResolvedImage) -> ImageIdentity:
        return bring_in(
            image,
            sources=self.host.sources,
            free_bytes=self.host.free_bytes,
            reporter=self.reporter,
        )

    def _first(self, identity: ImageIdentity) -> Execution:
        observer = self.hooks.observer
        try:
            return self._entrant(
                identity, "", before_start=self.hooks.before_start, observer=observer
            )
        finally:
            if observer is not None:
                observer.ended()

    def _repeat(self, identity: ImageIdentity, first: Verdict) -> tuple[str, ...] | None:
        """Run again as often as was asked; return the clips that differ, None for no repeat."""
        if self.request.repeat == 1:
            return None
        clips = self.request.exam.exam.clips
        found: set[str] = set()
        for number in range(2, self.request.repeat + 1):
            again = self._entrant(identity, str(number))
            found.update(differing_clips(first, again.verdict, clips))
        return tuple(clip for clip in clips if clip in found)

    def _consume(
        self, verdict: Verdict, first: Execution, identity: ImageIdentity
    ) -> tuple[Verdict, bytes | None]:
        """Let the frozen consumer label the predicted intervals; its failure is our side's."""
        assert verdict.canonical is not None
        assert self.request.consumer is not None
        assert self.prepared.consumer is not None
        exam = consumer_exam(
            self.request.exam,
            verdict.canonical,
            first.annotations,
            vocabulary=self.request.consumer.vocabulary,
        )
        consumer = self.prepared.consumer
        answer = self._execute(consumer, identity, exam, CONSUMER_SUFFIX).verdict
        if answer.outcome is Outcome.COMPLETED:
            return verdict, answer.canonical
        codes = (*verdict.diagnostics, Diagnostic.CONSUMER_FAILED, *answer.diagnostics)
        return replace(verdict, outcome=Outcome.PLATFORM_FAULT, diagnostics=codes), None

    def _entrant(
        self,
        identity: ImageIdentity,
        suffix: str,
        *,
        before_start: Callable[[StartFacts], None] = _nothing,
        observer: RunObserver | None = None,
    ) -> Execution:
        return self._execute(
            self.prepared.image,
            identity,
            self.request.exam,
            suffix,
            gpu=self.prepared.gpu,
            before_start=before_start,
            observer=observer,
        )

    def _execute(
        self,
        image: ResolvedImage,
        identity: ImageIdentity,
        exam: ExamInput,
        suffix: str,
        *,
        gpu: GpuRequest | None = None,
        before_start: Callable[[StartFacts], None] = _nothing,
        observer: RunObserver | None = None,
    ) -> Execution:
        """Run an image once on an exam and validate what it wrote."""
        annotations: dict[str, EntrantAnnotation] = {}

        def see(annotation: EntrantAnnotation) -> None:
            annotations[annotation.clip_id] = annotation

        result = run_in_sandbox(
            self.host.engine,
            self.clock,
            self.reporter,
            request=SandboxRequest(
                run_id=self.prepared.run_id,
                image_id=identity.engine_image_id,
                image_config=image.settings,
                platform=identity.platform,
                profile=self.request.profile,
                input_members=lambda: stream_input(exam.files(see)),
                input_bytes=exam.size_bytes,
                input_sums=exam.sums,
                before_start=before_start,
                gpu=gpu,
                gpu_is_lost=None if gpu is None else self._gpu_is_lost,
                suffix=suffix,
                allow_pose=exam.exam.track == "translation",
                observer=observer,
            ),
        )
        self.logs.append(result.log)
        self.leftovers += result.leftovers
        self.reporter.step(Step.VALIDATE)
        verdict = judge_output(
            exam.exam.track,
            outcome=result.outcome,
            diagnostics=result.diagnostics,
            files=result.files,
            clips={clip: _expectation(each) for clip, each in annotations.items()},
        )
        return Execution(sandbox=result, verdict=verdict, annotations=annotations)

    def _gpu_is_lost(self) -> bool:
        assert self.prepared.gpu is not None
        try:
            self.gpu_after = self.host.gpus.probe(self.prepared.gpu)
        except GpuUnavailable:
            return True
        return gpu_lost(self.prepared.gpu_facts, self.gpu_after)


def _expectation(annotation: EntrantAnnotation) -> ClipExpectation:
    return ClipExpectation(n_segments=len(annotation.segments), n_frames=annotation.n_frames)
