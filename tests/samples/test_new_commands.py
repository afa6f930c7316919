"""piste new, as typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Type = Callable[..., Any]


@pytest.mark.parametrize("track", ["recognition", "translation", "segmentation"])
def test_new_makes_a_folder_and_says_what_to_do_next(typed: Type, track: str) -> None:
    said = typed("new", "my-entry", "--track", track)
    assert (said.code, said.err) == (0, "")
    assert f"a {track} entry" in said.out
    assert "make build-offline && make dry-run" in said.out
    assert Path("my-entry/app/main.py").is_file()


def test_new_with_json_prints_one_document(typed: Type) -> None:
    said = typed("new", "my-entry", "--track", "translation", "--json")
    document = json.loads(said.out)
    assert document["folder"] == "my-entry"
    assert document["track"] == "translation"
    assert all((Path("my-entry") / name).is_file() for name in document["files"])


def test_new_refuses_a_folder_that_holds_something(typed: Type) -> None:
    Path("my-entry").mkdir()
    Path("my-entry/mine.txt").write_text("mine")
    said = typed("new", "my-entry", "--track", "recognition")
    assert (said.code, said.out) == (3, "")
    assert said.err == "piste: my-entry: not empty; choose another name, or empty it\n"
    assert [path.name for path in Path("my-entry").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "words",
    [
        ("new", "../up", "--track", "recognition"),
        ("new", "Upper", "--track", "recognition"),
        ("new", "my-entry"),
        ("new", "my-entry", "--track", "juggling"),
        ("new", "--track", "recognition"),
    ],
)
def test_new_with_wrong_words_is_a_usage_error_and_makes_nothing(
    typed: Type, words: tuple[str, ...]
) -> None:
    said = typed(*words)
    assert said.code == 2
    assert said.err
    assert "Traceback" not in said.err
    assert list(Path().iterdir()) == []
