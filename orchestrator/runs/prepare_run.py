"""Everything about a certified run that can be refused before anything is spent (steps 1 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from manifests.editions import Edition
from manifests.errors import DiskFull, PisteError, PlatformFault, RefusedByPolicy
from manifests.statements import EditionSealed
from orchestrator.editions.open_clips import ExamInput, open_sealed_clips
from orchestrator.editions.rules.sealed_profile import open_profile
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.editions.settle_editions import PROFILE_FILE
from orchestrator.engine.ports import EngineDescription
from orchestrator.images.resolve_image import ResolvedImage, resolve_image
from orchestrator.images.rules.image_config import neutralise
from orchestrator.keys.sealing_port import Purpose
from orchestrator.ledger.rules.quota import quota_fault, quota_state
from orchestrator.ledger.rules.run_states import fold_runs
from orchestrator.runs.rules.run_policy import check_open, check_versions, registered_team
from orchestrator.runs.run_host import RunHost
from orchestrator.sandbox.engine_fitness import require_fit_engine
from orchestrator.sandbox.host_gpus import choose_host_gpus
from orchestrator.sandbox.rules.gpu import GpuFacts, GpuPolicy, GpuRequest
from orchestrator.scoring.rules.scoring import edition_parameters
from orchestrator.support.reporter import Reporter, Step
from orchestrator.workspace.workspace import Workspace
from sandbox_profiles.profile import SandboxProfile

LARGEST_REPEAT = 10

_SPARE_BYTES: Final = 16 << 20
"""For cards, evidence and the ledger, beside what the entrant leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyRequest:
    """What the organizer asks for. `repeat` runs the image so many times inside one run."""

    edition: str
    team: str
    image: str
    repeat: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedImage:
    """An image that was identified and may run; nothing of it is at the engine yet."""

    resolved: ResolvedImage
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run that may be reserved."""

    request: CertifyRequest
    sealed: SealedEdition
    profile: SandboxProfile
    exam: ExamInput
    engine: EngineDescription
    gpu: GpuRequest | None
    gpu_facts: tuple[GpuFacts, ...]
    image: PreparedImage
    consumer: PreparedImage | None

    @property
    def edition(self) -> Edition:
        """Return the edition's own document."""
        return self.sealed.edition

    @property
    def statement(self) -> EditionSealed:
        """Return the statement that sealed the edition."""
        return self.sealed.statement


def prepare_run(
    workspace: Workspace,
    host: RunHost,
    request: CertifyRequest,
    reporter: Reporter,
    *,
    run_id: str,
) -> PreparedRun:
    """Check everything that can be checked; nothing is pulled, reserved or decrypted.

    `run_id` names the parts of the self-test, so that recovery finds them.

    Raises:
        RefusedByPolicy: with the rule, and that nothing was spent.
        MalformedDocument: for an image that is not well formed.
        DiskFull: when what is kept of a run might not fit into the workspace.

    """
    reporter.step(Step.LOAD)
    sealed = load_sealed_edition(request.edition, store=workspace.store, ledger=workspace.ledger)
    _admit(workspace, request, sealed)
    prepared = prepare_on(workspace, host, request, sealed, reporter, run_id=run_id)
    _require_room(workspace, prepared.profile)
    return prepared


def _require_room(workspace: Workspace, profile: SandboxProfile) -> None:
    """Refuse what could end, hours later, with predictions that nobody can keep."""
    free = workspace.store.free_bytes()
    needed = profile.output_bytes + profile.log_bytes + _SPARE_BYTES
    if free < needed:
        raise DiskFull(
            f"{workspace.store.root}: the disk is nearly full: {free} bytes are free, and what is "
            f"kept of a run may take {needed}; free space there and try again, nothing was spent"
        )


def prepare_on(
    workspace: Workspace,
    host: RunHost,
    request: CertifyRequest,
    sealed: SealedEdition,
    reporter: Reporter,
    *,
    run_id: str,
) -> PreparedRun:
    """Check host, sandbox and image against a loaded edition; admission is the caller's."""
    profile = open_profile(sealed.profile, source=f"{sealed.folder}/{PROFILE_FILE}")
    engine = _check_host(host, sealed, profile)
    policy = GpuPolicy(sealed.edition.gpu)
    gpu = choose_host_gpus(host.gpus, policy, engine=engine, profile=profile)
    reporter.step(Step.SELF_TEST)
    host.self_test(profile, run_id)
    gpu_facts = () if gpu is None else host.gpus.probe(gpu)
    reporter.step(Step.RESOLVE)
    image = _identify(request.image, host)
    consumer = _identify_consumer(sealed.edition, host)
    return PreparedRun(
        request=request,
        sealed=sealed,
        profile=profile,
        exam=open_sealed_clips(
            sealed,
            store=workspace.store,
            unsealer=workspace.keyring.unsealer(Purpose.CLIPS),
            reporter=reporter,
        ),
        engine=engine,
        gpu=gpu,
        gpu_facts=gpu_facts,
        image=image,
        consumer=consumer,
    )


def _admit(workspace: Workspace, request: CertifyRequest, sealed: SealedEdition) -> None:
    """Check team, dates, scorer and quota; the quota is checked again when the run is reserved."""
    if not 1 <= request.repeat <= LARGEST_REPEAT:
        raise RefusedByPolicy(f"--repeat {request.repeat}: from 1 to {LARGEST_REPEAT}")
    registrations = workspace.ledger.entries(team=request.team, kind="team-registered")
    registered_team((entry.statement for entry in registrations), request.team)
    check_open(sealed.statement, workspace.clock.now())
    edition_parameters(sealed.edition, sealed.statement.labels.version)
    history = workspace.ledger.entries(edition=request.edition, team=request.team)
    runs = fold_runs(entry.statement for entry in history).values()
    state = quota_state(runs, rule=sealed.statement.quota)
    fault = quota_fault(state, edition=request.edition, team=request.team)
    if fault is not None:
        raise RefusedByPolicy(fault)


def _check_host(host: RunHost, sealed: SealedEdition, profile: SandboxProfile) -> EngineDescription:
    engine = host.engine.describe()
    require_fit_engine(engine, profile)
    check_versions(docker=engine.docker, runc=engine.runc, minimum=sealed.edition.engine_minimum)
    return engine


def _identify(reference: str, host: RunHost) -> PreparedImage:
    resolved = resolve_image(
        reference, sources=host.sources, platform=host.platform(), allow_tag=False
    )
    config = image_config(resolved)
    neutralise(config)  # refuses what cannot be run safely, while nothing is spent
    return PreparedImage(resolved=resolved, config=config)


def _identify_consumer(edition: Edition, host: RunHost) -> PreparedImage | None:
    """Identify the frozen consumer; where it cannot be had, that is no fault of the entrant's."""
    if edition.consumer is None:
        return None
    try:
        return _identify(edition.consumer, host)
    except PisteError as error:
        raise PlatformFault(
            f"the frozen consumer of {edition.edition} cannot be had; nothing was spent: {error}"
        ) from error


def image_config(resolved: ResolvedImage) -> Mapping[str, Any]:
    """Return the `Config` object of the image's own configuration document."""
    return resolved.config.config or {}
