"""`piste certify`: the life of a certified run, step by step (design, section 3).

Whatever ends the process, the ledger and the intake record tell the next command what to do:
`recover_runs` finishes or voids the run and removes what is left of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from manifests.digests import sha256_hex
from manifests.encoding import canonical_json
from manifests.errors import DiskFull, PisteError
from manifests.images import ImageIdentity
from manifests.outcomes import Diagnostic
from manifests.runs import RunRecord
from manifests.statements import RunReserved, RunStarted, Statement
from manifests.text import escape_untrusted
from orchestrator.engine.ports import EngineUnavailable
from orchestrator.images.bring_in_image import bring_in
from orchestrator.ledger.ports import Entry
from orchestrator.ledger.rules.quota import QuotaState, decide_reservation
from orchestrator.runs.execute_run import ExecutedRun, ReservedRun, execute_run
from orchestrator.runs.finish_run import (
    keep_output,
    record_end,
    remove_image,
    score_and_sign,
)
from orchestrator.runs.list_runs import team_quota
from orchestrator.runs.prepare_run import (
    CertifyRequest,
    PreparedImage,
    PreparedRun,
    prepare_run,
)
from orchestrator.runs.recover_runs import (
    RunIntent,
    forget_run,
    recover_runs,
    remember_run,
    settle_run,
)
from orchestrator.runs.rules.run_files import EFFECTIVE
from orchestrator.runs.run_evidence import run_folder
from orchestrator.runs.run_host import RunHost, environment_document
from orchestrator.sandbox.parts import remove_leftovers
from orchestrator.sandbox.request import StartFacts
from orchestrator.support.interruption import (
    Interrupted,
    termination_as_error,
    termination_ignored,
)
from orchestrator.support.reporter import Reporter, Step
from orchestrator.workspace.workspace import Workspace
from scorers.cards import ScoreCard

HOST_LOCK = "host"
"""One certified run at a time on a host and workspace: its limits are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedRun:
    """A run that has ended, with what is left of the team's quota."""

    record: RunRecord
    quota: QuotaState
    card: ScoreCard | None
    folder: str


def certify(
    workspace: Workspace, host: RunHost, request: CertifyRequest, reporter: Reporter
) -> CertifiedRun:
    """Run an image on a sealed edition, once, and record everything.

    What the entrant's container does is data: the returned record's outcome says it.

    Raises:
        RefusedByPolicy: before the reservation; nothing was spent.
        PlatformFault: our side failed; a reserved run is voided.

    """
    with workspace.store.lock_run(HOST_LOCK):
        recover_runs(workspace, host.engine, reporter)
        run_id = secrets.token_hex(8)
        with workspace.store.lock_run(run_id), termination_as_error():
            prepared = _prepare(workspace, host, request, run_id, reporter)
            identity = _live(workspace, host, prepared, run_id, reporter)
            clean = _clean_up(workspace, host, run_id, identity, reporter)
            record, card = score_and_sign(workspace, run_id, reporter=reporter)
            if clean:
                forget_run(workspace, run_id)
    return CertifiedRun(
        record=record,
        quota=team_quota(workspace, edition=request.edition, team=request.team),
        card=card,
        folder=str(workspace.store.root / run_folder(run_id)),
    )


def _prepare(
    workspace: Workspace, host: RunHost, request: CertifyRequest, run_id: str, reporter: Reporter
) -> PreparedRun:
    """Prepare under the run's name: a kill in the self-test leaves parts that recovery finds."""
    remember_run(workspace, RunIntent.begun(run_id, engine=host.engine))
    try:
        return prepare_run(workspace, host, request, reporter, run_id=run_id)
    except (PisteError, KeyboardInterrupt):
        with termination_ignored():
            forget_run(workspace, run_id)
        raise


def _live(
    workspace: Workspace, host: RunHost, prepared: PreparedRun, run_id: str, reporter: Reporter
) -> ImageIdentity:
    """Go from the pull to the recorded end; whatever fails on the way voids the run."""
    intent = RunIntent.of(run_id, prepared.image.resolved, engine=host.engine)
    remember_run(workspace, intent)
    try:
        reporter.step(Step.PULL)
        needed = prepared.consumer
        consumer = None if needed is None else _bring_in(needed, host, reporter)
        identity = _bring_in(prepared.image, host, reporter)
        reporter.step(Step.RESERVE)
        _reserve(
            workspace,
            prepared,
            host_name=host.name,
            run_id=run_id,
            identity=identity,
            consumer=consumer,
        )
        executed = execute_run(
            ReservedRun(
                run_id=run_id,
                prepared=prepared,
                identity=identity,
                consumer=consumer,
                before_start=partial(_record_start, workspace, prepared, run_id),
            ),
            host=host,
            clock=workspace.clock,
            reporter=reporter,
        )
        _keep(workspace, prepared, run_id, executed, reporter)
    except (PisteError, KeyboardInterrupt) as error:
        with termination_ignored():
            _give_back(workspace, host, intent, reporter, error)
        raise
    return identity


def _give_back(
    workspace: Workspace, host: RunHost, intent: RunIntent, reporter: Reporter, error: BaseException
) -> None:
    """Void the run for what happened; what the engine will not remove now, recovery will."""
    reason, code = _why(error)
    try:
        settle_run(
            workspace, host.engine, intent, reporter=reporter, reason=reason, diagnostics=(code,)
        )
    except PisteError as second:
        reporter.warn(f"{second}; the next command tries again")


def _why(error: BaseException) -> tuple[str, Diagnostic]:
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return "interrupted by the operator", Diagnostic.INTERRUPTED
    code = Diagnostic.ENGINE_ERROR
    if isinstance(error, EngineUnavailable):
        code = Diagnostic.ENGINE_LOST
    elif isinstance(error, DiskFull) or "no space left" in str(error).lower():
        code = Diagnostic.DISK_FULL
    return f"our side failed: {escape_untrusted(str(error), 300)}", code


def _clean_up(
    workspace: Workspace, host: RunHost, run_id: str, identity: ImageIdentity, reporter: Reporter
) -> bool:
    """Remove parts and image; False where the engine is gone and recovery has to do it."""
    try:
        left = remove_leftovers(host.engine, run_id)
        gone = remove_image(workspace, run_id, identity, engine=host.engine, reporter=reporter)
    except EngineUnavailable as error:
        reporter.warn(f"{error}; the next command removes what is left of run {run_id}")
        return False
    return gone and not left


def _bring_in(image: PreparedImage, host: RunHost, reporter: Reporter) -> ImageIdentity:
    return bring_in(
        image.resolved, sources=host.sources, free_bytes=host.free_bytes, reporter=reporter
    )


def _reserve(
    workspace: Workspace,
    prepared: PreparedRun,
    *,
    host_name: str,
    run_id: str,
    identity: ImageIdentity,
    consumer: ImageIdentity | None,
) -> None:
    """Check the quota and reserve in one transaction."""
    request, statement = prepared.request, prepared.statement

    def make(attempt: int) -> RunReserved:
        return RunReserved(
            at=workspace.clock.now(),
            run_id=run_id,
            edition=request.edition,
            team=request.team,
            attempt=attempt,
            host=host_name,
            image=identity,
            consumer=consumer,
            profile_sha256=statement.profile_sha256,
            clip_set_sha256=statement.clip_set_sha256,
            deadline_s=prepared.profile.deadline_s,
            repeat=request.repeat,
        )

    def decide(history: Sequence[Entry]) -> Statement:
        return decide_reservation(
            history, quota=statement.quota, edition=request.edition, team=request.team, make=make
        )

    workspace.ledger.decide(decide, edition=request.edition, team=request.team)


def _record_start(
    workspace: Workspace, prepared: PreparedRun, run_id: str, facts: StartFacts
) -> None:
    """Write the effective configuration, then say that the run starts: from here it counts."""
    effective = canonical_json(facts.effective)
    workspace.store.replace(f"{run_folder(run_id)}/{EFFECTIVE}", effective)
    gpu = [each.document() for each in prepared.gpu_facts] or None
    workspace.ledger.append(
        RunStarted(
            at=workspace.clock.now(),
            run_id=run_id,
            edition=prepared.request.edition,
            team=prepared.request.team,
            container_id=facts.container_id,
            effective_sha256=sha256_hex(effective),
            environment=environment_document(prepared.engine, profile=prepared.profile, gpu=gpu),
        )
    )


def _keep(
    workspace: Workspace,
    prepared: PreparedRun,
    run_id: str,
    executed: ExecutedRun,
    reporter: Reporter,
) -> None:
    reporter.step(Step.KEEP)
    files = keep_output(workspace, run_id, executed, plan=prepared.sealed.seal.recipients.clips)
    reporter.step(Step.FINISH)
    record_end(workspace, run_id, executed, files, gpu=_gpu_document(prepared, executed))


def _gpu_document(prepared: PreparedRun, executed: ExecutedRun) -> dict[str, object] | None:
    if prepared.gpu is None:
        return None
    return {
        "requested": list(prepared.gpu.devices),
        "before": [each.document() for each in prepared.gpu_facts],
        "after": [each.document() for each in executed.gpu_after],
    }
