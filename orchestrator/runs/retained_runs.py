"""The kept predictions of a run or submission, held against what the ledger recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from manifests.digests import sha256_hex
from manifests.errors import ClaimDoesNotHold, RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.statements import RunFinished, Statement, SubmissionRecorded
from manifests.text import escape_untrusted
from orchestrator.ledger.ports import Ledger
from orchestrator.ledger.rules.run_states import Run, RunState, fold_runs
from orchestrator.runs.rules.run_files import PREDICTIONS, run_folder
from orchestrator.runs.rules.run_record import run_history
from orchestrator.workspace.ports import WorkspaceStore
from scorers.cards import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedRun:
    """A run that may be scored, and the digests of its kept files by name."""

    run: Run
    files: dict[str, str]
    provenance: dict[str, Json]
    """What the card says about what ran: image and Docker version; nothing for a submission."""

    @property
    def folder(self) -> str:
        """The run's folder below the workspace."""
        return run_folder(self.run.run_id)


def find_retained(run_id: str, *, ledger: Ledger) -> RetainedRun:
    """Return a run that may be scored.

    Raises:
        RefusedByPolicy: there is no such run, or it did not complete or was voided.

    """
    statements = [entry.statement for entry in ledger.entries(run_id=run_id)]
    return retained_run(run_id, statements)


def retained_run(run_id: str, statements: Iterable[Statement]) -> RetainedRun:
    """Return the run that `statements` tell of; errors as `find_retained`."""
    history = [s for s in statements if getattr(s, "run_id", None) == run_id]
    run = fold_runs(history).get(run_id)
    if run is None:
        raise RefusedByPolicy(
            f"run {escape_untrusted(run_id, 40)}: not in the ledger; see: piste runs list"
        )
    _refuse_unscorable(run)
    files = {PREDICTIONS: run.predictions_sha256 or ""}
    for statement in history:
        if isinstance(statement, RunFinished):
            files |= statement.files
    return RetainedRun(run=run, files=files, provenance=_provenance(history))


def _refuse_unscorable(run: Run) -> None:
    if run.state is RunState.SUBMITTED:
        return
    if run.state is not RunState.FINISHED:
        raise RefusedByPolicy(f"run {run.run_id} is {run.state}; only a completed run is scored")
    if run.outcome is not Outcome.COMPLETED or run.predictions_sha256 is None:
        raise RefusedByPolicy(
            f"run {run.run_id} ended as {run.outcome}; only a completed run is scored"
        )


def _provenance(history: list[Statement]) -> dict[str, Json]:
    if any(isinstance(statement, SubmissionRecorded) for statement in history):
        return {"image": None, "docker": None}
    facts = run_history(history)
    docker = facts.started.environment.get("docker") if facts.started else None
    image = facts.reserved.image
    found: dict[str, Json] = {
        "image": image.config_digest,
        "image_manifest": image.manifest_digest,
        "docker": docker if isinstance(docker, str) else None,
    }
    if facts.reserved.consumer is not None:
        found["consumer_image"] = facts.reserved.consumer.config_digest
    return found


def read_retained(retained: RetainedRun, name: str, *, store: WorkspaceStore) -> bytes:
    """Return a kept file of the run's folder.

    Raises:
        ClaimDoesNotHold: it is not the file that the ledger recorded.
        FileAbsent: it is not there.

    """
    data = store.read(f"{retained.folder}/{name}")
    recorded = retained.files[name]
    if sha256_hex(data) != recorded:
        raise ClaimDoesNotHold(
            f"{store.root}/{retained.folder}/{name}: SHA-256 {sha256_hex(data)[:16]}…, but "
            f"{recorded[:16]}… was recorded; restore the file from a backup"
        )
    return data
