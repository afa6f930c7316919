"""docs/scoring.md says what the scorers do: its tables, its figures and its commands are held to them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from manifests.editions import Track
from orchestrator.scoring.score_files import FilesToScore, InputFile, score_files
from scorers.cards import ScoreCard
from scorers.recognition import RecognitionParameters
from scorers.segmentation import SegmentationParameters
from scorers.translation import TranslationParameters
from scorers.translation.pose import PoseParameters

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/scoring.md").read_text("utf-8")
SECTIONS: dict[Track, str] = {
    "recognition": "Recognition (Épée 200, scorer 2.1)",
    "translation": "Translation (Signet)",
    "segmentation": "Segmentation (consumer-aware)",
}
CHOICES = (RecognitionParameters, TranslationParameters, PoseParameters, SegmentationParameters)
INSTALLED = {"version", "numpy", "sacrebleu", "wer", "vocabulary"}
"""Parts of a scorer string that tell of this installation or this exam."""


def table_after(mark: str) -> list[list[str]]:
    """Return the cells of the table that follows a mark, its head left out."""
    _, found, rest = PAGE.partition(f"<!-- {mark} -->\n")
    assert found, mark
    lines = rest.partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines[2:]]


def card(track: Track) -> ScoreCard:
    """Score the example files with nothing that is optional but what the track needs."""
    folder = ROOT / "examples" / track

    def read(name: str) -> InputFile:
        return InputFile(name, (folder / name).read_bytes())

    predictions = "baseline.predictions.jsonl" if track == "segmentation" else "predictions.jsonl"
    return score_files(
        FilesToScore(
            track=track,
            labels=read("labels-v1.jsonl"),
            predictions=read(predictions),
            vocabulary=None if track == "translation" else read("vocabulary.txt"),
        )
    )


@pytest.mark.parametrize("parameters", CHOICES)
def test_every_parameter_stands_in_its_table_with_its_default(parameters: type) -> None:
    made = parameters()
    shown = {
        row[0].strip("`"): row[1].strip("`")
        for row in table_after(f"fields: {parameters.__name__}")
    }
    assert list(shown) == [field.name for field in fields(parameters)]
    for name, default in shown.items():
        value = getattr(made, name)
        if not isinstance(value, PoseParameters):
            assert default == repr(str(value) if isinstance(value, str) else value), name


@pytest.mark.parametrize("track", SECTIONS)
def test_every_part_of_the_scorer_string_stands_in_its_table_with_its_value(track: Track) -> None:
    parts = [part.split(":", 1) for part in card(track).scorer_string.split("|")[1:]]
    actual = {name: value for name, value in parts if name not in INSTALLED}
    shown = {row[0].strip("`"): row[1].strip("`") for row in table_after(f"string: {track}")}
    assert shown == actual


@pytest.mark.parametrize("track", SECTIONS)
def test_every_figure_of_the_card_is_explained_in_its_section(track: Track) -> None:
    _, found, rest = PAGE.partition(f"## {SECTIONS[track]}\n")
    assert found
    named = set(re.findall(r"`(\w+)`", rest.partition("\n## ")[0]))
    made = card(track)
    assert set(made.public) - {"reasons"} <= named
    assert set(made.private) - {"reasons"} <= named


def test_every_command_works_when_it_is_pasted() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-eu", "-c", "\n".join(blocks)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for words in ("macro-F1", "S_total", "WER, in vocabulary", "selected by auc_ru"):
        assert words in done.stdout
    assert re.search(r"^mf1s +eager$", done.stdout, re.MULTILINE)
    assert re.search(r"^auc_ru +baseline$", done.stdout, re.MULTILINE)
