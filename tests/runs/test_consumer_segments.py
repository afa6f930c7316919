"""Predicted intervals reach the frozen consumer as the very frames that were predicted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.annotations import (
    EntrantAnnotation,
    parse_entrant_annotation,
    render_entrant_annotation,
)
from orchestrator.runs.consumer_exam import consumer_annotation, frame_start_s

RATES = st.one_of(
    st.sampled_from([23.976, 24.0, 25.0, 29.97, 30.0, 50.0, 59.94, 60.0, 120.0]),
    st.floats(1.0, 240.0),
)


@given(st.integers(0, 200_000), RATES)
def test_a_frames_time_truncates_back_to_that_frame(frame: int, fps: float) -> None:
    seconds = frame_start_s(frame, fps)
    assert int(seconds * fps) == frame
    assert seconds == pytest.approx(frame / fps, rel=1e-12)


@given(st.data(), RATES)
def test_spans_come_back_as_the_same_frames_through_the_file(
    data: st.DataObject, fps: float
) -> None:
    cuts = data.draw(st.lists(st.integers(0, 900), min_size=2, max_size=20, unique=True))
    cuts = sorted(cuts)[: len(cuts) // 2 * 2]
    spans = tuple(zip(cuts[::2], cuts[1::2], strict=True))
    bare = EntrantAnnotation(clip_id="0001", fps=fps, n_frames=900)
    written = render_entrant_annotation(consumer_annotation(bare, spans))
    found = parse_entrant_annotation(written, source="0001.json")
    assert [(int(s.start * fps), int(s.end * fps)) for s in found.segments] == list(spans)
    assert (found.clip_id, found.fps, found.n_frames) == ("0001", fps, 900)


def test_no_prediction_means_no_segment() -> None:
    bare = EntrantAnnotation(clip_id="0001", fps=25.0, n_frames=10)
    assert consumer_annotation(bare, ()).segments == ()
