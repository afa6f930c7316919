"""Segmentation: half-open intervals of whole frames for each clip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from manifests.annotations import FrameSpan
from manifests.clips import MAX_FRAMES
from manifests.encoding import Json, canonical_json
from manifests.predictions.lines import (
    ClipExpectation,
    PredictionLimits,
    Reading,
    check_fields,
    read_lines,
)
from manifests.predictions.problems import EntryFault, ProblemKind


@dataclass(frozen=True, slots=True)
class SegmentationPrediction:
    """One clip's segments as `(start_frame, end_frame)`, ordered, not overlapping."""

    clip_id: str
    segments: tuple[FrameSpan, ...]


def read_segmentation(
    data: bytes,
    *,
    source: str,
    clips: Mapping[str, ClipExpectation],
    limits: PredictionLimits | None = None,
) -> Reading[SegmentationPrediction]:
    """Read segmentation predictions; every problem is a value, none is raised."""

    def read_entry(clip_id: str, document: dict[str, Json]) -> SegmentationPrediction:
        return _entry(clip_id, document, clips[clip_id].n_frames or MAX_FRAMES)

    return read_lines(
        data,
        source=source,
        clips=clips,
        read_entry=read_entry,
        limits=limits or PredictionLimits(),
    )


def render_segmentation(entries: Iterable[SegmentationPrediction]) -> bytes:
    """Return the canonical file: one line of canonical JSON per clip, by rising clip id."""
    lines = []
    for entry in sorted(entries, key=lambda entry: entry.clip_id):
        segments = [{"start_frame": start, "end_frame": end} for start, end in entry.segments]
        lines.append(canonical_json({"clip_id": entry.clip_id, "segments": segments}) + b"\n")
    return b"".join(lines)


def _entry(clip_id: str, document: dict[str, Json], n_frames: int) -> SegmentationPrediction:
    check_fields(document, required="clip_id segments")
    segments = document["segments"]
    if not isinstance(segments, list):
        raise EntryFault(ProblemKind.WRONG_TYPE, "segments is not a list")
    if len(segments) > n_frames:
        fact = f"{len(segments)} segments in {n_frames} frames; each holds at least one frame"
        raise EntryFault(ProblemKind.TOO_MANY_SEGMENTS, fact)
    spans: list[FrameSpan] = []
    for number, segment in enumerate(segments, start=1):
        span = _span(segment, number)
        _check_span(span, number, n_frames, spans[-1][1] if spans else 0)
        spans.append(span)
    return SegmentationPrediction(clip_id, tuple(spans))


def _span(segment: Json, number: int) -> FrameSpan:
    if not isinstance(segment, dict):
        fact = f"segment {number} is not an object with start_frame and end_frame"
        raise EntryFault(ProblemKind.WRONG_TYPE, fact)
    try:
        check_fields(segment, required="start_frame end_frame")
    except EntryFault as fault:
        raise EntryFault(fault.kind, f"segment {number}: {fault}") from fault
    return _frame(segment, "start_frame", number), _frame(segment, "end_frame", number)


def _frame(segment: dict[str, Json], name: str, number: int) -> int:
    value = segment[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise EntryFault(ProblemKind.WRONG_TYPE, f"segment {number}: {name} is not a whole number")
    if not 0 <= value <= MAX_FRAMES:
        fact = f"segment {number}: {name} is not between 0 and {MAX_FRAMES}"
        raise EntryFault(ProblemKind.SEGMENT_OUTSIDE, fact)
    return value


def _check_span(span: FrameSpan, number: int, n_frames: int, previous_end: int) -> None:
    start, end = span
    shown = f"segment {number} [{start}, {end})"
    if start >= end:
        raise EntryFault(ProblemKind.SEGMENT_EMPTY, f"{shown} holds no frame; end after start")
    if end > n_frames:
        fact = f"{shown} leaves the clip of {n_frames} frames"
        raise EntryFault(ProblemKind.SEGMENT_OUTSIDE, fact)
    if start < previous_end:
        fact = (
            f"{shown} begins before frame {previous_end}, where the one before it ends; "
            "order the segments and let none overlap"
        )
        raise EntryFault(ProblemKind.SEGMENT_ORDER, fact)
