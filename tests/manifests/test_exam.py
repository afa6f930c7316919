"""`exam.json` tells a container its task and nothing more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from manifests.exam import Exam, parse_exam, render_exam

GOOD: dict[str, Any] = {
    "contract": 1,
    "edition": "epee200-final-2026",
    "track": "recognition",
    "layout": "clerc-128",
    "clips": ["0001", "0002"],
    "vocabulary": "vocabulary.txt",
}


def test_the_file_has_exactly_the_contracts_fields() -> None:
    exam = Exam(
        edition="epee200-final-2026",
        track="recognition",
        clips=("0001", "0002"),
        vocabulary="vocabulary.txt",
    )
    assert json.loads(render_exam(exam)) == GOOD
    assert render_exam(exam).endswith(b"}\n")


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"contract": 2}, "field contract"),
        ({"edition": "E"}, "field edition"),
        ({"track": "x"}, "field track"),
        ({"layout": "coco"}, "field layout"),
        ({"clips": []}, "field clips"),
        ({"clips": ["0001", "0001"]}, "field clips: a clip stands twice"),
        ({"clips": ["../1"]}, "field clips.0"),
        ({"vocabulary": None}, "field vocabulary: recognition has one"),
        ({"vocabulary": "../v.txt"}, "field vocabulary"),
        ({"track": "translation"}, "field vocabulary: recognition has one"),
        ({"signers": []}, "field signers: is unknown"),
    ],
)
def test_a_wrong_field_is_refused(changes: dict[str, Any], fact: str) -> None:
    with pytest.raises(MalformedDocument) as caught:
        parse_exam(json.dumps(GOOD | changes).encode(), source="exam.json")
    assert str(caught.value).startswith("exam.json: ")
    assert fact in str(caught.value)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.from_regex(r"[0-9]{4,6}", fullmatch=True), min_size=1, max_size=9, unique=True))
def test_what_is_rendered_is_parsed_back(clips: list[str]) -> None:
    exam = Exam(edition="abc", track="translation", clips=tuple(clips))
    assert parse_exam(render_exam(exam), source="exam.json") == exam


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_but_malformed_document(data: bytes) -> None:
    with pytest.raises(MalformedDocument):
        parse_exam(data, source="exam.json")
