"""Segmentation predictions: half-open whole frames, inside the clip, ordered, not overlapping."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.annotations import spans_fault
from manifests.predictions.lines import ClipExpectation, Reading
from manifests.predictions.problems import ProblemKind
from manifests.predictions.segmentation import (
    SegmentationPrediction,
    read_segmentation,
    render_segmentation,
)

CLIPS = {"0001": ClipExpectation(n_frames=10)}


def read(segments: Any, **fields: Any) -> Reading[SegmentationPrediction]:
    data = json.dumps({"clip_id": "0001", "segments": segments} | fields).encode()
    return read_segmentation(data, source="p", clips=CLIPS)


def spans(*pairs: tuple[Any, Any]) -> list[dict[str, Any]]:
    return [{"start_frame": start, "end_frame": end} for start, end in pairs]


def test_segments_may_touch_and_fill_the_clip() -> None:
    (entry,) = read(spans((0, 4), (4, 10))).valid_entries()
    assert entry == SegmentationPrediction("0001", ((0, 4), (4, 10)))


def test_a_clip_may_have_no_segment() -> None:
    assert read([]).valid_entries() == (SegmentationPrediction("0001", ()),)


@pytest.mark.parametrize(
    ("segments", "kind", "fact"),
    [
        (None, ProblemKind.WRONG_TYPE, "segments is not a list"),
        ([[0, 1]], ProblemKind.WRONG_TYPE, "segment 1 is not an object"),
        ([{"start_frame": 0}], ProblemKind.MISSING_FIELD, "end_frame is missing"),
        ([{"start_frame": 0, "end_frame": 1, "gloss": "A"}], ProblemKind.UNKNOWN_FIELD, "gloss"),
        (spans((0.0, 1)), ProblemKind.WRONG_TYPE, "start_frame is not a whole number"),
        (spans((0, True)), ProblemKind.WRONG_TYPE, "end_frame is not a whole number"),
        (spans((0, "1")), ProblemKind.WRONG_TYPE, "end_frame is not a whole number"),
        (spans((-1, 1)), ProblemKind.SEGMENT_OUTSIDE, "start_frame is not between"),
        (spans((0, 10**40)), ProblemKind.SEGMENT_OUTSIDE, "end_frame is not between"),
        (spans((8, 11)), ProblemKind.SEGMENT_OUTSIDE, "[8, 11) leaves the clip of 10 frames"),
        (spans((3, 3)), ProblemKind.SEGMENT_EMPTY, "[3, 3) holds no frame"),
        (spans((4, 3)), ProblemKind.SEGMENT_EMPTY, "[4, 3) holds no frame"),
        (spans((0, 4), (3, 5)), ProblemKind.SEGMENT_ORDER, "segment 2 [3, 5) begins before"),
        (spans((5, 6), (0, 2)), ProblemKind.SEGMENT_ORDER, "order the segments"),
        (spans((0, 4), (0, 4)), ProblemKind.SEGMENT_ORDER, "let none overlap"),
        (spans(*[(0, 1)] * 11), ProblemKind.TOO_MANY_SEGMENTS, "11 segments in 10 frames"),
    ],
)
def test_a_broken_rule_names_clip_line_fact_and_bound(
    segments: Any, kind: ProblemKind, fact: str
) -> None:
    (problem,) = read(segments).problems
    assert problem.kind is kind
    assert problem.message.startswith("p:1, clip 0001: ")
    assert fact in problem.message


def test_an_unknown_field_beside_the_segments_is_refused() -> None:
    assert read([], fps=25).problems[0].kind is ProblemKind.UNKNOWN_FIELD


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 11), st.integers(-1, 11)), max_size=4))
def test_predictions_obey_the_rule_of_annotations(pairs: list[tuple[int, int]]) -> None:
    reading = read(spans(*pairs))
    assert reading.valid == (spans_fault(pairs, 10) is None)
    if reading.valid:
        canonical = render_segmentation(reading.entries)
        again = read_segmentation(canonical, source="p", clips=CLIPS)
        assert again.entries == reading.entries == (SegmentationPrediction("0001", tuple(pairs)),)
