"""F1 from counts, for one class or whole arrays of replicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def f1(true_positives: int, false_positives: int, false_negatives: int) -> float:
    """Return 2TP / (2TP + FP + FN), and 0 where all three are 0."""
    denominator = 2 * true_positives + false_positives + false_negatives
    return 2 * true_positives / denominator if denominator else 0.0


def f1_array(
    true_positives: ArrayLike, predicted: ArrayLike, support: ArrayLike
) -> NDArray[np.float64]:
    """Return F1 = 2TP / (predicted + support) elementwise; 0/0 is 0.

    ``predicted`` = TP + FP and ``support`` = TP + FN; the shapes must broadcast.
    """
    twice = 2.0 * np.asarray(true_positives, dtype=np.float64)
    total = np.asarray(predicted, dtype=np.float64) + np.asarray(support, dtype=np.float64)
    return np.divide(twice, total, out=np.zeros(np.shape(twice + total)), where=total > 0)
