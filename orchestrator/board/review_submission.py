"""`piste review`: accept or decline a self-reported row, or ask its team for a Final run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.statements import Statement, SubmissionReviewed
from manifests.text import escape_untrusted
from orchestrator.ledger.ports import Entry
from orchestrator.ledger.rules.run_states import RunState, fold_runs
from orchestrator.workspace.workspace import Workspace

Decision = Literal["accept", "decline", "ask-final"]

MAX_REASON_CHARACTERS = 1000
_NOT_PRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def review_submission(
    workspace: Workspace, run_id: str, decision: Decision, *, reason: str
) -> SubmissionReviewed:
    """Record a decision; a later one takes the place of an earlier one on the board.

    Raises:
        MalformedDocument: the reason is blank, too long or not one line.
        RefusedByPolicy: the run is unknown or is no submission.

    """
    if not reason.strip() or len(reason) > MAX_REASON_CHARACTERS or _NOT_PRINTABLE.search(reason):
        raise MalformedDocument(
            f"--reason: expected one line of 1 to {MAX_REASON_CHARACTERS} characters without "
            "control characters; it is public"
        )

    def decide(history: Sequence[Entry]) -> Statement:
        run = fold_runs(entry.statement for entry in history).get(run_id)
        if run is None:
            raise RefusedByPolicy(f"run {escape_untrusted(run_id, 40)}: not in the ledger")
        if run.state is not RunState.SUBMITTED:
            raise RefusedByPolicy(
                f"run {run_id} is {run.state}; only a self-reported submission is reviewed"
            )
        return SubmissionReviewed(
            at=workspace.clock.now(),
            run_id=run_id,
            edition=run.edition,
            team=run.team,
            decision=decision,
            reason=reason,
        )

    reviewed = workspace.ledger.decide(decide, run_id=run_id).statement
    assert isinstance(reviewed, SubmissionReviewed)
    return reviewed
