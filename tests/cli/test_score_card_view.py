"""How cards, boards and run lists fit a terminal of 80 columns."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from manifests.outcomes import Outcome
from orchestrator.cli.views.run_view import runs_table
from orchestrator.cli.views.score_card import ScorerString, score_card
from orchestrator.ledger.rules.run_states import Run, RunState
from scorers.cards import ScoreCard
from scorers.recognition import ClipLabels, Position, RecognitionParameters, score

DIGEST = "sha256:" + "3f" * 32
STRING = "epee200|version:2.1|" + "|".join(f"parameter{n}:value{n}" for n in range(12)) + "|numpy:2"


def shown(renderable: RenderableType, width: int = 80) -> str:
    """Render as a terminal of `width` columns shows it."""
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(renderable)
    return out.getvalue()


def document(provenance: dict[str, Any]) -> dict[str, Any]:
    """Return a recognition card of one clip, with other provenance."""
    labels = [ClipLabels("clip_01", "ALPHA", ("WHO", "NOW"))]
    answers = {"clip_01": [Position(("WHO",), 0.9), Position(("WHO",), 0.1)]}
    card = score(labels, answers, ("WHO", "NOW"), RecognitionParameters(resamples=100))
    assert isinstance(card, ScoreCard)
    return card.public_document() | {"provenance": provenance}


def test_a_card_shows_digests_whole_on_one_line_and_nothing_of_what_is_null() -> None:
    provenance = {
        "image": DIGEST,
        "image_manifest": None,
        "docker": None,
        "labels_sha256": "ab" * 32,
    }
    text = shown(score_card(document(provenance), title="nova"))
    assert f"│ image  {'3f' * 32} " in text
    assert f"│ labels {'ab' * 32} " in text
    assert "None" not in text
    assert "manifest" not in text
    assert max(map(len, text.splitlines())) == 80


def test_a_card_escapes_what_an_entrant_wrote() -> None:
    text = shown(score_card(document({"note": "\x1b[31mred"}), title="\x1b]0;title\x07"))
    assert "\x1b" not in text
    assert "\x07" not in text


@pytest.mark.parametrize("width", [20, 45, 80, 200])
def test_a_scorer_string_breaks_between_parameters_and_joins_to_itself(width: int) -> None:
    lines = [line.rstrip() for line in shown(ScorerString(STRING), width).splitlines()]
    assert "".join(lines) == STRING
    assert all(len(line) <= width for line in lines)
    if width >= 45:
        assert all(line.endswith("|") for line in lines[:-1])


def run(number: int, state: RunState, outcome: Outcome | None) -> Run:
    """Return a run as the ledger's fold gives it."""
    return Run(
        run_id=f"{number:016x}",
        edition="epee200-final-of-the-year-2026",
        team="a-team-with-quite-a-long-name",
        state=state,
        attempt=number,
        outcome=outcome,
    )


def test_the_list_of_runs_cuts_no_id_no_name_and_no_outcome() -> None:
    runs = [
        run(1, RunState.FINISHED, Outcome.INVALID_PREDICTIONS),
        run(2, RunState.VOIDED, Outcome.PLATFORM_FAULT),
        run(3, RunState.RESERVED, None),
    ]
    text = shown(runs_table(runs))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    for word in ("invalid-predictions", "voided (platform-fault)", "reserved"):
        assert word in text
    for one in runs:
        assert one.run_id in text


def test_short_names_take_one_line_each() -> None:
    one = Run(run_id="ab" * 8, edition="epee", team="nova", state=RunState.STARTED, attempt=1)
    assert len(shown(runs_table([one])).splitlines()) == 2
