"""`piste certify`: the life of a certified run, step by step.

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
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.engine.ports import EngineUnavailable
from orchestrator.ledger.ports import Entry
from orchestrator.ledger.rules.quota import QuotaState, decide_reservation
from orchestrator.runs.admission import admit, require_room, sealed_request
from orchestrator.runs.execute_run import ExecutedRun, RunHooks, RunImages, execute_run
from orchestrator.runs.finish_run import keep_output, record_end, remove_image, score_and_sign
from orchestrator.runs.list_runs import team_quota
from orchestrator.runs.prepare_run import PreparedRun, prepare_run
from orchestrator.runs.recover_runs import (
    RunIntent,
    forget_run,
    recover_runs,
    remember_run,
    settle_run,
)
from orchestrator.runs.rules.run_files import EFFECTIVE, run_folder
from orchestrator.runs.run_host import HOST_LOCK, RunHost
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyRequest:
    """What the organizer asks for. `repeat` runs the image so many times inside one run."""

    edition: str
    team: str
    image: str
    repeat: int = 1


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
            life = _Life(workspace, host, request, reporter, run_id)
            sealed, prepared = life.prepare()
            identity = life.execute(sealed, prepared)
            clean = life.clean_up(identity)
            record, card = score_and_sign(workspace, run_id, reporter=reporter)
            if clean:
                forget_run(workspace, run_id)
    return CertifiedRun(
        record=record,
        quota=team_quota(workspace, edition=request.edition, team=request.team),
        card=card,
        folder=str(workspace.store.root / run_folder(run_id)),
    )


class _Life:
    """What the ledger and the workspace hear of a run while the executor carries it out."""

    def __init__(
        self,
        workspace: Workspace,
        host: RunHost,
        request: CertifyRequest,
        reporter: Reporter,
        run_id: str,
    ) -> None:
        self.workspace = workspace
        self.host = host
        self.request = request
        self.reporter = reporter
        self.run_id = run_id

    def prepare(self) -> tuple[SealedEdition, PreparedRun]:
        """Prepare under the run's name, by which recovery finds the self-test's parts."""
        remember_run(self.workspace, RunIntent.begun(self.run_id, engine=self.host.engine))
        try:
            self.reporter.step(Step.LOAD)
            asked = self.request
            sealed = load_sealed_edition(
                asked.edition, store=self.workspace.store, ledger=self.workspace.ledger
            )
            admit(self.workspace, sealed, team=asked.team)
            request = sealed_request(
                self.workspace, sealed, asked.image, self.reporter, repeat=asked.repeat
            )
            require_room(self.workspace, request.profile)
            return sealed, prepare_run(
                request, host=self.host, reporter=self.reporter, run_id=self.run_id
            )
        except (PisteError, KeyboardInterrupt):
            with termination_ignored():
                forget_run(self.workspace, self.run_id)
            raise

    def execute(self, sealed: SealedEdition, prepared: PreparedRun) -> ImageIdentity:
        """Go from the pull to the recorded end; whatever fails on the way voids the run."""
        intent = RunIntent.of(self.run_id, prepared.image, engine=self.host.engine)
        remember_run(self.workspace, intent)
        try:
            executed = execute_run(
                prepared,
                host=self.host,
                clock=self.workspace.clock,
                reporter=self.reporter,
                hooks=RunHooks(
                    brought_in=partial(self._reserve, sealed, prepared),
                    before_start=partial(self._record_start, prepared),
                ),
            )
            self._keep(sealed, prepared, executed)
        except (PisteError, KeyboardInterrupt) as error:
            with termination_ignored():
                self._give_back(intent, error)
            raise
        return executed.images.entrant

    def clean_up(self, identity: ImageIdentity) -> bool:
        """Remove parts and image; False where the engine is gone and recovery has to do it."""
        engine, reporter = self.host.engine, self.reporter
        try:
            left = remove_leftovers(engine, self.run_id)
            gone = remove_image(
                self.workspace, self.run_id, identity, engine=engine, reporter=reporter
            )
        except EngineUnavailable as error:
            reporter.warn(f"{error}; the next command removes what is left of run {self.run_id}")
            return False
        return gone and not left

    def _reserve(self, sealed: SealedEdition, prepared: PreparedRun, images: RunImages) -> None:
        """Check the quota and reserve in one transaction."""
        self.reporter.step(Step.RESERVE)
        asked, statement = self.request, sealed.statement

        def make(attempt: int) -> RunReserved:
            return RunReserved(
                at=self.workspace.clock.now(),
                run_id=self.run_id,
                edition=asked.edition,
                team=asked.team,
                attempt=attempt,
                host=self.host.name,
                image=images.entrant,
                consumer=images.consumer,
                profile_sha256=statement.profile_sha256,
                clip_set_sha256=statement.clip_set_sha256,
                deadline_s=prepared.request.profile.deadline_s,
                repeat=asked.repeat,
            )

        def decide(history: Sequence[Entry]) -> Statement:
            return decide_reservation(
                history, quota=statement.quota, edition=asked.edition, team=asked.team, make=make
            )

        self.workspace.ledger.decide(decide, edition=asked.edition, team=asked.team)

    def _record_start(self, prepared: PreparedRun, facts: StartFacts) -> None:
        """Write the effective configuration, then say that the run starts: from here it counts."""
        effective = canonical_json(facts.effective)
        self.workspace.store.replace(f"{run_folder(self.run_id)}/{EFFECTIVE}", effective)
        self.workspace.ledger.append(
            RunStarted(
                at=self.workspace.clock.now(),
                run_id=self.run_id,
                edition=self.request.edition,
                team=self.request.team,
                container_id=facts.container_id,
                effective_sha256=sha256_hex(effective),
                environment=prepared.environment(),
            )
        )

    def _keep(self, sealed: SealedEdition, prepared: PreparedRun, executed: ExecutedRun) -> None:
        self.reporter.step(Step.KEEP)
        plan = sealed.seal.recipients.clips
        files = keep_output(self.workspace, self.run_id, executed, plan=plan)
        self.reporter.step(Step.FINISH)
        gpu = _gpu_document(prepared, executed)
        record_end(self.workspace, self.run_id, executed, files, gpu=gpu)

    def _give_back(self, intent: RunIntent, error: BaseException) -> None:
        """Void the run for what happened; what the engine will not remove now, recovery will."""
        reason, code = _why(error)
        try:
            settle_run(
                self.workspace,
                self.host.engine,
                intent,
                reporter=self.reporter,
                reason=reason,
                diagnostics=(code,),
            )
        except PisteError as second:
            self.reporter.warn(f"{second}; the next command tries again")


def _why(error: BaseException) -> tuple[str, Diagnostic]:
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return "interrupted by the operator", Diagnostic.INTERRUPTED
    code = Diagnostic.ENGINE_ERROR
    if isinstance(error, EngineUnavailable):
        code = Diagnostic.ENGINE_LOST
    elif isinstance(error, DiskFull) or "no space left" in str(error).lower():
        code = Diagnostic.DISK_FULL
    return f"our side failed: {escape_untrusted(str(error), 300)}", code


def _gpu_document(prepared: PreparedRun, executed: ExecutedRun) -> dict[str, object] | None:
    if prepared.gpu is None:
        return None
    return {
        "requested": list(prepared.gpu.devices),
        "before": [each.document() for each in prepared.gpu_facts],
        "after": [each.document() for each in executed.gpu_after],
    }
