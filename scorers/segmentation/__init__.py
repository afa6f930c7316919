"""Segmentation (consumer-aware)."""

from scorers.segmentation.card import score
from scorers.segmentation.comparison import compare
from scorers.segmentation.documents import (
    UNKNOWN,
    Answer,
    ConsumerAnswers,
    FrameSpan,
    LabelledSegment,
    Predictions,
    SegmentationLabel,
    SystemOutput,
    segment_frames,
)
from scorers.segmentation.figures import Figure
from scorers.segmentation.parameters import (
    Boundaries,
    Matcher,
    Pooling,
    SegmentationParameters,
    renz_parameters,
)
from scorers.segmentation.rejection import RejectionLevel, fit_rejection

__all__ = [
    "UNKNOWN",
    "Answer",
    "Boundaries",
    "ConsumerAnswers",
    "Figure",
    "FrameSpan",
    "LabelledSegment",
    "Matcher",
    "Pooling",
    "Predictions",
    "RejectionLevel",
    "SegmentationLabel",
    "SegmentationParameters",
    "SystemOutput",
    "compare",
    "fit_rejection",
    "renz_parameters",
    "score",
    "segment_frames",
]
