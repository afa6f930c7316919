"""Annotations: what the Épée corpus says about a clip, and the part that an entrant is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from manifests.clips import MAX_FRAMES
from manifests.encoding import canonical_json, parse_json_object
from manifests.glosses import label_gloss_fault
from manifests.names import ClipId
from manifests.validation import Listed, StrictDocument, validate_document

FrameSpan = tuple[int, int]
"""A half-open interval of frames: the first frame, and one past the last."""

Fps = Annotated[float, Field(gt=0, le=1000, description="frames a second, above 0")]
FrameCount = Annotated[int, Field(ge=1, le=MAX_FRAMES, description="a number of frames, from 1")]
SignerId = Annotated[str, Field(max_length=64, pattern=r"^\P{C}+$")]
"""A signer's name, as ALPHA: 1 to 64 printable characters."""
Seconds = Annotated[float, Field(ge=0, le=10_000_000)]


class Span(StrictDocument):
    """One sign's place in a clip, in seconds."""

    start: Seconds
    end: Seconds

    def frames(self, fps: float) -> FrameSpan:
        """Return `[int(start * fps), int(end * fps))`: truncated, as the Épée loader does."""
        return int(self.start * fps), int(self.end * fps)


class GlossSegment(Span):
    """One annotated sign. Fields that a corpus adds are not read."""

    model_config = ConfigDict(extra="ignore")

    gloss: str = Field(description="one word")

    @model_validator(mode="after")
    def _check_gloss(self) -> GlossSegment:
        fault = label_gloss_fault(self.gloss)
        if fault is not None:
            raise ValueError(fault)
        return self


class EntrantAnnotation(StrictDocument):
    """`/input/annotations/<clip_id>.json`: nothing here names a signer, a phrase or a label."""

    clip_id: ClipId
    fps: Fps
    n_frames: FrameCount
    segments: Annotated[tuple[Span, ...], Listed] = ()
    """Given in recognition only; ordered, in seconds."""

    @model_validator(mode="after")
    def _check_segments(self) -> EntrantAnnotation:
        _check(self.segments, self.fps, self.n_frames)
        return self


class EpeeAnnotation(StrictDocument):
    """`annotations/<clip_id>.json` of a corpus in the Épée layout (scoring notes, section 3).

    Only what sealing and scoring use is checked; fields that a corpus adds are not read.
    """

    model_config = ConfigDict(extra="ignore")

    clip_id: ClipId
    signer_id: SignerId
    phrase_id: str | int | None = None
    parallel: bool | str | int | None = None
    text_en: str | None = Field(default=None, max_length=10_000)
    fps: Fps
    n_frames: FrameCount
    segments: Annotated[tuple[GlossSegment, ...], Listed] = ()

    @model_validator(mode="after")
    def _check_segments(self) -> EpeeAnnotation:
        _check(self.segments, self.fps, self.n_frames)
        return self

    def for_entrant(self, *, clip_id: str, with_segments: bool) -> EntrantAnnotation:
        """Return what an entrant may see, under the opaque name `clip_id`."""
        spans = tuple(Span(start=segment.start, end=segment.end) for segment in self.segments)
        return EntrantAnnotation(
            clip_id=clip_id,
            fps=self.fps,
            n_frames=self.n_frames,
            segments=spans if with_segments else (),
        )


def spans_fault(spans: Sequence[FrameSpan], n_frames: int) -> str | None:
    """Return what is wrong with `spans` as a clip's segments, or None.

    Each holds at least one frame, lies inside the clip and begins where the one before it has
    ended, or later.
    """
    previous_end = 0
    for number, (start, end) in enumerate(spans, start=1):
        if start < 0 or end > n_frames:
            return f"segment {number} [{start}, {end}) leaves the clip of {n_frames} frames"
        if start >= end:
            return f"segment {number} [{start}, {end}) holds no frame"
        if start < previous_end:
            return (
                f"segment {number} [{start}, {end}) begins before frame {previous_end}, where the "
                "one before it ends; order the segments and let none overlap"
            )
        previous_end = end
    return None


def _check(segments: Sequence[Span], fps: float, n_frames: int) -> None:
    fault = spans_fault([segment.frames(fps) for segment in segments], n_frames)
    if fault is not None:
        raise ValueError(f"in frames at {fps} a second, {fault}")


def parse_epee_annotation(data: bytes, *, source: str) -> EpeeAnnotation:
    """Parse one annotation of a corpus in the Épée layout.

    Raises:
        MalformedDocument: with source, field, fact and bound.

    """
    values = parse_json_object(data, source=source)
    return validate_document(EpeeAnnotation, values, prefix=lambda _: source)


def parse_entrant_annotation(data: bytes, *, source: str) -> EntrantAnnotation:
    """Parse one annotation as an entrant is given it.

    Raises:
        MalformedDocument: with source, field, fact and bound.

    """
    values = parse_json_object(data, source=source)
    return validate_document(EntrantAnnotation, values, prefix=lambda _: source)


def render_entrant_annotation(annotation: EntrantAnnotation) -> bytes:
    """Return the file of `annotation`: canonical JSON and a final newline."""
    return canonical_json(annotation.model_dump(mode="json")) + b"\n"
