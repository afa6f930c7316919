"""Controlled boundary edits: what they change, what they claim, and that they repeat."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from scorers.segmentation import LabelledSegment, SegmentationLabel, SegmentationParameters, score
from scorers.segmentation.documents import FrameSpan
from scorers.segmentation.edit_pairs import (
    equal_frame_pair,
    layers,
    matched_iou_pair,
    predictions_of,
    render_predictions,
)
from scorers.segmentation.edits import (
    EditedClip,
    deletion,
    dilation,
    edit_generator,
    erosion,
    jitter,
    merge,
    split,
)


def clip(spans: list[FrameSpan], frames: int, name: str = "0001") -> SegmentationLabel:
    signs = tuple(LabelledSegment("A", float(start), float(end)) for start, end in spans)
    return SegmentationLabel(name, "S", 1.0, frames, signs)


@st.composite
def labels(draw: st.DrawFn) -> SegmentationLabel:
    spans, at = [], 0
    steps = st.lists(st.tuples(st.integers(0, 7), st.integers(1, 25)), max_size=7)
    for gap, length in draw(steps):
        spans.append((at + gap, at + gap + length))
        at += gap + length
    return clip(spans, at + draw(st.integers(1, 5)))


def spans_of(label: SegmentationLabel) -> list[FrameSpan]:
    return [(int(s.start_s), int(s.end_s)) for s in label.segments]


Edit = Callable[[SegmentationLabel], EditedClip]

EDITS: dict[str, Edit] = {
    "erosion": lambda label: erosion(label, 5),
    "dilation": lambda label: dilation(label, 5),
    "jitter": lambda label: jitter(label, 4, seed=1),
    "deletion": lambda label: deletion(label, 40, seed=1),
    "merge": lambda label: merge(label, 60, seed=1),
    "split": lambda label: split(label, 60, seed=1),
}


@pytest.mark.parametrize("name", EDITS)
@given(label=labels())
@settings(max_examples=60, deadline=None)
def test_every_edit_gives_a_segmentation_that_can_be_scored(
    name: str, label: SegmentationLabel
) -> None:
    edited = EDITS[name](label)
    card = score([label], {label.clip_id: edited.spans}, ["A"], SegmentationParameters(resamples=1))
    assert card.complete
    lines = render_predictions(predictions_of({label.clip_id: edited})).splitlines()
    assert [(s["start_frame"], s["end_frame"]) for s in json.loads(lines[0])["segments"]] == [
        (s.start_frame, s.end_frame) for s in edited.segments
    ]


@pytest.mark.parametrize("name", EDITS)
@given(label=labels())
@settings(max_examples=40, deadline=None)
def test_the_achieved_overlap_is_that_of_the_frames(name: str, label: SegmentationLabel) -> None:
    gold = spans_of(label)
    for segment in EDITS[name](label).segments:
        window = set(range(segment.start_frame, segment.end_frame))
        source = {f for place in segment.sources for f in range(*gold[place])}
        assert segment.intersection_frames == len(window & source)
        assert segment.union_frames == len(window | source)


@given(labels(), st.integers(1, 9))
@settings(max_examples=80, deadline=None)
def test_erosion_takes_the_odd_frame_from_the_end_and_leaves_one(
    label: SegmentationLabel, frames: int
) -> None:
    for (start, end), segment in zip(spans_of(label), erosion(label, frames).segments, strict=True):
        length = segment.end_frame - segment.start_frame
        assert segment.exact == (end - start > frames)
        if segment.exact:
            assert segment.start_frame - start == frames // 2
            assert end - segment.end_frame == (frames + 1) // 2
        else:
            assert length == 1
        assert start <= segment.start_frame < segment.end_frame <= end


@given(labels(), st.integers(1, 9))
@settings(max_examples=80, deadline=None)
def test_dilation_adds_all_its_frames_or_says_that_it_could_not(
    label: SegmentationLabel, frames: int
) -> None:
    for (start, end), segment in zip(
        spans_of(label), dilation(label, frames).segments, strict=True
    ):
        added = segment.end_frame - segment.start_frame - (end - start)
        assert segment.exact == (added == frames)
        assert segment.start_frame <= start < end <= segment.end_frame
        if segment.exact:
            assert start - segment.start_frame == frames // 2


def test_dilated_neighbours_meet_in_the_middle_of_their_gap() -> None:
    edited = dilation(clip([(10, 20), (25, 30)], 60), 12)
    assert edited.spans == ((4, 22), (22, 36))
    assert [segment.exact for segment in edited.segments] == [False, False]


@given(labels(), st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_jitter_stays_within_its_bound_and_repeats(
    label: SegmentationLabel, frames: int, seed: int
) -> None:
    edited = jitter(label, frames, seed=seed)
    assert edited == jitter(label, frames, seed=seed)
    for (start, end), segment in zip(spans_of(label), edited.segments, strict=True):
        if segment.exact:
            assert abs(segment.start_frame - start) <= frames
            assert abs(segment.end_frame - end) <= frames


def test_jitter_reaches_every_shift_about_as_often() -> None:
    signs = [(100 * n + 40, 100 * n + 60) for n in range(400)]
    edited = jitter(clip(signs, 40_100), 2, seed=5)
    shifts = [s.start_frame - a for s, (a, _) in zip(edited.segments, signs, strict=True)]
    counts = np.bincount(np.array(shifts) + 2, minlength=5)
    assert counts.sum() == 400
    assert counts.min() > 50
    assert all(segment.exact for segment in edited.segments)


@given(labels(), st.integers(0, 100))
@settings(max_examples=80, deadline=None)
def test_deletion_and_split_change_their_share_of_the_signs(
    label: SegmentationLabel, percent: int
) -> None:
    signs = len(label.segments)
    share = int(signs * percent / 100 + 0.5)
    left = deletion(label, percent, seed=3)
    assert len(left.segments) == signs - share
    assert set(left.spans) <= set(spans_of(label))
    cut = split(label, percent, seed=3)
    touched = {
        s.sources[0] for s in cut.segments if not s.exact or s.union_frames != s.intersection_frames
    }
    assert len(touched) == share
    assert sum(end - start for start, end in cut.spans) == sum(b - a for a, b in spans_of(label))


def test_split_leaves_no_gap_and_puts_the_odd_frame_behind() -> None:
    edited = split(clip([(2, 9), (10, 11)], 20), 100, seed=0)
    assert edited.spans == ((2, 5), (5, 9), (10, 11))
    assert [segment.exact for segment in edited.segments] == [True, True, False]
    assert [segment.sources for segment in edited.segments] == [(0,), (0,), (1,)]


@given(labels(), st.integers(0, 100))
@settings(max_examples=80, deadline=None)
def test_merge_joins_neighbours_once_and_covers_their_gap(
    label: SegmentationLabel, percent: int
) -> None:
    gold = spans_of(label)
    edited = merge(label, percent, seed=2)
    wanted = int(len(gold) // 2 * percent / 100 + 0.5)
    joined = [segment for segment in edited.segments if len(segment.sources) == 2]
    assert len(joined) <= wanted
    assert all(segment.exact == (len(joined) == wanted) for segment in edited.segments)
    assert [place for s in edited.segments for place in s.sources] == list(range(len(gold)))
    for segment in edited.segments:
        first, last = gold[segment.sources[0]], gold[segment.sources[-1]]
        assert (segment.start_frame, segment.end_frame) == (first[0], last[1])


@given(labels(), st.sampled_from([30, 50, 60, 75, 80]))
@settings(max_examples=120, deadline=None)
def test_a_matched_pair_is_exact_only_at_the_very_iou(
    label: SegmentationLabel, percent: int
) -> None:
    pair = matched_iou_pair(label, percent)
    for place, (start, end) in enumerate(spans_of(label)):
        inner, outer = pair.inner.segments[place], pair.outer.segments[place]
        assert start <= inner.start_frame < inner.end_frame <= end, "Q = 1"
        assert outer.start_frame <= start < end <= outer.end_frame, "C = 1"
        for window in (inner, outer):
            at_iou = 100 * window.intersection_frames == percent * window.union_frames
            assert window.exact == at_iou
        if place in pair.exact_places:
            length = end - start
            assert (inner.end_frame - inner.start_frame) * 100 == percent * length
            assert (outer.end_frame - outer.start_frame) * percent == 100 * length


def test_a_matched_pair_at_one_half_halves_and_doubles() -> None:
    pair = matched_iou_pair(clip([(10, 20), (40, 45)], 80), 50)
    assert pair.inner.spans == ((12, 17), (41, 44))
    assert pair.outer.spans == ((5, 25), (38, 48))
    assert pair.exact_places == (0,), "5 frames have no half"


def test_an_outer_window_cut_by_the_clip_is_not_exact() -> None:
    pair = matched_iou_pair(clip([(2, 12), (20, 30)], 60), 50)
    assert pair.outer.spans[0] == (0, 17)
    assert pair.exact_places == (1,)
    frames = equal_frame_pair(clip([(1, 12), (20, 30)], 60), 4)
    assert frames.exact_places == (1,)


@given(labels(), st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_an_equal_frame_pair_changes_as_many_frames_inside_as_outside(
    label: SegmentationLabel, frames: int
) -> None:
    pair = equal_frame_pair(label, frames)
    for place in pair.exact_places:
        start, end = spans_of(label)[place]
        inner, outer = pair.inner.spans[place], pair.outer.spans[place]
        assert (inner[0] - start, end - inner[1]) == (frames // 2, frames - frames // 2)
        assert (start - outer[0], outer[1] - end) == (frames // 2, frames - frames // 2)


@given(labels())
@settings(max_examples=80, deadline=None)
def test_layers_hold_every_window_once_and_none_overlaps(label: SegmentationLabel) -> None:
    outer = matched_iou_pair(label, 30).outer
    rows = layers(outer)
    assert sorted(s for row in rows for s in row.spans) == sorted(outer.spans)
    for row in rows:
        render_predictions(predictions_of({row.clip_id: row}))
    depth = max(
        (sum(a <= frame < b for a, b in outer.spans) for frame in range(label.n_frames)), default=0
    )
    assert len(rows) == depth


def test_overlapping_windows_are_not_written_as_one_segmentation() -> None:
    outer = matched_iou_pair(clip([(10, 20), (22, 32)], 80), 50).outer
    with pytest.raises(MalformedDocument, match=r"clip 0001, segment 1 .*layers"):
        render_predictions(predictions_of({"0001": outer}))
    assert len(layers(outer)) == 2


def test_predictions_are_written_canonically() -> None:
    assert render_predictions({"b": [(0, 2), (2, 5)], "a": []}) == (
        b'{"clip_id":"a","segments":[]}\n'
        b'{"clip_id":"b","segments":[{"end_frame":2,"start_frame":0},{"end_frame":5,"start_frame":2}]}\n'
    )


def test_the_generator_is_seeded_by_the_digest_of_seed_video_and_edit() -> None:
    seed = int.from_bytes(hashlib.sha256(b"7\x000001\x00jitter-4").digest(), "big")
    raw = edit_generator(7, "0001", "jitter-4").random_raw(4).tolist()
    assert raw == np.random.PCG64(seed).random_raw(4).tolist()
    others = [(8, "0001", "jitter-4"), (7, "0002", "jitter-4"), (7, "0001", "jitter-5")]
    assert all(edit_generator(*other).random_raw(4).tolist() != raw for other in others)


def test_the_draws_stay_what_they_were() -> None:
    signs = [(20 * n, 20 * n + 12) for n in range(12)]
    label = clip(signs, 300)
    spans = [
        jitter(label, 4, seed=200).spans,
        deletion(label, 50, seed=200).spans,
        merge(label, 50, seed=200).spans,
    ]
    digest = hashlib.sha256(repr(spans).encode()).hexdigest()
    assert digest == "a5095a94a903099477f5e404f553cf90bf6ef1d7370bcf3f536ea3658c0041db"


@pytest.mark.parametrize(
    "edit",
    [
        lambda label: erosion(label, 0),
        lambda label: dilation(label, -1),
        lambda label: jitter(label, 0, seed=1),
        lambda label: deletion(label, 101, seed=1),
        lambda label: merge(label, -1, seed=1),
        lambda label: matched_iou_pair(label, 0),
        lambda label: matched_iou_pair(label, 100),
        lambda label: equal_frame_pair(label, 0),
    ],
)
def test_an_edit_of_absurd_size_is_refused(edit: Edit) -> None:
    with pytest.raises(MalformedDocument, match="edit: "):
        edit(clip([(0, 5)], 10))
