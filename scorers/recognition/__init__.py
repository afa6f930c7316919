"""Recognition (Épée 200)."""

from manifests.glosses import UNKNOWN
from scorers.recognition.card import score
from scorers.recognition.comparison import compare, gap_flag, gap_limit, within_noise
from scorers.recognition.exam import (
    ClipLabels,
    Position,
    Predictions,
    RecognitionParameters,
)

__all__ = [
    "UNKNOWN",
    "ClipLabels",
    "Position",
    "Predictions",
    "RecognitionParameters",
    "compare",
    "gap_flag",
    "gap_limit",
    "score",
    "within_noise",
]
