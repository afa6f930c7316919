"""Translation predictions: one bounded line of text per clip, and poses that can be scored."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.predictions.lines import ClipExpectation, Reading
from manifests.predictions.problems import ProblemKind
from manifests.predictions.translation import (
    TranslationPrediction,
    pose_problem,
    read_translation,
    render_translation,
)

CLIPS = {"0001": ClipExpectation(n_frames=2)}


def read(**fields: Any) -> Reading[TranslationPrediction]:
    data = json.dumps({"clip_id": "0001"} | fields).encode()
    return read_translation(data, source="p", clips=CLIPS)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("How old are you?", "How old are you?"),
        ("", ""),
        ("  a\n\tb\r\n ", "a b"),
        ("a\u2028b\u00a0c", "a b c"),
        ("E\u0301pe\u0301e", "Épée"),
        ("family: \U0001f468\u200d\U0001f469", "family: \U0001f468\u200d\U0001f469"),
        ("x" * 2000, "x" * 2000),
    ],
)
def test_text_is_kept_as_one_line_in_one_unicode_form(text: str, kept: str) -> None:
    assert read(text=text).valid_entries() == (TranslationPrediction("0001", kept),)


@pytest.mark.parametrize(
    ("fields", "kind", "fact"),
    [
        ({}, ProblemKind.MISSING_FIELD, "the field text is missing"),
        ({"text": None}, ProblemKind.WRONG_TYPE, "text is not a string"),
        ({"text": ["a"]}, ProblemKind.WRONG_TYPE, "text is not a string"),
        ({"text": "a", "score": 1}, ProblemKind.UNKNOWN_FIELD, "the fields are clip_id, text"),
        ({"text": "x" * 2001}, ProblemKind.BAD_TEXT, "2001 characters; at most 2000"),
        ({"text": "a\x00"}, ProblemKind.BAD_TEXT, "U+0000"),
        ({"text": "a\x1b[0m"}, ProblemKind.BAD_TEXT, "U+001B"),
        ({"text": "\udfff"}, ProblemKind.NOT_JSON, "half a character"),
    ],
)
def test_a_broken_rule_names_clip_line_fact_and_bound(
    fields: dict[str, Any], kind: ProblemKind, fact: str
) -> None:
    (problem,) = read(**fields).problems
    assert problem.kind is kind
    assert problem.message.startswith("p:1, clip 0001: ")
    assert fact in problem.message


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_canonical_bytes_are_a_fixed_point(text: str) -> None:
    reading = read(text=text)
    if not reading.valid:
        assert reading.problems[0].kind is ProblemKind.BAD_TEXT
        return
    canonical = render_translation(reading.entries)
    again = read_translation(canonical, source="p", clips=CLIPS).valid_entries()
    assert again == reading.entries
    assert render_translation(again) == canonical


def pose(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_a_pose_may_be_longer_than_its_clip_but_not_without_bound() -> None:
    assert pose_problem("0001.npy", pose(np.zeros((20, 128, 3), np.float32)), clips=CLIPS) is None
    problem = pose_problem("0001.npy", pose(np.zeros((21, 128, 3), np.float32)), clips=CLIPS)
    assert problem is not None
    assert problem.message == "pose/0001.npy, clip 0001: 21 frames; at most 20 are allowed"


@pytest.mark.parametrize(
    ("name", "data", "clip_id", "fact"),
    [
        ("0002.npy", b"", None, "not the name of a clip"),
        ("0001", b"", None, "not the name of a clip"),
        ("\x1b0001.npy", b"", None, "pose/\\x1b0001.npy"),
        ("0001.npy", b"", "0001", "not an .npy file"),
        ("0001.npy", pose(np.zeros((2, 128, 3))), "0001", "dtype <f8"),
        ("0001.npy", pose(np.full((2, 128, 3), np.nan, np.float32)), "0001", "is nan"),
        ("0001.npy", pose(np.zeros((2, 54, 3), np.float32)), "0001", "shape (2, 54, 3)"),
    ],
)
def test_a_wrong_pose_is_told_with_its_clip(
    name: str, data: bytes, clip_id: str | None, fact: str
) -> None:
    problem = pose_problem(name, data, clips=CLIPS)
    assert problem is not None
    assert (problem.kind, problem.clip_id) == (ProblemKind.BAD_POSE, clip_id)
    assert fact in problem.message
