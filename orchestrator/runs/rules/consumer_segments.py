"""Hand predicted intervals to the frozen consumer as the segments of a recognition exam."""

from __future__ import annotations

import math

from manifests.annotations import EntrantAnnotation, FrameSpan, Span


def frame_start_s(frame: int, fps: float) -> float:
    """Return the least-surprising time whose truncated frame is `frame`: `int(t * fps) == frame`.

    `frame / fps` may truncate to the frame before; then the next float up is taken.
    """
    seconds = frame / fps
    while int(seconds * fps) < frame:
        seconds = math.nextafter(seconds, math.inf)
    return seconds


def consumer_annotation(
    annotation: EntrantAnnotation, spans: tuple[FrameSpan, ...]
) -> EntrantAnnotation:
    """Return the clip's annotation with the predicted intervals as its segments, in seconds."""
    fps = annotation.fps
    segments = tuple(
        Span(start=frame_start_s(start, fps), end=frame_start_s(end, fps)) for start, end in spans
    )
    return annotation.model_copy(update={"segments": segments})
