"""Dynamic time warping, exact, with the length of its path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def mean_path_cost(costs: FloatArray) -> float:
    """Return the cheapest warping path's mean cost per step.

    ``costs`` (n, m), n and m at least 1. Steps are (1, 1), (1, 0) and (0, 1); of equally cheap
    paths the one is taken that, walked back from the end, prefers the diagonal, then the
    previous row. The sum is divided by the number of pairs on the path, so that a slow clip
    costs no more than a fast one.
    """
    accumulated = _accumulated(costs)
    total, pairs = accumulated[-1, -1], 1
    i, j = costs.shape[0], costs.shape[1]
    while i > 1 or j > 1:
        diagonal, up, left = accumulated[i - 1, j - 1], accumulated[i - 1, j], accumulated[i, j - 1]
        if diagonal <= up and diagonal <= left:
            i, j = i - 1, j - 1
        elif up <= left:
            i -= 1
        else:
            j -= 1
        pairs += 1
    return float(total / pairs)


def _accumulated(costs: FloatArray) -> FloatArray:
    """Return (n + 1, m + 1) path sums with a border of infinity, one anti-diagonal at a time.

    In a row-major table of width m + 1 a step of m flat places stays on the anti-diagonal,
    so every anti-diagonal is a strided view.
    """
    n, m = costs.shape
    table = np.full((n + 1, m + 1), np.inf)
    table[0, 0] = 0.0
    flat, source, width = table.reshape(-1), costs.reshape(-1), m + 1
    for total in range(2, n + m + 1):
        first, last = max(1, total - m), min(n, total - 1)
        count = last - first + 1
        begin = first * width + total - first
        here = slice(begin, begin + (count - 1) * m + 1, m)
        above = slice(here.start - width, here.stop - width, m)
        left = slice(here.start - 1, here.stop - 1, m)
        diagonal = slice(above.start - 1, above.stop - 1, m)
        best = np.minimum(flat[above], flat[left])
        np.minimum(best, flat[diagonal], out=best)
        begin = (first - 1) * m + total - first - 1
        step = max(m - 1, 1)
        flat[here] = best + source[begin : begin + (count - 1) * step + 1 : step]
    return table
