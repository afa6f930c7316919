"""A file of precomputed BLEURT scores: what it may hold, and how it meets the exam."""

from __future__ import annotations

import json

import pytest

from manifests.errors import MalformedDocument
from scorers.translation import (
    SegmentScores,
    Slice,
    TranslationLabel,
    TranslationParameters,
    parse_segment_scores,
    render_segment_scores,
    score,
)
from scorers.translation.bleurt_tokens import PairEncoder, fit_pair

HEAD = json.dumps({"checkpoint": "BLEURT-20", "sha256": "ab" * 32})
LABELS = [
    TranslationLabel("a", Slice.STUDIO, "How old are you?"),
    TranslationLabel("b", Slice.STUDIO, "Where is the station?"),
    TranslationLabel("c", Slice.CANARY, "It rains."),
]
ANSWERS = {"a": "How old are you?", "b": "Where is a station?", "c": "It rained."}


def file_of(*rows: str, head: str = HEAD) -> bytes:
    return "\n".join([head, *rows]).encode()


def test_a_written_file_reads_back_as_the_same_scores() -> None:
    scores = SegmentScores("BLEURT-20", "ab" * 32, {"b": 0.5, "a": -0.25}, {"a": 0.125})
    assert parse_segment_scores(render_segment_scores(scores)) == scores


def test_without_deranged_scores_there_are_none_rather_than_zeros() -> None:
    parsed = parse_segment_scores(file_of('{"clip_id": "a", "score": 1}'))
    assert parsed.deranged is None
    assert parsed.scores == {"a": 1.0}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "line 1 must name the checkpoint"),
        (b"[]", "line 1: expected a JSON object"),
        (b'{"checkpoint": "x"}', "line 1 lacks sha256"),
        (file_of(head='{"checkpoint": "x", "sha256": "AB"}'), "not 64 hex digits"),
        (file_of(head='{"checkpoint": "", "sha256": "AB"}'), "checkpoint must be a text"),
        (file_of('{"clip_id": "a"}'), "line 2 lacks score"),
        (file_of('{"clip_id": "a", "score": 1, "x": 2}'), "line 2 holds unknown keys: x"),
        (file_of('{"clip_id": "a", "score": NaN}'), "line 2"),
        (file_of('{"clip_id": "a", "score": true}'), "line 2: score must be a number"),
        (file_of('{"clip_id": "a", "score": "1"}'), "line 2: score must be a number"),
        (file_of('{"clip_id": "a", "score": 1' + "0" * 400 + "}"), "line 2: score must be"),
        (file_of('{"clip_id": 7, "score": 1}'), "line 2: clip_id must be a text"),
        (file_of('{"clip_id": "a", "score": 1}', '{"clip_id": "a", "score": 1}'), "line 3: clip a"),
        (file_of("{"), "line 2: not strict JSON"),
        (file_of('{"clip_id": "a", "score": 1, "score": 2}'), "stands twice"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedDocument, match=complaint):
        parse_segment_scores(data)


@pytest.mark.parametrize(
    ("scores", "deranged", "complaint"),
    [
        ({"a": 0.5, "b": 0.5}, None, "clip c has no BLEURT score"),
        ({"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5}, None, "clip d has a BLEURT score but"),
        ({"a": 0.5, "b": 0.5, "c": 0.5}, {"a": 0.1}, "clip b has no deranged BLEURT score"),
    ],
)
def test_scores_that_do_not_cover_the_exam_are_refused_with_the_clip(
    scores: dict[str, float], deranged: dict[str, float] | None, complaint: str
) -> None:
    given = SegmentScores("x", "0" * 64, scores, deranged)
    with pytest.raises(MalformedDocument, match=complaint):
        score(LABELS, ANSWERS, TranslationParameters(), bleurt=given)


def test_a_score_that_is_not_finite_is_refused() -> None:
    with pytest.raises(MalformedDocument, match="clip a: BLEURT score nan"):
        SegmentScores("x", "0" * 64, {"a": float("nan")})


def test_scores_are_clipped_and_an_empty_hypothesis_is_worth_nothing() -> None:
    given = SegmentScores("x", "0" * 64, {"a": 1.3, "b": 0.9, "c": -0.4})
    card = score(LABELS, {**ANSWERS, "b": "  "}, TranslationParameters(), bleurt=given)
    assert card.public["bleurt"] == 0.5
    assert card.public["s_generalization"] == 0.0
    assert card.public["counts"]["empty_hypotheses"] == 1  # type: ignore[index, call-overload]


def test_the_longer_side_of_a_pair_loses_its_end_and_the_candidate_where_equal() -> None:
    assert fit_pair([1, 2, 3, 4, 5], [6, 7], 4) == ([1, 2], [6, 7])
    assert fit_pair([1, 2, 3], [4, 5, 6], 3) == ([1, 2], [4])
    assert fit_pair([1], [2], 2) == ([1], [2])


def test_the_reference_comes_first_with_token_type_zero() -> None:
    encoder = PairEncoder(lambda text: [ord(c) for c in text], cls_id=1, sep_id=2, max_tokens=9)
    pair = encoder.pair("ab", "c")
    assert pair.token_ids == (1, 97, 98, 2, 99, 2)
    assert pair.token_types == (0, 0, 0, 0, 1, 1)
