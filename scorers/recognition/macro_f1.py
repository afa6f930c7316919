"""Macro-F1, the figure of the ranking, and its clip bootstrap.

F1 per sign = 2TP / (2TP + FP + FN), averaged over signs ("averaged F1"; Opitz & Burst 2019,
arXiv:1911.03347), on the positions whose label is in the scored vocabulary (scoring notes, 1.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scorers.recognition.answers import Answers
from scorers.statistics.f1 import f1_array

_BLOCK_RESAMPLES = 128
"""Resamples at a time: their counts stay in the cache, however many there are."""


@dataclass(frozen=True, slots=True)
class SignCounts:
    """True positives, predictions and support per scored sign, on the scored positions.

    The last axis runs over the signs with support in the exam, sorted; an axis before it, if
    any, over clips or resamples.
    """

    hits: NDArray[np.float64]
    predicted: NDArray[np.float64]
    support: NDArray[np.float64]

    def total(self) -> SignCounts:
        """Add the counts of all clips."""
        return SignCounts(self.hits.sum(0), self.predicted.sum(0), self.support.sum(0))

    def resampled(self, weights: NDArray[np.int64]) -> SignCounts:
        """Return the counts of each resample; ``weights`` has shape (resamples, clips)."""
        stacked = np.concatenate([self.hits, self.predicted, self.support], axis=1)
        # Counts stay far below 2**24, so float32 adds them exactly and twice as fast.
        counts = weights.astype(np.float32) @ stacked.astype(np.float32)
        hits, predicted, support = np.split(counts.astype(np.float64), 3, axis=1)
        return SignCounts(hits, predicted, support)


def clip_counts(answers: Answers) -> SignCounts:
    """Count per clip and scored sign; every array has shape (clips, scored signs).

    An answer outside the scored signs is a miss and no false positive; answers at positions
    outside the vocabulary count nowhere here.
    """
    reference = answers.reference
    scored = reference.scored
    signs = np.flatnonzero(reference.support)
    clip, label, answer = reference.clip[scored], reference.label[scored], answers.first[scored]
    size = reference.vocabulary_size
    answered = (answer >= 0) & (answer < size)
    right = answer == label

    def tally(kept: NDArray[np.bool_], sign: NDArray[np.int64]) -> NDArray[np.float64]:
        cells = clip[kept] * size + sign[kept]
        counts = np.bincount(cells, minlength=len(reference.clip_ids) * size)
        return counts.reshape(-1, size)[:, signs].astype(np.float64)

    return SignCounts(tally(right, label), tally(answered, answer), tally(label >= 0, label))


def macro_f1(counts: SignCounts, minimum_support: int = 1) -> float | None:
    """Average F1 over the signs with enough support; None when no sign has it."""
    kept = counts.support >= minimum_support
    if not kept.any():
        return None
    return float(np.mean(f1_array(counts.hits, counts.predicted, counts.support)[kept]))


def macro_f1_replicates(clips: SignCounts, weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """Recompute macro-F1 in every resample of clips; shape (resamples,).

    A sign that vanishes from a resample is left out of that replicate's mean: a sign seen once
    is absent from 37% of them, and a 0 in its place would pull the replicates down. A resample
    without any scored sign is NaN.
    """
    replicates = np.full(len(weights), np.nan)
    for start in range(0, len(weights), _BLOCK_RESAMPLES):
        block = slice(start, start + _BLOCK_RESAMPLES)
        counts = clips.resampled(weights[block])
        present = counts.support > 0
        f1 = f1_array(counts.hits, counts.predicted, counts.support)
        signs = present.sum(axis=1)
        totals = np.where(present, f1, 0.0).sum(axis=1)
        np.divide(totals, signs, out=replicates[block], where=signs > 0)
    return replicates
