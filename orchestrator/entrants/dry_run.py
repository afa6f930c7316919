"""`piste dry-run`: what a certified run would record, without workspace, keys or ledger.

The same path as a certified run: profile, checks, sandbox, collector, validator and scorer. What
differs is what an entrant may see: the log, the peaks and a diagnosis.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace

from manifests.errors import PisteError, RefusedByPolicy
from manifests.images import ImageIdentity, Transport
from manifests.oci import WrongPlatform
from orchestrator.engine.ports import ContainerEngine
from orchestrator.entrants.borrowed_image import borrowed_image
from orchestrator.entrants.dry_run_diagnosis import CloserLook, look_closer, observation_of
from orchestrator.entrants.dry_run_input import DryRunInput
from orchestrator.entrants.dry_run_report import DryRunRefusal, DryRunReport
from orchestrator.entrants.dry_run_watch import DryRunDisplay, Watched, Watcher
from orchestrator.entrants.ports import WindowOpener
from orchestrator.entrants.rules.determinism import differing_clips
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.observations import Observation
from orchestrator.entrants.rules.ranking import diagnose
from orchestrator.images.bring_in_image import NoRoomForImage
from orchestrator.images.resolve_image import resolve_image
from orchestrator.images.rules.image_config import neutralise
from orchestrator.runs.prepare_run import PreparedImage, image_config
from orchestrator.runs.run_host import RunHost, environment_document
from orchestrator.runs.run_stage import Stage, StageResult, run_stage
from orchestrator.sandbox.engine_fitness import require_fit_engine
from orchestrator.sandbox.host_gpus import choose_host_gpus
from orchestrator.sandbox.request import StartFacts
from orchestrator.sandbox.rules.gpu import GpuFacts, GpuPolicy, GpuRequest, gpu_lost
from orchestrator.support.clock import Clock
from orchestrator.support.interruption import termination_as_error
from orchestrator.support.reporter import Step
from sandbox_profiles.profile import SandboxProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunRequest:
    """What an entrant asks for. `repeat` runs the image so many times and compares."""

    image: str
    exam: DryRunInput
    profile: SandboxProfile
    gpu: GpuPolicy = GpuPolicy.OPTIONAL
    repeat: int = 1
    second_pass: bool = True
    """After a failure, look with a writable root where it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunTools:
    """What a dry run works with."""

    host: RunHost
    clock: Clock
    windows: WindowOpener
    display: DryRunDisplay


def dry_run(tools: DryRunTools, request: DryRunRequest) -> DryRunReport | DryRunRefusal:
    """Run an image on open clips as a certified run would, and say what that would record.

    Removes containers and volumes, and the image unless it was there before.

    Raises:
        MalformedDocument: for an image that is not well formed.
        PlatformFault: our side fails before the container starts.
        Interrupted: on a signal, after everything was removed.

    """
    with termination_as_error():
        try:
            return _DryRun(tools, request).run()
        except (RefusedByPolicy, NoRoomForImage) as error:
            return DryRunRefusal(error=error, findings=tuple(_refusal_findings(error)))


def _refusal_findings(error: PisteError) -> Iterator[Finding]:
    causes = {
        WrongPlatform: (
            Cause.WRONG_PLATFORM,
            "build it for the engine's platform: docker build --platform linux/amd64 …",
        ),
        NoRoomForImage: (
            Cause.IMAGE_TOO_LARGE,
            "make room here, or make it smaller: no build tools, no caches, one framework",
        ),
    }
    for kind, (cause, remedy) in causes.items():
        if isinstance(error, kind):
            yield Finding(cause=cause, certainty=Certainty.PROVEN, fact=str(error), remedy=remedy)


class _DryRun:
    """Carries one dry run through its steps."""

    def __init__(self, tools: DryRunTools, request: DryRunRequest) -> None:
        self.tools = tools
        self.request = request
        self.run_id = secrets.token_hex(8)
        self.gpu: GpuRequest | None = None
        self.gpu_facts: tuple[GpuFacts, ...] = ()

    @property
    def engine(self) -> ContainerEngine:
        return self.tools.host.engine

    def run(self) -> DryRunReport:
        image = self._prepare()
        with borrowed_image(
            image.resolved, host=self.tools.host, reporter=self.tools.display
        ) as held:
            identity = held.identity
            watcher = Watcher(self.engine, self.tools.windows, self.tools.display)
            try:
                first = self._stage(image, identity, watcher=watcher, suffix="")
            finally:
                watched = watcher.finish()
            differing = self._repeat(image, identity, first)
            seen = observation_of(
                first, self.request.exam, self.request.profile, watched=watched, differing=differing
            )
            seen = self._look_closer(replace(seen, has_gpu=self.gpu is not None), image, identity)
        return self._report(seen, first, identity=identity, watched=watched, removed=held.removed)

    def _prepare(self) -> PreparedImage:
        """Check what `certify` checks before anything is spent, in its order."""
        host, profile, display = self.tools.host, self.request.profile, self.tools.display
        engine = self.engine.describe()
        require_fit_engine(engine, profile)
        self.gpu = choose_host_gpus(host.gpus, self.request.gpu, engine=engine, profile=profile)
        display.step(Step.SELF_TEST)
        host.self_test(profile, secrets.token_hex(8))
        self.gpu_facts = () if self.gpu is None else host.gpus.probe(self.gpu)
        display.step(Step.RESOLVE)
        resolved = resolve_image(
            self.request.image, sources=host.sources, platform=host.platform(), allow_tag=True
        )
        if resolved.transport is Transport.REGISTRY and resolved.reference != self.request.image:
            display.note(f"{self.request.image} is {resolved.reference}")
        config = image_config(resolved)
        neutralise(config)
        return PreparedImage(resolved=resolved, config=config)

    def _stage(
        self, image: PreparedImage, identity: ImageIdentity, *, watcher: Watcher | None, suffix: str
    ) -> StageResult:
        stage = Stage(
            run_id=self.run_id,
            identity=identity,
            image_config=image.config,
            profile=self.request.profile,
            exam=self.request.exam.clips.exam,
            before_start=_nothing,
            suffix=suffix,
            gpu=self.gpu,
            gpu_is_lost=None if self.gpu is None else self._gpu_is_lost,
            observe=watcher,
        )
        display = self.tools.display
        return run_stage(stage, engine=self.engine, clock=self.tools.clock, reporter=display)

    def _gpu_is_lost(self) -> bool:
        assert self.gpu is not None
        return gpu_lost(self.gpu_facts, self.tools.host.gpus.probe(self.gpu))

    def _repeat(
        self, image: PreparedImage, identity: ImageIdentity, first: StageResult
    ) -> tuple[str, ...] | None:
        """Run again as often as was asked; return the clips that differ, None for no repeat."""
        if self.request.repeat == 1:
            return None
        clips = self.request.exam.clips.exam.exam.clips
        found: set[str] = set()
        for number in range(2, self.request.repeat + 1):
            again = self._stage(image, identity, watcher=None, suffix=str(number))
            found.update(differing_clips(first.verdict, again.verdict, clips))
        return tuple(clip for clip in clips if clip in found)

    def _look_closer(
        self, seen: Observation, image: PreparedImage, identity: ImageIdentity
    ) -> Observation:
        return look_closer(
            seen,
            CloserLook(
                run_id=self.run_id,
                identity=identity,
                image_config=image.config,
                clips=self.request.exam.clips,
                second_pass=self.request.second_pass,
            ),
            engine=self.engine,
            reporter=self.tools.display,
        )

    def _report(
        self,
        seen: Observation,
        first: StageResult,
        *,
        identity: ImageIdentity,
        watched: Watched,
        removed: bool,
    ) -> DryRunReport:
        exam = self.request.exam
        card, unscored = None, _unscored(seen, exam)
        if unscored is None:
            self.tools.display.step(Step.SCORE)
            assert exam.scoring is not None
            assert first.verdict.canonical is not None
            card = exam.scoring.card(first.verdict.canonical)
        gpu = [each.document() for each in self.gpu_facts] or None
        return DryRunReport(
            outcome=seen.outcome,
            diagnostics=seen.diagnostics,
            stage=first,
            identity=identity,
            profile=self.request.profile,
            environment=environment_document(
                self.engine.describe(), profile=self.request.profile, gpu=gpu
            ),
            track=exam.track,
            place=exam.place,
            clips=len(exam.clips.exam.exam.clips),
            watched=watched,
            findings=diagnose(seen),
            repeat=self.request.repeat,
            differing_clips=seen.differing_clips,
            card=card,
            unscored=unscored,
            outside_writes=seen.outside_writes,
            image_removed=removed,
        )


def _unscored(seen: Observation, exam: DryRunInput) -> str | None:
    if not seen.completed:
        return f"a run that ends as {seen.outcome.value} is not scored"
    return "there are no labels" if exam.scoring is None else None


def _nothing(_facts: StartFacts) -> None:
    """Start: there is nothing to record."""
