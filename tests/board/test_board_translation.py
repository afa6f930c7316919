"""A translation board end to end: the lead comes from the kept predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from orchestrator.board.rescore import rescore
from orchestrator.board.show_board import BoardRequest, show_board
from orchestrator.runs import scoring_materials
from orchestrator.scoring.rules.scoring import ScoreBleurt
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.workspace import Workspace
from scorers.translation import SegmentScores, TranslationLabel, TranslationParameters
from tests.support.small_exams import (
    new_workspace,
    predictions,
    reference_of,
    register,
    retain_run,
    seal_edition,
)

EDITION = "signet-final"


def shared_words(
    labels: Sequence[TranslationLabel],
    texts: Mapping[str, str],
    _parameters: TranslationParameters,
) -> SegmentScores:
    """Score by the share of the reference's words: stands for a model that is too large here."""
    scores = {
        label.clip_id: len(set(label.reference.split()) & set(texts[label.clip_id].split()))
        / len(set(label.reference.split()))
        for label in labels
    }
    return SegmentScores("shared-words", "ab" * 32, scores, dict.fromkeys(scores, 0.1))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    def load(_rule: object, _root: Path) -> ScoreBleurt:
        return shared_words

    monkeypatch.setattr(scoring_materials, "_bleurt", load)
    opened = new_workspace(tmp_path / "workspace")
    seal_edition(opened, tmp_path / "edition", EDITION, track="translation")
    for team in ("nova", "lyra", "vega"):
        register(opened, team)
    return opened


def run_of(workspace: Workspace, team: str, *, spoilt: int) -> str:
    """Keep a run whose first `spoilt` clips lack their last words."""

    def answer(number: int) -> dict[str, object]:
        words = reference_of(number).split()
        return {"text": " ".join(words[:-3] if number < spoilt else words)}

    run_id = retain_run(workspace, EDITION, team, predictions(workspace, EDITION, answer))
    rescore(workspace, EDITION)
    return run_id


def leader(workspace: Workspace) -> tuple[str | None, list[str]]:
    document = show_board(workspace, BoardRequest(edition=EDITION)).as_document()
    (group,) = document["groups"]
    return group["lead"]["run_id"], [row["team"] for row in document["rows"]]


def test_a_better_run_leads_only_when_its_advantage_is_significant(workspace: Workspace) -> None:
    first = run_of(workspace, "nova", spoilt=4)
    assert leader(workspace) == (first, ["nova"])
    slightly = run_of(workspace, "lyra", spoilt=3)
    assert leader(workspace) == (first, ["nova", "lyra"])
    clearly = run_of(workspace, "vega", spoilt=0)
    assert leader(workspace) == (clearly, ["vega", "lyra", "nova"])
    assert slightly != clearly


def test_the_tie_beside_a_row_comes_from_the_paired_interval(workspace: Workspace) -> None:
    run_of(workspace, "nova", spoilt=4)
    run_of(workspace, "vega", spoilt=0)
    document = show_board(workspace, BoardRequest(edition=EDITION)).as_document()
    tie = document["rows"][1]["tie"]
    assert tie["basis"] == "paired-interval"
    assert tie["tied"] is False
    assert tie["paired"]["delta"] == pytest.approx(
        document["rows"][0]["main"] - document["rows"][1]["main"]
    )


def test_without_the_label_identity_the_lead_is_null_with_a_reason(workspace: Workspace) -> None:
    run_of(workspace, "nova", spoilt=4)
    run_of(workspace, "vega", spoilt=0)
    (workspace.store.root / "keys/labels.agekey").unlink()
    elsewhere = wiring.open_workspace(workspace.store.root)
    document = show_board(elsewhere, BoardRequest(edition=EDITION)).as_document()
    lead = document["groups"][0]["lead"]
    assert lead["run_id"] is None
    assert "identity" in lead["reason"]
    assert [row["rank"] for row in document["rows"]] == [1, 2]


def test_without_a_checkpoint_no_row_ranks(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring_materials, "_bleurt", lambda _rule, _root: None)
    run_id = run_of(workspace, "nova", spoilt=0)
    document = show_board(workspace, BoardRequest(edition=EDITION)).as_document()
    assert document["rows"] == []
    assert [(one["run_id"], one["reason"]) for one in document["unranked"]] == [
        (run_id, "s_total could not be computed; its score card says why")
    ]
