"""Resampling weights: how often each unit stands in each bootstrap replicate.

Every figure that is a function of additive counts follows from one product: with S of shape
(units, statistics) and W of shape (resamples, units), ``W @ S`` holds the counts of every
replicate (scoring notes, 1.5). The stream is PCG64 seeded with one integer; a test pins the
digest of W, so a NumPy that draws otherwise is noticed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ENUMERATION_LIMIT = 20_000
_BLOCK_DRAWS = 1 << 14


def resample_weights(units: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """Draw ``resamples`` bootstrap samples of ``units`` units; return their counts.

    Shape (resamples, units), int64; every row sums to ``units``.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    return _drawn(generator, units, resamples)


def stratified_weights(
    strata: Sequence[int] | NDArray[np.int64], resamples: int, seed: int
) -> NDArray[np.int64]:
    """Draw as ``resample_weights`` does, but inside each stratum (a slice of an exam).

    ``strata`` names the stratum of each unit. Strata draw one after the other, by rising
    number, from one stream. Shape (resamples, units); a row keeps the size of every stratum.
    """
    stratum_of = np.asarray(strata, dtype=np.int64)
    generator = np.random.Generator(np.random.PCG64(seed))
    weights = np.zeros((resamples, stratum_of.size), dtype=np.int64)
    for stratum in np.unique(stratum_of):
        members = np.flatnonzero(stratum_of == stratum)
        weights[:, members] = _drawn(generator, members.size, resamples)
    return weights


def _drawn(generator: np.random.Generator, units: int, resamples: int) -> NDArray[np.int64]:
    """Draw block by block: the same stream as in one call, in memory that stays in the cache."""
    counts = np.empty((resamples, units), dtype=np.int64)
    rows = max(1, _BLOCK_DRAWS // max(1, units))
    for start in range(0, resamples, rows):
        block = counts[start : start + rows]
        drawn = generator.integers(0, units, block.shape)
        drawn += np.arange(len(block))[:, None] * units
        block[:] = np.bincount(drawn.ravel(), minlength=block.size).reshape(block.shape)
    return counts


def distinct_resamples(units: int) -> int:
    """Count the distinct bootstrap samples of ``units`` units: C(2n - 1, n)."""
    return math.comb(2 * units - 1, units)


def enumerated_weights(units: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return every distinct bootstrap sample of a few units, with its probability.

    Weights have shape (C(2n-1, n), units) in lexicographic order, probabilities are multinomial
    and sum to 1. No seed is involved. Raise ``ValueError`` above ``ENUMERATION_LIMIT`` samples.
    """
    count = distinct_resamples(units)
    if count > ENUMERATION_LIMIT:
        raise ValueError(f"{units} units have {count} resamples, more than {ENUMERATION_LIMIT}")
    weights = np.array(list(_compositions(units, units)), dtype=np.int64)
    factorials = np.array([math.factorial(k) for k in range(units + 1)], dtype=np.float64)
    arrangements = factorials[units] / factorials[weights].prod(axis=1)
    return weights, arrangements / float(units) ** units


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(total,)]
    return [
        (first, *rest)
        for first in range(total + 1)
        for rest in _compositions(total - first, parts - 1)
    ]


def weights_digest(weights: NDArray[np.int64]) -> str:
    """Return the SHA-256 (hex) of the weights as little-endian int64 in row order."""
    return hashlib.sha256(weights.astype("<i8").tobytes()).hexdigest()
