"""Put two runs, or two rounds, side by side: paired interval, tie and gap flag."""

from __future__ import annotations

import math
from collections.abc import Sequence

from manifests.errors import MalformedDocument
from scorers.recognition.answers import encode_answers
from scorers.recognition.exam import ClipLabels, Predictions, RecognitionParameters
from scorers.recognition.macro_f1 import clip_counts, macro_f1, macro_f1_replicates
from scorers.recognition.reference import encode_labels
from scorers.statistics.bootstrap import resample_weights
from scorers.statistics.paired import PairedComparison, compare_replicates


def compare(
    labels: Sequence[ClipLabels],
    predictions_a: Predictions,
    predictions_b: Predictions,
    vocabulary: Sequence[str],
    parameters: RecognitionParameters,
) -> PairedComparison:
    """Compare the macro-F1 of two complete runs on the same clips, resampled together.

    Delta is a - b. Raise ``MalformedDocument`` for an incomplete or malformed run, and when no
    label is in the scored vocabulary.
    """
    reference = encode_labels(labels, vocabulary)
    clips_a = clip_counts(encode_answers(reference, predictions_a))
    clips_b = clip_counts(encode_answers(reference, predictions_b))
    macro_a, macro_b = macro_f1(clips_a.total()), macro_f1(clips_b.total())
    if macro_a is None or macro_b is None:
        raise MalformedDocument("labels: no label is in the scored vocabulary; nothing to compare")
    units = len(reference.clip_ids)
    weights = resample_weights(units, parameters.resamples, parameters.seed)
    differences = macro_f1_replicates(clips_a, weights) - macro_f1_replicates(clips_b, weights)
    return compare_replicates(macro_a - macro_b, differences, units=units)


def gap_limit(floor: float) -> float:
    """Return the largest gap between two rounds that the clip draw explains: sqrt(2) x floor."""
    return math.sqrt(2) * floor


def gap_flag(qualifier_f1: float, final_f1: float, floor: float) -> bool:
    """Tell whether Qualifier and Final differ by more than the clip draw explains.

    A flag asks for a review; it never changes a score.
    """
    return abs(qualifier_f1 - final_f1) > gap_limit(floor)


def within_noise(first: float, second: float, *, floors: tuple[float, float]) -> bool:
    """Tell whether two rows tie: their distance is at most the larger of their two floors."""
    return abs(first - second) <= max(floors)
