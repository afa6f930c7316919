"""The exam's figures as functions of summed counts, for one card or for every replicate.

Each takes counts of R rows and returns float64 (R,), NaN where the figure is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from scorers.segmentation.counts import Counts
from scorers.segmentation.frames import OUTSIDE, class_f1
from scorers.segmentation.parameters import Boundaries, Matcher, Pooling, SegmentationParameters
from scorers.statistics.f1 import f1_array


class Figure(StrEnum):
    """The figures that are ratios of counts, under their names on the card."""

    MF1B = "mf1b"
    MF1S = "mf1s"
    FRAME_MACRO_F1 = "frame_macro_f1"
    FRAME_MACRO_F1_IO = "frame_macro_f1_io"
    FOREGROUND_IOU = "foreground_iou"
    COVERAGE = "coverage"
    RETAINED = "retained"
    PURITY = "purity"
    MATCHED_ACCURACY = "matched_accuracy"
    ALL_REFERENCE_ACCURACY = "all_reference_accuracy"
    AUC_RU = "auc_ru"
    WER_ALL = "wer_all"
    WER_IV = "wer_iv"
    OOV_SHARE = "oov_share"
    COUNT_RATIO_ALL = "count_ratio_all"
    COUNT_RATIO_IV = "count_ratio_iv"


LOWER_IS_BETTER = frozenset({Figure.WER_ALL, Figure.WER_IV})

NEEDS_CONSUMER = frozenset(
    {
        Figure.MATCHED_ACCURACY,
        Figure.ALL_REFERENCE_ACCURACY,
        Figure.AUC_RU,
        Figure.WER_ALL,
        Figure.WER_IV,
    }
)

NEEDS_VOCABULARY = NEEDS_CONSUMER | {
    Figure.COVERAGE,
    Figure.RETAINED,
    Figure.PURITY,
    Figure.OOV_SHARE,
    Figure.COUNT_RATIO_IV,
}

_RATIOS: Mapping[Figure, tuple[str, str]] = {
    Figure.COVERAGE: ("matched", "iv_references"),
    Figure.RETAINED: ("retained", "matched"),
    Figure.PURITY: ("purity", "matched"),
    Figure.MATCHED_ACCURACY: ("recognised", "matched"),
    Figure.ALL_REFERENCE_ACCURACY: ("recognised", "iv_references"),
    Figure.OOV_SHARE: ("dropped", "predictions"),
    Figure.COUNT_RATIO_ALL: ("predictions", "references"),
    Figure.COUNT_RATIO_IV: ("predictions", "iv_references"),
}

_UNDEFINED: Mapping[str, str] = {
    "matched": "no prediction overlaps an in-vocabulary reference",
    "iv_references": "no reference is in the consumer's vocabulary",
    "predictions": "no segment is predicted",
    "references": "no segment is annotated",
}


def figure_values(
    figure: Figure, counts: Counts, parameters: SegmentationParameters
) -> NDArray[np.float64]:
    """Compute one figure of every row of the counts; the counts must hold what it needs."""
    if figure in _RATIOS:
        above, below = _RATIOS[figure]
        return _ratio(counts.one(above), counts.one(below))
    return _COMPUTED[figure](counts, parameters)


def reason_undefined(figure: Figure) -> str:
    """Say why a figure of otherwise complete inputs has no value."""
    if figure in _RATIOS:
        return _UNDEFINED[_RATIOS[figure][1]]
    if figure in NEEDS_VOCABULARY:
        return _UNDEFINED["iv_references"]
    return "nothing is annotated and nothing is predicted"


def trapezoid_weights(percents: tuple[int, ...]) -> NDArray[np.int64]:
    """Return whole weights of U(t): their weighted mean is the trapezoid area over the width.

    A grid of one threshold has weight 1: the area is then U at that threshold.
    """
    if len(percents) == 1:
        return np.ones(1, np.int64)
    grid = np.array(percents, np.int64)
    steps = grid[1:] - grid[:-1]
    weights = np.zeros(len(percents), np.int64)
    weights[:-1] += steps
    weights[1:] += steps
    return weights


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    undefined = np.full(below.shape, np.nan)
    return np.asarray(np.divide(above, below, out=undefined, where=below > 0))


def _auc_ru(counts: Counts, parameters: SegmentationParameters) -> NDArray[np.float64]:
    weights = trapezoid_weights(parameters.utility_percent)
    area = (counts["utility_hits"] * weights).sum(axis=1)
    return _ratio(area, weights.sum() * counts.one("iv_references"))


def _wer_all(counts: Counts, _: SegmentationParameters) -> NDArray[np.float64]:
    return _error_rate(counts["wer_all"])


def _wer_iv(counts: Counts, _: SegmentationParameters) -> NDArray[np.float64]:
    return _error_rate(counts["wer_iv"])


def _error_rate(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    return _ratio(errors[:, :3].sum(axis=1), errors[:, 3])


def _mf1s(counts: Counts, parameters: SegmentationParameters) -> NDArray[np.float64]:
    sides = counts["references"], counts["predictions"]
    if parameters.matcher is not Matcher.RENZ:
        return _mean_f1(counts["segment_hits"], *sides)
    percents = 100 * _f1_from_precision(counts["segment_hits"], *sides)
    return _where_any(np.round(percents, 2).mean(axis=1) / 100, *sides)


def _mf1b(counts: Counts, parameters: SegmentationParameters) -> NDArray[np.float64]:
    sides = counts["boundary_references"], counts["boundary_predictions"]
    if parameters.boundaries is not Boundaries.RENZ:
        return _mean_f1(counts["boundary_hits"], *sides)
    percents = 100 * _f1_from_precision(counts["boundary_hits"], *sides)
    return _where_any(np.round(percents.mean(axis=1), 2) / 100, *sides)


def _mean_f1(
    hits: NDArray[np.float64], references: NDArray[np.float64], predictions: NDArray[np.float64]
) -> NDArray[np.float64]:
    mean = f1_array(hits, predictions, references).mean(axis=1)
    return _where_any(np.asarray(mean, np.float64), references, predictions)


def _f1_from_precision(
    hits: NDArray[np.float64], references: NDArray[np.float64], predictions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return F1 as 2PR / (P + R), whose rounding the published two decimals depend on."""
    precision = np.divide(hits, predictions, out=np.zeros_like(hits), where=predictions > 0)
    recall = np.divide(hits, references, out=np.zeros_like(hits), where=references > 0)
    either = precision + recall
    twice = 2.0 * (precision * recall)
    return np.asarray(np.divide(twice, either, out=np.zeros_like(hits), where=either > 0))


def _where_any(
    values: NDArray[np.float64], references: NDArray[np.float64], predictions: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray(np.where((references + predictions)[:, 0] > 0, values, np.nan), np.float64)


def _table(counts: Counts) -> NDArray[np.float64]:
    return counts["frame_confusion"].reshape(-1, 3, 3)


def _in_or_out(counts: Counts) -> NDArray[np.float64]:
    table = _table(counts)
    outside = table[:, OUTSIDE, OUTSIDE]
    rows = [
        [table[:, :2, :2].sum(axis=(1, 2)), table[:, :2, OUTSIDE].sum(axis=1)],
        [table[:, OUTSIDE, :2].sum(axis=1), outside],
    ]
    return np.moveaxis(np.array(rows, np.float64), 2, 0)


def _frame_macro_f1_io(counts: Counts, _: SegmentationParameters) -> NDArray[np.float64]:
    return np.asarray(class_f1(_in_or_out(counts)).mean(axis=-1), np.float64)


def _frame_macro_f1(counts: Counts, parameters: SegmentationParameters) -> NDArray[np.float64]:
    match parameters.frame_f1:
        case Pooling.POOLED:
            return np.asarray(class_f1(_table(counts)).mean(axis=-1), np.float64)
        case Pooling.PER_VIDEO:
            return _ratio(counts.one("video_frame_f1"), counts.one("videos"))
        case _:
            assert_never(parameters.frame_f1)


def _foreground_iou(counts: Counts, parameters: SegmentationParameters) -> NDArray[np.float64]:
    match parameters.foreground_iou:
        case Pooling.POOLED:
            table = _table(counts)
            union = table.sum(axis=(1, 2)) - table[:, OUTSIDE, OUTSIDE]
            return _ratio(table[:, :2, :2].sum(axis=(1, 2)), union)
        case Pooling.PER_VIDEO:
            return _ratio(counts.one("video_iou"), counts.one("videos"))
        case _:
            assert_never(parameters.foreground_iou)


_COMPUTED: Mapping[Figure, Callable[[Counts, SegmentationParameters], NDArray[np.float64]]] = {
    Figure.MF1B: _mf1b,
    Figure.MF1S: _mf1s,
    Figure.FRAME_MACRO_F1: _frame_macro_f1,
    Figure.FRAME_MACRO_F1_IO: _frame_macro_f1_io,
    Figure.FOREGROUND_IOU: _foreground_iou,
    Figure.AUC_RU: _auc_ru,
    Figure.WER_ALL: _wer_all,
    Figure.WER_IV: _wer_iv,
}
