"""Translation (Signet).

``score`` gives the card of one run; ``measure`` its statistics per clip, from which ``card``
makes the same card and ``challenge`` decides about the lead without scoring anew.
"""

from scorers.translation.bleurt_scores import (
    SegmentScores,
    parse_segment_scores,
    render_segment_scores,
)
from scorers.translation.card import card, score
from scorers.translation.exam import Slice, TranslationLabel
from scorers.translation.leadership import LeadershipDecision, RankedFigure, challenge, compare
from scorers.translation.measurement import Measurement, measure
from scorers.translation.parameters import GateMetric, TranslationParameters
from scorers.translation.pose import LazyPoses, PoseParameters, Poses
from scorers.translation.pose_calibration import calibrated_reference_error

__all__ = [
    "GateMetric",
    "LazyPoses",
    "LeadershipDecision",
    "Measurement",
    "PoseParameters",
    "Poses",
    "RankedFigure",
    "SegmentScores",
    "Slice",
    "TranslationLabel",
    "TranslationParameters",
    "calibrated_reference_error",
    "card",
    "challenge",
    "compare",
    "measure",
    "parse_segment_scores",
    "render_segment_scores",
    "score",
]
