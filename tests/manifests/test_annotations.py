"""Annotations: segments lie inside the clip, in order; an entrant sees no gloss and no signer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.annotations import (
    EntrantAnnotation,
    GlossSegment,
    Span,
    parse_entrant_annotation,
    parse_epee_annotation,
    render_entrant_annotation,
    spans_fault,
)
from manifests.errors import MalformedDocument

EPEE: dict[str, Any] = {
    "clip_id": "clerc_v03_0001",
    "signer_id": "ALPHA",
    "phrase_id": 17,
    "parallel": True,
    "text_en": "How old are you?",
    "fps": 29.97,
    "n_frames": 90,
    "segments": [
        {"gloss": "YOU", "start": 0.2, "end": 1.0},
        {"gloss": "OLD_2", "start": 1.0, "end": 2},
    ],
}


def encoded(**changes: Any) -> bytes:
    return json.dumps(EPEE | changes).encode()


def segments(*spans: tuple[float, float]) -> list[dict[str, Any]]:
    return [{"gloss": "YOU", "start": start, "end": end} for start, end in spans]


def test_an_annotation_of_the_corpus_is_read_as_it_is() -> None:
    annotation = parse_epee_annotation(encoded(), source="a.json")
    assert annotation.signer_id == "ALPHA"
    assert annotation.segments[1] == GlossSegment(gloss="OLD_2", start=1.0, end=2.0)


def test_fields_that_a_corpus_adds_are_not_read() -> None:
    assert parse_epee_annotation(encoded(camera="left"), source="a.json").n_frames == 90


def test_a_phrase_may_be_left_out() -> None:
    slim = {k: v for k, v in EPEE.items() if k not in {"phrase_id", "parallel", "text_en"}}
    assert parse_epee_annotation(json.dumps(slim).encode(), source="a").phrase_id is None


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"clip_id": "../0001"}, "field clip_id"),
        ({"clip_id": 1}, "field clip_id"),
        ({"signer_id": ""}, "field signer_id"),
        ({"signer_id": "A\nB"}, "field signer_id"),
        ({"fps": 0}, "field fps"),
        ({"fps": -25}, "field fps"),
        ({"fps": "25"}, "field fps"),
        ({"fps": True}, "field fps"),
        ({"n_frames": 0}, "field n_frames"),
        ({"n_frames": 90.0}, "field n_frames"),
        ({"segments": None}, "field segments"),
        ({"segments": [[0, 1]]}, "field segments.0"),
        ({"segments": [{"gloss": "YOU", "start": 0}]}, "field segments.0.end: is missing"),
        ({"segments": segments((-0.1, 1))}, "field segments.0.start"),
        ({"segments": segments((0, 1e300))}, "field segments.0.end"),
        ({"segments": segments((0, 4))}, "leaves the clip of 90 frames"),
        ({"segments": segments((1, 1))}, "segment 1 [29, 29) holds no frame"),
        ({"segments": segments((1, 1.001))}, "holds no frame"),
        ({"segments": segments((2, 1))}, "holds no frame"),
        ({"segments": segments((1, 2), (0, 0.5))}, "begins before frame 59"),
        ({"segments": segments((0, 1), (0.5, 2))}, "begins before frame 29"),
        ({"segments": [{"gloss": "A B", "start": 0, "end": 1}]}, "whitespace"),
        ({"segments": [{"gloss": "UNKNOWN", "start": 0, "end": 1}]}, "reserved"),
    ],
)
def test_a_wrong_annotation_is_refused(changes: dict[str, Any], fact: str) -> None:
    with pytest.raises(MalformedDocument) as caught:
        parse_epee_annotation(encoded(**changes), source="annotations/x.json")
    assert str(caught.value).startswith("annotations/x.json: ")
    assert fact in str(caught.value)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
def test_a_number_that_is_not_finite_is_refused(number: bytes) -> None:
    data = encoded().replace(b"29.97", number)
    with pytest.raises(MalformedDocument, match="not strict JSON"):
        parse_epee_annotation(data, source="a")


def test_frames_are_truncated_as_the_loader_of_the_corpus_does() -> None:
    assert Span(start=0.29, end=0.58).frames(100.0) == (28, 57)
    assert Span(start=0.2, end=1.0).frames(29.97) == (5, 29)


def test_a_segment_may_end_with_the_clip() -> None:
    exact = encoded(fps=30, n_frames=90, segments=segments((0, 3.0)))
    assert parse_epee_annotation(exact, source="a").segments[0].frames(30) == (0, 90)


@pytest.mark.parametrize("with_segments", [True, False])
def test_an_entrant_sees_neither_signer_nor_phrase_nor_label(*, with_segments: bool) -> None:
    annotation = parse_epee_annotation(encoded(), source="a")
    shown = annotation.for_entrant(clip_id="0042", with_segments=with_segments)
    document = json.loads(render_entrant_annotation(shown))
    assert document == {
        "clip_id": "0042",
        "fps": 29.97,
        "n_frames": 90,
        "segments": [{"start": 0.2, "end": 1.0}, {"start": 1.0, "end": 2.0}]
        if with_segments
        else [],
    }


def test_an_entrants_annotation_has_no_other_field() -> None:
    data = b'{"clip_id":"1","fps":25,"n_frames":9,"segments":[],"signer_id":"A"}'
    with pytest.raises(MalformedDocument, match="field signer_id: is unknown"):
        parse_entrant_annotation(data, source="a")


@st.composite
def entrant_annotations(draw: st.DrawFn) -> EntrantAnnotation:
    fps = draw(st.sampled_from([24.0, 25.0, 29.97, 30.0, 59.94]))
    n_frames = draw(st.integers(2, 500))
    cuts = sorted(draw(st.sets(st.integers(0, n_frames), max_size=20)))
    spans = [
        # The middle of a frame: its truncation does not depend on rounding.
        Span(start=(a + 0.5) / fps, end=(b + 0.5) / fps)
        for a, b in zip(cuts[::2], cuts[1::2], strict=False)
        if b < n_frames
    ]
    return EntrantAnnotation(clip_id="0001", fps=fps, n_frames=n_frames, segments=tuple(spans))


@settings(max_examples=60, deadline=None)
@given(entrant_annotations())
def test_what_is_rendered_is_parsed_back(annotation: EntrantAnnotation) -> None:
    data = render_entrant_annotation(annotation)
    assert parse_entrant_annotation(data, source="a") == annotation


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 12), st.integers(-2, 12)), max_size=4))
def test_spans_are_accepted_exactly_when_each_frame_is_in_at_most_one(
    spans: list[tuple[int, int]],
) -> None:
    frames = [frame for start, end in spans for frame in range(start, end)]
    inside = all(0 <= frame < 10 for frame in frames)
    tidy = frames == sorted(set(frames)) and all(start < end for start, end in spans)
    assert (spans_fault(spans, 10) is None) == (inside and tidy)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_but_malformed_document(data: bytes) -> None:
    with pytest.raises(MalformedDocument):
        parse_epee_annotation(data, source="a")
    with pytest.raises(MalformedDocument):
        parse_entrant_annotation(data, source="a")
