"""Only a self-reported submission is reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from manifests.errors import RefusedByPolicy
from orchestrator.board.review_submission import review_submission
from tests.support.small_exams import (
    new_workspace,
    predictions,
    recognition_answers,
    register,
    retain_run,
    seal_edition,
)


def test_a_certified_run_and_an_unknown_one_are_not_reviewed(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path / "workspace")
    seal_edition(workspace, tmp_path / "edition", "synthetic-final")
    register(workspace, "nova")
    data = predictions(workspace, "synthetic-final", recognition_answers(0))
    run_id = retain_run(workspace, "synthetic-final", "nova", data)
    size = workspace.ledger.size()
    with pytest.raises(RefusedByPolicy, match="is finished; only a self-reported submission"):
        review_submission(workspace, run_id, "accept", reason="fine")
    with pytest.raises(RefusedByPolicy, match="not in the ledger"):
        review_submission(workspace, "0" * 16, "accept", reason="fine")
    assert workspace.ledger.size() == size
