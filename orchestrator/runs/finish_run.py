"""Keep, record, clean up, score and sign a run (steps 9 to 13); recovery uses the same pieces."""

from __future__ import annotations

from manifests.digests import sha256_hex
from manifests.errors import PisteError, PlatformFault
from manifests.images import ImageIdentity
from manifests.outcomes import Diagnostic, Outcome
from manifests.runs import RunRecord
from manifests.statements import ImageRemoved, RunFinished, RunVoided
from orchestrator.engine.ports import ContainerEngine
from orchestrator.images.remove_image import remove_image_with_proof
from orchestrator.keys.rules.recipients import SealingPlan
from orchestrator.keys.sealing_port import Purpose
from orchestrator.runs.execute_run import ExecutedRun
from orchestrator.runs.rules.run_files import (
    CONSUMER_ANSWERS,
    EFFECTIVE,
    LOG,
    PREDICTIONS,
    RAW_PREDICTIONS,
    run_folder,
    sealed_pose,
)
from orchestrator.runs.run_evidence import load_record, write_evidence
from orchestrator.runs.score_run import score_run
from orchestrator.support.reporter import Reporter, Step
from orchestrator.workspace.workspace import Workspace
from scorers.cards import ScoreCard


def keep_output(
    workspace: Workspace, run_id: str, executed: ExecutedRun, *, plan: SealingPlan
) -> dict[str, str]:
    """Write everything that is kept of a run, durably; return SHA-256 by name.

    Predictions are kept of every run. Poses, the log and an invalid file go to the clips'
    recipients: they could carry clips, and a pose may be a copy of one.
    """
    verdict = executed.verdict
    poses = verdict.poses or {}
    files = {sealed_pose(name): workspace.sealer.seal(poses[name], plan) for name in poses}
    if verdict.canonical is not None:
        files[PREDICTIONS] = verdict.canonical
    elif verdict.raw is not None:
        files[RAW_PREDICTIONS] = workspace.sealer.seal(verdict.raw, plan)
    if executed.consumer is not None:
        files[CONSUMER_ANSWERS] = executed.consumer
    files[LOG] = workspace.sealer.seal(executed.log, plan)
    for name, data in files.items():
        workspace.store.replace(f"{run_folder(run_id)}/{name}", data)
    kept = {name: sha256_hex(data) for name, data in files.items()}
    effective = workspace.store.read_optional(f"{run_folder(run_id)}/{EFFECTIVE}")
    return kept if effective is None else kept | {EFFECTIVE: sha256_hex(effective)}


def record_end(
    workspace: Workspace,
    run_id: str,
    executed: ExecutedRun,
    files: dict[str, str],
    *,
    gpu: dict[str, object] | None,
) -> None:
    """Append `run-finished`; a platform fault is voided at once, for it is not the entrant's."""
    edition, team = _place(workspace, run_id)
    verdict = executed.verdict
    workspace.ledger.append(
        RunFinished(
            at=workspace.clock.now(),
            run_id=run_id,
            edition=edition,
            team=team,
            outcome=verdict.outcome,
            diagnostics=verdict.diagnostics,
            predictions_sha256=files.get(PREDICTIONS),
            files=files,
            elapsed_s=executed.elapsed_s,
            repeats_agree=executed.repeats_agree,
            gpu=gpu,
        )
    )
    if verdict.outcome is Outcome.PLATFORM_FAULT:
        void_run(
            workspace,
            run_id,
            reason="our side failed: " + ", ".join(verdict.diagnostics),
            diagnostics=verdict.diagnostics,
        )


def void_run(
    workspace: Workspace,
    run_id: str,
    *,
    reason: str,
    diagnostics: tuple[Diagnostic, ...] = (),
    by_organizer: bool = False,
) -> None:
    """Append `run-voided`: the run does not count, for a public reason.

    Raises:
        RefusedByPolicy: the run is voided already, unknown, or a submission.

    """
    edition, team = _place(workspace, run_id)
    workspace.ledger.append(
        RunVoided(
            at=workspace.clock.now(),
            run_id=run_id,
            edition=edition,
            team=team,
            reason=reason,
            by="organizer" if by_organizer else "tool",
            diagnostics=diagnostics,
        )
    )


def remove_image(
    workspace: Workspace,
    run_id: str,
    identity: ImageIdentity,
    *,
    engine: ContainerEngine,
    reporter: Reporter,
) -> bool:
    """Remove the entrant's image by id, look whether it is gone, and record what was seen."""
    reporter.step(Step.REMOVE_IMAGE)
    removal = remove_image_with_proof(engine, identity)
    edition, team = _place(workspace, run_id)
    workspace.ledger.append(
        ImageRemoved(
            at=workspace.clock.now(),
            run_id=run_id,
            edition=edition,
            team=team,
            config_digest=identity.config_digest,
            engine_image_id=identity.engine_image_id,
            gone=removal.gone,
            images_before=removal.images_before,
            images_after=removal.images_after,
            detail=removal.detail,
        )
    )
    if not removal.gone:
        reporter.warn(f"the image could not be removed: {removal.detail}; see piste runs reap")
    return removal.gone


def score_and_sign(
    workspace: Workspace, run_id: str, *, reporter: Reporter
) -> tuple[RunRecord, ScoreCard | None]:
    """Score a completed run where the labels can be opened, and write its evidence.

    A score that fails leaves the run as it is: `piste rescore` completes the row.
    """
    card = None
    record = load_record(workspace, run_id)
    if record.outcome is Outcome.COMPLETED and record.voided is None:
        card = _try_to_score(workspace, run_id, record.edition, reporter)
    reporter.step(Step.EVIDENCE)
    return write_evidence(workspace, run_id), card


def _try_to_score(
    workspace: Workspace, run_id: str, edition: str, reporter: Reporter
) -> ScoreCard | None:
    again = f"piste rescore --edition {edition}"
    if not workspace.keyring.holds(Purpose.LABELS):
        reporter.note(f"not scored here: this host holds no label identity; elsewhere: {again}")
        return None
    reporter.step(Step.SCORE)
    try:
        return score_run(workspace, run_id)
    except PisteError as error:
        reporter.warn(f"the run stands, but could not be scored: {error}; later: {again}")
        return None


def _place(workspace: Workspace, run_id: str) -> tuple[str, str]:
    """Return edition and team of a run. Raises PlatformFault for one the ledger does not know."""
    for entry in workspace.ledger.entries(run_id=run_id, kind="run-reserved"):
        statement = entry.statement
        if statement.kind == "run-reserved":
            return statement.edition, statement.team
    raise PlatformFault(f"run {run_id}: not in the ledger; list the runs with: piste runs list")
