"""Intervals and floors around one figure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.96
"""The two-sided 95% normal quantile, rounded as the exams publish it (3.8 = 1.96 x 1.94)."""


def percentile_interval(
    replicates: NDArray[np.float64],
    *,
    probabilities: NDArray[np.float64] | None = None,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return the percentile interval of bootstrap replicates, shape (resamples,).

    Drawn replicates are interpolated linearly (NumPy's default quantile). With
    ``probabilities`` (exactly enumerated resamples) the quantile is the smallest replicate
    whose cumulated probability reaches the tail. Raise ``ValueError`` for no replicates.
    """
    if replicates.size == 0:
        raise ValueError("an interval needs at least one defined replicate")
    tail = (1 - level) / 2
    if probabilities is None:
        low, high = np.quantile(replicates, [tail, 1 - tail])
        return float(low), float(high)
    order = np.argsort(replicates, kind="stable")
    cumulated = np.cumsum(probabilities[order])
    places = np.searchsorted(cumulated, np.array([tail, 1 - tail]) * cumulated[-1])
    low, high = replicates[order][np.minimum(places, replicates.size - 1)]
    return float(low), float(high)


def noise_floor(replicates: NDArray[np.float64]) -> float | None:
    """Return 1.96 x the standard deviation of the replicates; None for fewer than two.

    Undefined (NaN) replicates are left out. The floor is to be read around the point value:
    the mean of resamples of a macro-F1 lies below it (scoring notes, 1.5).
    """
    defined = replicates[~np.isnan(replicates)]
    if defined.size < 2:
        return None
    return Z_95 * float(np.std(defined, ddof=1))


def binomial_half_width(right: int, n: int) -> float | None:
    """Return 1.96 x sqrt(p (1 - p) / n) for p = right / n; None for n = 0."""
    if n == 0:
        return None
    share = right / n
    return Z_95 * math.sqrt(share * (1 - share) / n)


def wilson_interval(right: int, n: int) -> tuple[float, float] | None:
    """Return the 95% score interval of a share (Wilson 1927); None for n = 0."""
    if n == 0:
        return None
    share, z2 = right / n, Z_95**2
    centre = share + z2 / (2 * n)
    spread = Z_95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    scale = 1 + z2 / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
