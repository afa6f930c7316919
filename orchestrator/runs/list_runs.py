"""Look at runs, and void one by hand: everything here is read from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from manifests.encoding import Json, parse_json_object
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.runs import RunRecord
from manifests.text import escape_untrusted
from orchestrator.editions.sealed_editions import find_seal_statement
from orchestrator.ledger.rules.quota import QuotaState, quota_state
from orchestrator.ledger.rules.run_states import Run, fold_runs
from orchestrator.runs.finish_run import void_run
from orchestrator.runs.rules.run_files import PUBLIC_CARD, run_folder
from orchestrator.runs.run_evidence import load_record, write_evidence
from orchestrator.workspace.workspace import Workspace

LONGEST_REASON = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    """One run with what its team has left, and its public card where it was scored here."""

    record: RunRecord
    quota: QuotaState
    folder: str
    card: Mapping[str, Json] | None


def list_runs(
    workspace: Workspace, *, edition: str | None = None, team: str | None = None
) -> list[Run]:
    """Return all runs and submissions, in the order in which they began."""
    entries = workspace.ledger.entries(edition=edition, team=team)
    return list(fold_runs(entry.statement for entry in entries).values())


def run_row(run: Run) -> dict[str, object]:
    """Return a run as `runs list --json` shows it."""
    return {
        "run_id": run.run_id,
        "edition": run.edition,
        "team": run.team,
        "attempt": run.attempt,
        "state": run.state.value,
        "outcome": run.outcome.value if run.outcome else None,
        "counts": run.counts,
        "labels": sorted({version for version, _ in run.scored}),
    }


def show_run(workspace: Workspace, run_id: str) -> ShownRun:
    """Return one certified run.

    Raises:
        RefusedByPolicy: no certified run of the ledger has this id.

    """
    require_run(workspace, run_id)
    record = load_record(workspace, run_id)
    folder = run_folder(run_id)
    data = workspace.store.read_optional(f"{folder}/{PUBLIC_CARD}")
    return ShownRun(
        record=record,
        quota=team_quota(workspace, edition=record.edition, team=record.team),
        folder=str(workspace.store.root / folder),
        card=None if data is None else parse_json_object(data, source=f"{folder}/{PUBLIC_CARD}"),
    )


def team_quota(workspace: Workspace, *, edition: str, team: str) -> QuotaState:
    """Return what a team has used and left in an edition."""
    history = workspace.ledger.entries(edition=edition, team=team)
    runs = fold_runs(entry.statement for entry in history).values()
    return quota_state(runs, rule=find_seal_statement(edition, workspace.ledger).quota)


def void_by_organizer(workspace: Workspace, run_id: str, *, reason: str) -> RunRecord:
    """Void a run for a public reason and write its evidence anew.

    Raises:
        MalformedDocument: the reason is blank, too long or more than one line.
        RefusedByPolicy: the run is voided already, is under way, or is none.

    """
    text = reason.strip()
    if not text or len(text) > LONGEST_REASON or not text.isprintable():
        raise MalformedDocument(
            f"--reason: one printable line of 1 to {LONGEST_REASON} characters; it is public"
        )
    require_run(workspace, run_id)
    with workspace.store.lock_run(run_id):
        void_run(workspace, run_id, reason=text, by_organizer=True)
        return write_evidence(workspace, run_id)


def require_run(workspace: Workspace, run_id: str) -> None:
    """Refuse an id that no certified run has.

    Raises:
        RefusedByPolicy: with the command that lists the runs.

    """
    if not any(workspace.ledger.entries(run_id=run_id, kind="run-reserved")):
        shown = escape_untrusted(run_id, 40)
        if any(workspace.ledger.entries(run_id=run_id, kind="submission-recorded")):
            raise RefusedByPolicy(
                f"run {shown}: a self-reported submission, no certified run; see: piste board, "
                "piste review"
            )
        raise RefusedByPolicy(
            f"run {shown}: no certified run has this id; list them with: piste runs list"
        )
