"""Pair reference and predicted segments, one to one, by exact intersection over union."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from scorers.segmentation.corpus import Spans
from scorers.segmentation.parameters import Matcher


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of a reference and a prediction that share frames; four int64 arrays (n,)."""

    reference: NDArray[np.int64]
    prediction: NDArray[np.int64]
    intersection: NDArray[np.int64]
    union: NDArray[np.int64]

    @property
    def iou(self) -> NDArray[np.float64]:
        """Return the float64 quotients; they order and tie as the fractions do."""
        return self.intersection / self.union

    def chosen(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Pairs:
        """Return the pairs at these places."""
        return Pairs(
            self.reference[places],
            self.prediction[places],
            self.intersection[places],
            self.union[places],
        )

    def reaching(self, percents: tuple[int, ...]) -> NDArray[np.bool_]:
        """Tell which pairs reach each threshold, decided on integers; shape (n, thresholds)."""
        thresholds = np.array(percents, np.int64)
        return 100 * self.intersection[:, None] >= thresholds * self.union[:, None]


def expand_ranges(
    first: NDArray[np.int64], last: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (row, value) for every value of the half-open range of each row."""
    counts = np.maximum(last - first, 0)
    row = np.repeat(np.arange(first.size, dtype=np.int64), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return row, np.arange(row.size, dtype=np.int64) - before + first[row]


def overlapping_pairs(references: Spans, predictions: Spans, n_frames: NDArray[np.int64]) -> Pairs:
    """Return every pair of the same clip that shares at least one frame.

    ``n_frames`` (clips,) lays the clips end to end on one axis, where both sides are sorted and
    disjoint, so the partners of a prediction are one range of references.
    """
    offset = np.cumsum(n_frames) - n_frames
    reference_start = references.start + offset[references.clip]
    reference_end = references.end + offset[references.clip]
    start = predictions.start + offset[predictions.clip]
    end = predictions.end + offset[predictions.clip]
    prediction, reference = expand_ranges(
        np.searchsorted(reference_end, start, side="right"),
        np.searchsorted(reference_start, end, side="left"),
    )
    low = np.maximum(reference_start[reference], start[prediction])
    high = np.minimum(reference_end[reference], end[prediction])
    lengths = references.length[reference] + predictions.length[prediction]
    return Pairs(reference, prediction, high - low, lengths - (high - low))


def one_to_one(pairs: Pairs, clip: NDArray[np.int64], matcher: Matcher) -> Pairs:
    """Choose the one-to-one pairs; ``clip`` names the clip of each pair."""
    match matcher:
        case Matcher.GREEDY:
            order = np.lexsort((pairs.prediction, pairs.reference, -pairs.iou))
        case Matcher.RENZ:
            order = np.lexsort((pairs.reference, pairs.prediction, -pairs.iou))
        case Matcher.HUNGARIAN:
            return pairs.chosen(_assigned(pairs, clip))
        case _:
            assert_never(matcher)
    return pairs.chosen(take_greedily(order, pairs.reference, pairs.prediction))


def take_greedily(
    order: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Walk the pairs in order and take each whose two sides are both still free."""
    used_left: set[int] = set()
    used_right: set[int] = set()
    taken: list[int] = []
    for place, a, b in zip(
        order.tolist(), left[order].tolist(), right[order].tolist(), strict=True
    ):
        if a not in used_left and b not in used_right:
            used_left.add(a)
            used_right.add(b)
            taken.append(place)
    return np.array(taken, np.int64)


def _assigned(pairs: Pairs, clip: NDArray[np.int64]) -> NDArray[np.int64]:
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - 0.8 s, only this mode

    taken = [np.zeros(0, np.int64)]
    for of_clip in np.unique(clip):
        places = np.flatnonzero(clip == of_clip)
        rows, row = np.unique(pairs.reference[places], return_inverse=True)
        columns, column = np.unique(pairs.prediction[places], return_inverse=True)
        iou = np.zeros((rows.size, columns.size))
        iou[row, column] = pairs.iou[places]
        place_of = np.full(iou.shape, -1, np.int64)
        place_of[row, column] = places
        chosen = place_of[linear_sum_assignment(iou, maximize=True)]
        taken.append(chosen[chosen >= 0])
    return np.concatenate(taken)
