"""`piste rescore`: every run and submission of an edition on one label version; old rows stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manifests.outcomes import Outcome
from manifests.statements import Statement, SubmissionReviewed
from orchestrator.board.settle_submissions import settle_submissions
from orchestrator.ledger.rules.run_states import Run, RunState, fold_runs
from orchestrator.runs.retained_runs import retained_run
from orchestrator.runs.score_run import score_retained
from orchestrator.runs.scoring_materials import open_materials
from orchestrator.support.reporter import Reporter, SilentReporter, Step
from orchestrator.workspace.workspace import Workspace
from scorers.cards import ScoreCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """One run's card, and whether the ledger had this row already."""

    run_id: str
    team: str
    card: ScoreCard
    known: bool


def rescore(
    workspace: Workspace,
    edition: str,
    labels_version: str | None = None,
    *,
    reporter: Reporter | None = None,
) -> tuple[Rescored, ...]:
    """Score every completed run that was not voided and every submission that was not declined.

    A row that the ledger has already is computed again and its cards are put back where they
    are missing; nothing else changes.

    Raises:
        IdentityMissing: this host holds no identity for the labels.
        RefusedByPolicy: no such edition or label version, or another process is at work on a run.
        ClaimDoesNotHold: a kept file is not what the ledger recorded.

    """
    reporter = reporter or SilentReporter()
    materials = open_materials(workspace, edition, labels_version)
    settle_submissions(workspace)
    statements = [entry.statement for entry in workspace.ledger.entries(edition=edition)]
    runs = runs_to_score(statements)
    reporter.step(Step.SCORE)
    rescored = []
    for done, run in enumerate(runs, start=1):
        retained = retained_run(run.run_id, statements)
        with workspace.store.lock_run(run.run_id):
            card = score_retained(workspace, retained, materials)
        known = (materials.commitment.version, card.scorer_string) in run.scored
        rescored.append(Rescored(run_id=run.run_id, team=run.team, card=card, known=known))
        reporter.progress(Step.SCORE, done, len(runs), "runs")
    return tuple(rescored)


def runs_to_score(statements: Sequence[Statement]) -> tuple[Run, ...]:
    """Return the runs of one edition that may have rows, in the order in which they began."""
    decisions = {s.run_id: s.decision for s in statements if isinstance(s, SubmissionReviewed)}

    def wanted(run: Run) -> bool:
        if run.state is RunState.SUBMITTED:
            return decisions.get(run.run_id) != "decline"
        return run.state is RunState.FINISHED and run.outcome is Outcome.COMPLETED

    return tuple(run for run in fold_runs(statements).values() if wanted(run))
