"""Pairs of edits that differ in direction only: inner and outer windows of each sign."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from manifests.errors import MalformedDocument
from manifests.predictions.segmentation import SegmentationPrediction, render_segmentation
from manifests.text import escape_untrusted
from scorers.segmentation.documents import (
    FrameSpan,
    Predictions,
    SegmentationLabel,
    reference_spans,
)
from scorers.segmentation.edits import EditedClip, EditedSegment, compared, grown, shrunk


@dataclass(frozen=True, slots=True)
class EditedPair:
    """Two windows of every sign of a clip: ``inner`` loses evidence, ``outer`` adds context.

    Outer windows may overlap their neighbours: each is a clip for the consumer, not part of one
    segmentation. ``layers`` splits them into segmentations.
    """

    inner: EditedClip
    outer: EditedClip

    @property
    def exact_places(self) -> tuple[int, ...]:
        """Return the signs of the strict subset: both windows are as asked."""
        both = zip(self.inner.segments, self.outer.segments, strict=True)
        return tuple(place for place, (a, b) in enumerate(both) if a.exact and b.exact)


def matched_iou_pair(label: SegmentationLabel, iou_percent: int) -> EditedPair:
    """Return inner and outer windows at one IoU t: length tL inside, L/t around the sign.

    The inner one has C = t and Q = 1, the outer one C = 1 and Q = t. Lengths are rounded half
    up; a window is exact where its achieved IoU is t, decided on integers.
    """
    if not 1 <= iou_percent <= 99:
        raise MalformedDocument(f"edit: IoU of {iou_percent}% is outside 1 to 99")

    def inner(length: int) -> int:
        return length - max(1, _half_up(length * iou_percent, 100))

    def outer(length: int) -> int:
        return _half_up(length * 100, iou_percent) - length

    def achieved(segment: EditedSegment) -> bool:
        return 100 * segment.intersection_frames == iou_percent * segment.union_frames

    return _pair(label, f"iou-{iou_percent}", inner, outer, achieved)


def equal_frame_pair(label: SegmentationLabel, frames: int) -> EditedPair:
    """Return windows with ``frames`` frames taken off and added, half at each end.

    Exact where all of them could be taken or added: the sign is longer, the clip wide enough.
    """
    if frames < 1:
        raise MalformedDocument(f"edit: {frames} frames; an equal-frame pair needs 1 or more")

    def changed(segment: EditedSegment) -> bool:
        return segment.union_frames - segment.intersection_frames == frames

    return _pair(label, f"frames-{frames}", lambda _: frames, lambda _: frames, changed)


def layers(clip: EditedClip) -> tuple[EditedClip, ...]:
    """Split windows that may overlap into as few proper segmentations as their order allows.

    Each window goes to the first layer that is free at its start. Every layer can be written as
    predictions and run through the consumer.
    """
    rows: list[list[EditedSegment]] = []
    for segment in sorted(clip.segments, key=lambda s: (s.start_frame, s.end_frame)):
        free = (row for row in rows if row[-1].end_frame <= segment.start_frame)
        row = next(free, None)
        if row is None:
            rows.append(row := [])
        row.append(segment)
    return tuple(EditedClip(clip.clip_id, clip.n_frames, clip.edit, tuple(row)) for row in rows)


def predictions_of(clips: Mapping[str, EditedClip]) -> dict[str, tuple[FrameSpan, ...]]:
    """Return edited clips as a system's predictions."""
    return {clip_id: clip.spans for clip_id, clip in clips.items()}


def render_predictions(predictions: Predictions) -> bytes:
    """Write predictions as the canonical ``predictions.jsonl``: a line a clip, by clip id.

    Raise ``MalformedDocument`` for spans that are empty, negative, unordered or overlapping.
    """
    for clip_id, spans in predictions.items():
        for index, (start, end) in enumerate(spans):
            if start < (spans[index - 1][1] if index else 0) or end <= start:
                place = f"predictions, clip {escape_untrusted(clip_id)}, segment {index}"
                raise MalformedDocument(
                    f"{place} [{start}, {end}): segments must be ordered and disjoint; "
                    "split overlapping windows into layers first"
                )
    return render_segmentation(
        SegmentationPrediction(clip_id, tuple(spans)) for clip_id, spans in predictions.items()
    )


def _pair(
    label: SegmentationLabel,
    name: str,
    taken: Callable[[int], int],
    added: Callable[[int], int],
    holds: Callable[[EditedSegment], bool],
) -> EditedPair:
    spans = reference_spans(label)
    inner = [shrunk(span, taken(span[1] - span[0])) for span in spans]
    outer = [
        (max(start, 0), min(end, label.n_frames))
        for start, end in (grown(span, added(span[1] - span[0])) for span in spans)
    ]
    return EditedPair(
        _windows(label, f"inner-{name}", spans, inner, holds),
        _windows(label, f"outer-{name}", spans, outer, holds),
    )


def _windows(
    label: SegmentationLabel,
    edit: str,
    spans: list[FrameSpan],
    windows: list[FrameSpan],
    holds: Callable[[EditedSegment], bool],
) -> EditedClip:
    segments = []
    for place, window in enumerate(windows):
        shared, union = compared(spans, window, (place,))
        segment = EditedSegment(*window, (place,), shared, union, exact=False)
        exact = holds(segment)
        segments.append(EditedSegment(*window, (place,), shared, union, exact))
    return EditedClip(label.clip_id, label.n_frames, edit, tuple(segments))


def _half_up(above: int, below: int) -> int:
    return (2 * above + below) // (2 * below)
