"""piste check, as typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Type = Callable[..., Any]


@pytest.fixture
def clips(typed: Type) -> Path:
    assert typed("sample", "clips", "--clips", "4", "--track", "translation").code == 0
    return Path("clips")


def predictions(clips: Path, count: int = 4) -> list[str]:
    ids = sorted(path.stem for path in (clips / "annotations").iterdir())
    return [json.dumps({"clip_id": clip_id, "text": "Hello."}) for clip_id in ids[:count]]


def write(lines: list[str]) -> str:
    Path("predictions.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return "predictions.jsonl"


def test_a_good_file_holds_and_the_edition_names_the_track(typed: Type, clips: Path) -> None:
    said = typed("check", write(predictions(clips)), "--clips", str(clips))
    assert (said.code, said.err) == (0, "")
    assert said.out == "predictions.jsonl: valid and complete, 4 clips of translation\n"


def test_a_bad_file_ends_with_1_and_every_problem(typed: Type, clips: Path) -> None:
    lines = predictions(clips)
    name = write([lines[0], "{", *lines[1:3], lines[0]])
    said = typed("check", name, "--clips", str(clips))
    assert said.code == 1
    assert "not-json" in said.out
    assert "duplicate-clip" in said.out
    assert "missing-clip" in said.out
    document = json.loads(typed("check", name, "--clips", str(clips), "--json").out)
    assert document["holds"] is False
    assert [each["line"] for each in document["problems"]] == [2, 5, None]


def test_an_incomplete_file_names_each_missing_clip(typed: Type, clips: Path) -> None:
    said = typed("check", write(predictions(clips, 2)), "--clips", str(clips), "--json")
    document = json.loads(said.out)
    assert said.code == 1
    assert document["diagnostic"] == "predictions-incomplete"
    assert len(document["missing_clips"]) == 2


def test_poses_beside_the_file_are_checked(typed: Type, clips: Path) -> None:
    name = write(predictions(clips))
    Path("pose").mkdir()
    Path("pose/stranger.npy").write_bytes(b"x")
    said = typed("check", name, "--clips", str(clips))
    assert said.code == 1
    assert "bad-pose" in said.out


def test_without_an_edition_the_track_has_to_be_given(typed: Type, clips: Path) -> None:
    (clips / "edition.yaml").unlink()
    name = write(predictions(clips))
    said = typed("check", name, "--clips", str(clips))
    assert (said.code, said.out) == (2, "")
    assert "say which with --track" in said.err
    assert typed("check", name, "--clips", str(clips), "--track", "translation").code == 0


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("check", "none.jsonl", "--clips", "clips"), "it is not there"),
        (("check", "clips", "--clips", "clips"), "it is a folder"),
        (("check", "clips/labels-v1.jsonl", "--clips", "none", "--track", "translation"), "none"),
        (("check", "clips/labels-v1.jsonl"), "--clips"),
    ],
)
def test_what_cannot_be_read_ends_with_2_and_one_line(
    typed: Type, clips: Path, words: tuple[str, ...], fact: str
) -> None:
    said = typed(*words)
    assert (said.code, said.out) == (2, "")
    assert fact in said.err
    assert "Traceback" not in said.err
