"""What can be wrong with predictions: a closed set of kinds, each problem with clip and line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from manifests.errors import MalformedDocument


class ProblemKind(StrEnum):
    """The kinds of problems. All but `missing-clip` make the file invalid."""

    FILE_TOO_LARGE = "file-too-large"
    LINE_TOO_LONG = "line-too-long"
    BLANK_LINE = "blank-line"
    TOO_DEEP = "too-deep"
    NOT_JSON = "not-json"
    UNKNOWN_FIELD = "unknown-field"
    MISSING_FIELD = "missing-field"
    WRONG_TYPE = "wrong-type"
    UNKNOWN_CLIP = "unknown-clip"
    DUPLICATE_CLIP = "duplicate-clip"
    TOO_MANY_SIGNS = "too-many-signs"
    CANDIDATE_COUNT = "candidate-count"
    BAD_GLOSS = "bad-gloss"
    BAD_CONFIDENCE = "bad-confidence"
    BAD_TEXT = "bad-text"
    SEGMENT_OUTSIDE = "segment-outside"
    SEGMENT_EMPTY = "segment-empty"
    SEGMENT_ORDER = "segment-order"
    TOO_MANY_SEGMENTS = "too-many-segments"
    BAD_POSE = "bad-pose"
    MISSING_CLIP = "missing-clip"


@dataclass(frozen=True, slots=True)
class PredictionProblem:
    """One problem. `message` holds place, fact and bound, and is safe to show."""

    kind: ProblemKind
    clip_id: str | None
    line: int | None
    message: str

    @property
    def invalidates(self) -> bool:
        """Tell whether the file is invalid, not merely incomplete."""
        return self.kind is not ProblemKind.MISSING_CLIP


class EntryFault(MalformedDocument):
    """One line's content breaks a rule; the reader of lines adds clip and line to it."""

    def __init__(self, kind: ProblemKind, fact: str) -> None:
        super().__init__(fact)
        self.kind = kind
