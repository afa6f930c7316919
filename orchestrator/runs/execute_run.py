"""Run what was reserved: the entrant's image, its repeats, and the frozen consumer (5 to 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from manifests.annotations import parse_entrant_annotation, render_entrant_annotation
from manifests.digests import sha256_hex
from manifests.exam import VOCABULARY_FILE, Exam, render_exam
from manifests.images import ImageIdentity
from manifests.outcomes import Diagnostic, Outcome
from manifests.predictions.lines import ClipExpectation
from manifests.predictions.segmentation import SegmentationPrediction, read_segmentation
from orchestrator.editions.open_clips import EXAM_FILE, ExamInput
from orchestrator.editions.rules.clip_archives import InputFile, annotation_name, input_bytes
from orchestrator.runs.prepare_run import PreparedImage, PreparedRun
from orchestrator.runs.rules.consumer_segments import consumer_annotation
from orchestrator.runs.rules.verdict import Verdict
from orchestrator.runs.run_host import RunHost
from orchestrator.runs.run_stage import Stage, StageResult, run_stage
from orchestrator.sandbox.request import StartFacts
from orchestrator.sandbox.rules.gpu import GpuFacts, gpu_lost
from orchestrator.support.clock import Clock
from orchestrator.support.reporter import Reporter

CONSUMER_SUFFIX = "9"
"""Sets the consumer's containers apart from the entrant's, whose repeats count from 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedRun:
    """A run with its images at the engine."""

    run_id: str
    prepared: PreparedRun
    identity: ImageIdentity
    consumer: ImageIdentity | None
    before_start: Callable[[StartFacts], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedRun:
    """How the run ended. The log is the stages' logs, one after another: secret."""

    verdict: Verdict
    consumer: bytes | None
    log: bytes
    elapsed_s: float
    repeats_agree: bool | None
    gpu_after: tuple[GpuFacts, ...]
    leftovers: tuple[str, ...]


def execute_run(
    run: ReservedRun, *, host: RunHost, clock: Clock, reporter: Reporter
) -> ExecutedRun:
    """Run the entrant's image, then its repeats, then the consumer on what it predicted.

    Raises as `run_in_sandbox`: only before the entrant's container is started.
    """
    stages = _Stages(run, host, clock, reporter)
    first = stages.entrant(suffix="", before_start=run.before_start)
    agree = stages.repeat(first) if run.prepared.request.repeat > 1 else None
    verdict = first.verdict
    if agree is False:
        codes = (*verdict.diagnostics, Diagnostic.PREDICTIONS_DISAGREE)
        verdict = replace(verdict, diagnostics=codes)
    consumer = None
    if run.consumer is not None and verdict.outcome is Outcome.COMPLETED:
        verdict, consumer = stages.consume(verdict, first, run.consumer)
    return ExecutedRun(
        verdict=verdict,
        consumer=consumer,
        log=b"".join(stages.logs),
        elapsed_s=float(round(first.sandbox.elapsed_s)),
        repeats_agree=agree,
        gpu_after=stages.gpu_after,
        leftovers=tuple(stages.leftovers),
    )


class _Stages:
    """Carries one run's stages; each adds its log and what it could not remove."""

    def __init__(self, run: ReservedRun, host: RunHost, clock: Clock, reporter: Reporter) -> None:
        self.run = run
        self.host = host
        self.clock = clock
        self.reporter = reporter
        self.logs: list[bytes] = []
        self.leftovers: list[str] = []
        self.gpu_after: tuple[GpuFacts, ...] = ()

    def entrant(self, *, suffix: str, before_start: Callable[[StartFacts], None]) -> StageResult:
        """Run the entrant's image once."""
        prepared = self.run.prepared
        return self._stage(
            Stage(
                run_id=self.run.run_id,
                identity=self.run.identity,
                image_config=prepared.image.config,
                profile=prepared.profile,
                exam=prepared.exam,
                before_start=before_start,
                suffix=suffix,
                gpu=prepared.gpu,
                gpu_is_lost=self._gpu_is_lost if prepared.gpu is not None else None,
            )
        )

    def repeat(self, first: StageResult) -> bool:
        """Run the image again as often as was asked; tell whether all agree to the last byte."""
        kept = _kept(first.verdict)
        agree = True
        for number in range(2, self.run.prepared.request.repeat + 1):
            again = self.entrant(suffix=str(number), before_start=_nothing)
            agree = agree and _kept(again.verdict) == kept
        return agree

    def consume(
        self, verdict: Verdict, first: StageResult, identity: ImageIdentity
    ) -> tuple[Verdict, bytes | None]:
        """Let the frozen consumer label the predicted intervals; its failure is our side's."""
        prepared = self.run.prepared
        image = prepared.consumer
        assert image is not None
        assert verdict.canonical is not None
        exam = consumer_exam(prepared.exam, verdict.canonical, first, prepared.sealed.vocabulary)
        result = self._stage(_consumer_stage(self.run, identity, image, exam))
        if result.verdict.outcome is Outcome.COMPLETED:
            return verdict, result.verdict.canonical
        codes = (*verdict.diagnostics, Diagnostic.CONSUMER_FAILED, *result.verdict.diagnostics)
        return replace(verdict, outcome=Outcome.PLATFORM_FAULT, diagnostics=codes), None

    def _stage(self, stage: Stage) -> StageResult:
        result = run_stage(stage, engine=self.host.engine, clock=self.clock, reporter=self.reporter)
        self.logs.append(result.sandbox.log)
        self.leftovers += result.sandbox.leftovers
        return result

    def _gpu_is_lost(self) -> bool:
        prepared = self.run.prepared
        assert prepared.gpu is not None
        self.gpu_after = self.host.gpus.probe(prepared.gpu)
        return gpu_lost(prepared.gpu_facts, self.gpu_after)


def _nothing(_facts: StartFacts) -> None:
    """Start a repeat: the run was recorded as started before its first execution."""


def _kept(verdict: Verdict) -> tuple[object, ...]:
    return verdict.outcome, verdict.canonical, dict(verdict.poses or {})


def _consumer_stage(
    run: ReservedRun, identity: ImageIdentity, image: PreparedImage, exam: ExamInput
) -> Stage:
    return Stage(
        run_id=run.run_id,
        identity=identity,
        image_config=image.config,
        profile=run.prepared.profile,
        exam=exam,
        before_start=_nothing,
        suffix=CONSUMER_SUFFIX,
    )


def consumer_exam(
    exam: ExamInput, predictions: bytes, first: StageResult, vocabulary: bytes | None
) -> ExamInput:
    """Return the recognition exam whose segments are the predicted intervals.

    The keypoints are the same files; the annotations are written anew.
    """
    clips = {
        clip: ClipExpectation(n_frames=each.n_frames) for clip, each in first.annotations.items()
    }
    reading = read_segmentation(predictions, source="predictions.jsonl", clips=clips)
    spans = {entry.clip_id: entry for entry in reading.valid_entries()}
    document = Exam(
        edition=exam.exam.edition,
        track="recognition",
        clips=exam.exam.clips,
        vocabulary="vocabulary.txt",
    )
    exam_files = (
        InputFile(EXAM_FILE, render_exam(document)),
        InputFile(VOCABULARY_FILE, vocabulary or b""),
    )
    annotations = {
        annotation_name(clip): _annotation_bytes(first, spans, clip) for clip in exam.exam.clips
    }
    written = {file.name: file.data for file in exam_files} | annotations
    sums = dict(exam.sums) | {name: sha256_hex(data) for name, data in written.items()}
    return ExamInput(
        exam=document,
        sums=sums,
        size_bytes=exam.size_bytes + input_bytes({name: len(d) for name, d in written.items()}),
        clip_files=lambda: _with_annotations(exam, annotations),
        exam_files=exam_files,
    )


def _annotation_bytes(
    first: StageResult, spans: Mapping[str, SegmentationPrediction], clip: str
) -> bytes:
    annotation = first.annotations[clip]
    return render_entrant_annotation(consumer_annotation(annotation, spans[clip].segments))


def _with_annotations(
    exam: ExamInput, annotations: Mapping[str, bytes]
) -> Iterator[tuple[InputFile, InputFile]]:
    for keypoints, annotation in exam.clip_files():
        data = annotations[annotation.name]
        parse_entrant_annotation(data, source=annotation.name)
        yield keypoints, InputFile(annotation.name, data)
