"""What the exam is given: labelled clips, predicted segments, the consumer's answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

UNKNOWN = "UNKNOWN"
"""The answer of a consumer that declines; it never equals a reference."""

MAX_FRAMES = 2**24
"""Longest clip. Below it, the float64 quotients of two IoUs are equal only if the IoUs are."""

FrameSpan: TypeAlias = tuple[int, int]
"""A half-open interval of frames: first frame, one past the last."""

Answer: TypeAlias = tuple[str, float | None]
"""A consumer's label of one predicted segment, and its confidence in [0, 1] where it gives one."""

Predictions: TypeAlias = Mapping[str, Sequence[FrameSpan]]
"""Clip id to predicted segments: ordered, within the clip, not overlapping."""

ConsumerAnswers: TypeAlias = Mapping[str, Sequence[Answer]]
"""Clip id to the frozen consumer's answers, aligned by position with the predicted segments."""


@dataclass(frozen=True, slots=True)
class LabelledSegment:
    """One annotated sign, in seconds."""

    gloss: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class SegmentationLabel:
    """The reference of one clip; ``n_frames`` frames at ``fps`` frames a second."""

    clip_id: str
    signer_id: str
    fps: float
    n_frames: int
    segments: tuple[LabelledSegment, ...]


@dataclass(frozen=True, slots=True)
class SystemOutput:
    """What one segmenter predicts, and what the frozen consumer says about it."""

    name: str
    predictions: Predictions
    consumer: ConsumerAnswers | None = None


def segment_frames(segment: LabelledSegment, fps: float) -> FrameSpan:
    """Return the frames ``[int(start * fps), int(end * fps))`` of an annotated sign.

    This is the one home of the conversion. Both products are truncated as float64, exactly as
    the Épée loader does (design, section 5): 0.29 s at 100 fps is frame 28, not 29.
    """
    return int(segment.start_s * fps), int(segment.end_s * fps)


def reference_spans(label: SegmentationLabel) -> list[FrameSpan]:
    """Return the checked reference segments of a clip in frames.

    Raise ``MalformedDocument`` with clip and segment for a clip or segment that cannot be.
    """
    place = f"labels, clip {escape_untrusted(label.clip_id)}"
    if not math.isfinite(label.fps) or label.fps <= 0:
        raise MalformedDocument(f"{place}: fps is {label.fps}; it must be above 0")
    if not 0 < label.n_frames < MAX_FRAMES:
        raise MalformedDocument(f"{place}: n_frames is {label.n_frames}, not 1 to {MAX_FRAMES - 1}")
    for index, segment in enumerate(label.segments):
        if not all(math.isfinite(s * label.fps) for s in (segment.start_s, segment.end_s)):
            raise MalformedDocument(f"{place}, segment {index}: a time is not finite")
    spans = [segment_frames(segment, label.fps) for segment in label.segments]
    check_spans(spans, label.n_frames, place)
    return spans


def check_spans(spans: Sequence[FrameSpan], n_frames: int, place: str) -> None:
    """Raise ``MalformedDocument`` unless the spans are ordered, disjoint and within the clip."""
    previous_end = 0
    for index, (start, end) in enumerate(spans):
        fact = _span_fault(start, end, n_frames, previous_end)
        if fact is not None:
            raise MalformedDocument(f"{place}, segment {index} [{start}, {end}): {fact}")
        previous_end = end


def _span_fault(start: int, end: int, n_frames: int, previous_end: int) -> str | None:
    if start >= end:
        return "it holds no frame"
    if start < 0 or end > n_frames:
        return f"it leaves the clip of {n_frames} frames"
    if start < previous_end:
        return f"it starts before frame {previous_end}, where the previous one ends"
    return None


def labels_by_clip(labels: Iterable[SegmentationLabel]) -> dict[str, SegmentationLabel]:
    """Return the labels by clip id, in the order of the ids.

    Raise ``MalformedDocument`` for a clip that stands twice, or for no clip at all.
    """
    by_clip: dict[str, SegmentationLabel] = {}
    for label in labels:
        if label.clip_id in by_clip:
            raise MalformedDocument(f"labels: clip {escape_untrusted(label.clip_id)} stands twice")
        by_clip[label.clip_id] = label
    if not by_clip:
        raise MalformedDocument("labels: they hold no clip, so nothing can be scored")
    return dict(sorted(by_clip.items()))


def refuse_unknown_clips(
    given: Iterable[str], labels: Mapping[str, SegmentationLabel], what: str
) -> None:
    """Raise ``MalformedDocument`` naming the first clip that has no label."""
    for clip_id in given:
        if clip_id not in labels:
            shown = escape_untrusted(clip_id)
            raise MalformedDocument(f"{what}: clip {shown} is not in this exam")


def checked_answers(
    answers: Sequence[Answer], segments: int, clip_id: str
) -> list[tuple[str, float | None]]:
    """Return one answer for each predicted segment of a clip.

    Missing answers at the end become UNKNOWN. UNKNOWN has confidence 0, whatever it states: it
    is the least confident answer (scoring notes, section 0). Raise ``MalformedDocument`` for
    more answers than segments or for a confidence outside [0, 1].
    """
    place = f"consumer, clip {escape_untrusted(clip_id)}"
    if len(answers) > segments:
        raise MalformedDocument(f"{place}: {len(answers)} answers for {segments} segments")
    for index, (_, confidence) in enumerate(answers):
        if confidence is not None and not 0 <= confidence <= 1:
            raise MalformedDocument(
                f"{place}, answer {index}: confidence {confidence} is outside [0, 1]"
            )
    padded = [*answers, *[(UNKNOWN, None)] * (segments - len(answers))]
    return [(gloss, 0.0 if gloss == UNKNOWN else confidence) for gloss, confidence in padded]
