"""What every run checks before it starts: certified, dry or replayed, in one order."""

from __future__ import annotations

from dataclasses import dataclass, field

from manifests.editions import EngineMinimum
from manifests.errors import PisteError, PlatformFault
from orchestrator.editions.open_clips import ExamInput
from orchestrator.engine.ports import EngineDescription
from orchestrator.images.resolve_image import ResolvedImage, resolve_image
from orchestrator.images.rules.image_config import neutralise
from orchestrator.runs.rules.run_policy import check_versions
from orchestrator.runs.run_host import RunHost, environment_document
from orchestrator.sandbox.engine_fitness import require_fit_engine
from orchestrator.sandbox.host_gpus import choose_host_gpus
from orchestrator.sandbox.rules.gpu import GpuFacts, GpuPolicy, GpuRequest
from orchestrator.support.reporter import Reporter, Step
from sandbox_profiles.profile import SandboxProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenConsumer:
    """The recognition image that labels predicted intervals, and the signs that it may answer."""

    image: str
    vocabulary: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """An image and its conditions: out of an edition's seal, or, of a dry run, an entrant's."""

    image: str
    exam: ExamInput
    profile: SandboxProfile
    gpu: GpuPolicy
    engine_minimum: EngineMinimum = field(default_factory=EngineMinimum)
    consumer: FrozenConsumer | None = None
    repeat: int = 1
    """How often the image runs inside the one run; the answers are compared."""
    allow_tag: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run that may start: host and sandbox hold, the images are known. Nothing was brought in."""

    run_id: str
    request: RunRequest
    engine: EngineDescription
    gpu: GpuRequest | None
    gpu_facts: tuple[GpuFacts, ...]
    image: ResolvedImage
    consumer: ResolvedImage | None

    def environment(self) -> dict[str, object]:
        """Return the environment as the record and `certify --json` show it."""
        gpu = [each.document() for each in self.gpu_facts] or None
        return environment_document(self.engine, profile=self.request.profile, gpu=gpu)


def prepare_run(
    request: RunRequest, *, host: RunHost, reporter: Reporter, run_id: str
) -> PreparedRun:
    """Check host, sandbox and images; nothing is pulled, reserved or decrypted.

    `run_id` names the parts of the self-test, so that recovery finds them.

    Raises:
        RefusedByPolicy: with the rule, and that nothing was spent.
        MalformedDocument: for an image that is not well formed.
        PlatformFault: the sandbox does not hold here, or the frozen consumer cannot be had.

    """
    profile, engine = request.profile, host.engine.describe()
    require_fit_engine(engine, profile)
    check_versions(docker=engine.docker, runc=engine.runc, minimum=request.engine_minimum)
    gpu = choose_host_gpus(host.gpus, request.gpu, engine=engine, profile=profile)
    reporter.step(Step.SELF_TEST)
    host.self_test(profile, run_id)
    gpu_facts = () if gpu is None else host.gpus.probe(gpu)
    reporter.step(Step.RESOLVE)
    return PreparedRun(
        run_id=run_id,
        request=request,
        engine=engine,
        gpu=gpu,
        gpu_facts=gpu_facts,
        image=_identify(request.image, host, allow_tag=request.allow_tag),
        consumer=None if request.consumer is None else _identify_consumer(request, host),
    )


def _identify(reference: str, host: RunHost, *, allow_tag: bool) -> ResolvedImage:
    resolved = resolve_image(
        reference, sources=host.sources, platform=host.platform(), allow_tag=allow_tag
    )
    neutralise(resolved.settings)  # refuses what cannot be run safely, while nothing is spent
    return resolved


def _identify_consumer(request: RunRequest, host: RunHost) -> ResolvedImage:
    """Identify the frozen consumer; where it cannot be had, that is no fault of the entrant's."""
    assert request.consumer is not None
    try:
        return _identify(request.consumer.image, host, allow_tag=False)
    except PisteError as error:
        raise PlatformFault(
            f"the frozen consumer of {request.exam.exam.edition} cannot be had; "
            f"nothing was spent: {error}"
        ) from error
