"""Recognition predictions: every rule of the contract, with clip and line in the message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from manifests.glosses import gloss_fault
from manifests.predictions.lines import ClipExpectation, Reading
from manifests.predictions.problems import ProblemKind
from manifests.predictions.recognition import (
    RecognitionPrediction,
    SignAnswer,
    read_recognition,
    render_recognition,
)

CLIPS = {"0001": ClipExpectation(n_segments=3), "0002": ClipExpectation(n_segments=2)}
OTHER = b'{"clip_id":"0002","signs":["YOU"]}\n'


def read(data: bytes) -> Reading[RecognitionPrediction]:
    return read_recognition(data, source="predictions.jsonl", clips=CLIPS)


def signs(*answers: Any) -> bytes:
    return OTHER + json.dumps({"clip_id": "0001", "signs": answers}).encode() + b"\n"


def only_entry(*answers: Any) -> RecognitionPrediction:
    reading = read(signs(*answers))
    assert reading.complete, reading.problems
    return reading.entries[0]


def test_strings_and_ranked_candidates_are_read() -> None:
    entry = only_entry("YOU", {"candidates": ["OLD", "AGE", "WHO"], "confidence": 0.83}, "UNKNOWN")
    assert entry.signs == (
        SignAnswer(("YOU",)),
        SignAnswer(("OLD", "AGE", "WHO"), 0.83),
        SignAnswer(("UNKNOWN",)),
    )


def test_fewer_signs_than_segments_are_allowed() -> None:
    assert only_entry("YOU").signs == (SignAnswer(("YOU",)),)
    assert only_entry().signs == ()


def test_repeated_candidates_collapse_into_the_first() -> None:
    assert only_entry({"candidates": ["A", "B", "A"]}).signs[0].candidates == ("A", "B")


def test_a_gloss_outside_any_vocabulary_is_allowed() -> None:
    assert only_entry("NEVER-SEEN_2").signs[0].candidates == ("NEVER-SEEN_2",)


def test_glosses_are_compared_in_one_unicode_form() -> None:
    assert only_entry("CAFE\u0301").signs[0].candidates == ("CAFÉ",)
    assert only_entry({"candidates": ["É", "E\u0301"]}).signs[0].candidates == ("É",)


@pytest.mark.parametrize(
    ("given_confidence", "kept"),
    [(0.123456, 0.1235), (1, 1.0), (0, 0.0), (-0.0, 0.0), (0.99999, 1.0), (0.00005, 0.0001)],
)
def test_confidences_are_cut_to_four_decimals_before_scoring(
    given_confidence: float, kept: float
) -> None:
    confidence = only_entry({"candidates": ["A"], "confidence": given_confidence}).signs[0]
    assert str(confidence.confidence) == str(kept)


@pytest.mark.parametrize(
    ("answers", "kind", "fact"),
    [
        (["A", "B", "C", "D"], ProblemKind.TOO_MANY_SIGNS, "4 signs for 3 segments"),
        ([7], ProblemKind.WRONG_TYPE, "sign 1 is neither a gloss nor an object"),
        ([None], ProblemKind.WRONG_TYPE, "sign 1 is neither"),
        ([["A"]], ProblemKind.WRONG_TYPE, "sign 1 is neither"),
        (["A", ""], ProblemKind.BAD_GLOSS, "sign 2: a gloss is empty"),
        (["A B"], ProblemKind.BAD_GLOSS, "whitespace"),
        (["A\tB"], ProblemKind.BAD_GLOSS, "whitespace"),
        (["A\u2003B"], ProblemKind.BAD_GLOSS, "whitespace"),
        (["A\x1b[31m"], ProblemKind.BAD_GLOSS, "U+001B"),
        (["A\u202e"], ProblemKind.BAD_GLOSS, "U+202E"),
        (["\ud800"], ProblemKind.NOT_JSON, "half a character"),
        (["X" * 65], ProblemKind.BAD_GLOSS, "65 characters; at most 64"),
        ([{"candidates": []}], ProblemKind.CANDIDATE_COUNT, "0 candidates; give 1 to 3"),
        ([{"candidates": ["A"] * 4}], ProblemKind.CANDIDATE_COUNT, "4 candidates"),
        ([{"candidates": "A"}], ProblemKind.WRONG_TYPE, "candidates is not a list"),
        ([{"candidates": [1]}], ProblemKind.WRONG_TYPE, "a candidate is not a string"),
        ([{"confidence": 1}], ProblemKind.MISSING_FIELD, "the field candidates is missing"),
        ([{"candidates": ["A"], "p": 1}], ProblemKind.UNKNOWN_FIELD, '"p" is unknown'),
        ([{"candidates": ["A"], "confidence": True}], ProblemKind.WRONG_TYPE, "not a number"),
        ([{"candidates": ["A"], "confidence": "1"}], ProblemKind.WRONG_TYPE, "not a number"),
        ([{"candidates": ["A"], "confidence": None}], ProblemKind.WRONG_TYPE, "not a number"),
        ([{"candidates": ["A"], "confidence": 1.0001}], ProblemKind.BAD_CONFIDENCE, "1.0001"),
        ([{"candidates": ["A"], "confidence": -1e-9}], ProblemKind.BAD_CONFIDENCE, "[0, 1]"),
        ([{"candidates": ["A"], "confidence": 10**400}], ProblemKind.BAD_CONFIDENCE, "64 bits"),
        ([{"candidates": ["A"], "confidence": float("nan")}], ProblemKind.NOT_JSON, "NaN"),
        ([{"candidates": ["A"], "confidence": float("inf")}], ProblemKind.NOT_JSON, "Infinity"),
    ],
)
def test_a_broken_rule_names_clip_line_fact_and_bound(
    answers: list[Any], kind: ProblemKind, fact: str
) -> None:
    reading = read(signs(*answers))
    assert [problem.kind for problem in reading.problems] == [kind]
    problem = reading.problems[0]
    assert (problem.clip_id, problem.line) == ("0001", 2)
    assert problem.message.startswith("predictions.jsonl:2, clip 0001: ")
    assert fact in problem.message
    assert problem.message.isprintable()
    assert not reading.valid
    with pytest.raises(MalformedDocument) as caught:
        reading.valid_entries()
    assert str(caught.value) == problem.message


def test_the_canonical_file_is_sorted_compact_and_short_where_it_can_be() -> None:
    entries = [
        RecognitionPrediction("0002", (SignAnswer(("É",)), SignAnswer(("A", "B")))),
        RecognitionPrediction("0001", (SignAnswer(("A",), 0.5),)),
    ]
    assert render_recognition(entries).decode().splitlines() == [
        '{"clip_id":"0001","signs":[{"candidates":["A"],"confidence":0.5}]}',
        '{"clip_id":"0002","signs":["É",{"candidates":["A","B"]}]}',
    ]


def test_a_single_candidate_reads_the_same_in_both_spellings() -> None:
    assert only_entry("A") == only_entry({"candidates": ["A"]})


GLOSS = st.text(min_size=1, max_size=6).filter(lambda text: gloss_fault(text) is None)
SIGN = st.builds(
    lambda candidates, confidence: {"candidates": candidates, "confidence": confidence},
    st.lists(GLOSS, min_size=1, max_size=3),
    st.floats(0, 1) | st.integers(0, 1),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(GLOSS | SIGN, max_size=3))
def test_canonical_bytes_are_a_fixed_point(answers: list[Any]) -> None:
    first = read(signs(*answers)).valid_entries()
    canonical = render_recognition(first)
    again = read(canonical).valid_entries()
    assert again == first
    assert render_recognition(again) == canonical
