"""A segmentation board: rows compare over signers from their kept segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.board.rescore import rescore
from orchestrator.board.show_board import BoardRequest, show_board
from tests.support.small_exams import (
    new_workspace,
    predictions,
    register,
    retain_run,
    seal_edition,
)

EDITION = "segments-final"


def test_the_row_above_is_compared_over_signers_and_the_floor_comes_from_their_interval(
    tmp_path: Path,
) -> None:
    workspace = new_workspace(tmp_path / "workspace")
    seal_edition(workspace, tmp_path / "edition", EDITION, track="segmentation")
    for team, early in (("nova", 1), ("lyra", 4)):
        register(workspace, team)

        def segments(number: int, early: int = early) -> dict[str, object]:
            end = 8 - early if number < 3 else 8
            spans = [{"start_frame": 10 * i, "end_frame": 10 * i + end} for i in range(3)]
            return {"segments": spans}

        retain_run(workspace, EDITION, team, predictions(workspace, EDITION, segments))
    rescore(workspace, EDITION)
    document = show_board(workspace, BoardRequest(edition=EDITION)).as_document()
    first, second = document["rows"]
    assert [first["team"], second["team"]] == ["nova", "lyra"]
    paired = second["tie"]["paired"]
    assert paired["delta"] == pytest.approx(first["main"] - second["main"])
    assert paired["units"] == 3
    assert second["tie"]["basis"] == "noise-floor"
    assert second["floor"] is not None
    assert second["floor"] == second["figures"]["mf1s_floor"]
