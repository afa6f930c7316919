"""The paired bootstrap: whether one system is better than another on the same units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scorers.statistics.intervals import percentile_interval


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """The difference first - second of a figure, with what the resamples say about it.

    ``low`` and ``high`` are the percentile interval; ``p_value`` is one-sided, for the claim
    that the first system is better; ``replicates`` counts resamples and ``units`` what was
    resampled (clips, segments or signers).
    """

    delta: float
    low: float
    high: float
    p_value: float
    replicates: int
    units: int

    def as_document(self) -> dict[str, float | int]:
        """Return the comparison under the names of its fields."""
        return {
            "delta": self.delta,
            "low": self.low,
            "high": self.high,
            "p_value": self.p_value,
            "replicates": self.replicates,
            "units": self.units,
        }


def compare_replicates(
    delta: float,
    differences: NDArray[np.float64],
    *,
    units: int,
    probabilities: NDArray[np.float64] | None = None,
    level: float = 0.95,
) -> PairedComparison:
    """Summarise the differences of one figure over resamples that both systems share.

    ``differences`` has shape (resamples,), the whole figure recomputed in each. Drawn
    resamples give p = (1 + #{d <= 0}) / (B + 1) (scoring notes, 1.5); enumerated ones pass
    their ``probabilities`` and give the exact P(d <= 0). A replicate in which the figure is
    undefined (NaN) counts against the first system and is left out of the interval. Raise
    ``ValueError`` when no replicate is defined.
    """
    defined = ~np.isnan(differences)
    not_better = ~(differences > 0)
    kept = None if probabilities is None else probabilities[defined]
    low, high = percentile_interval(differences[defined], probabilities=kept, level=level)
    if probabilities is None:
        p_value = float((1 + np.count_nonzero(not_better)) / (differences.size + 1))
    else:
        p_value = min(1.0, float(probabilities[not_better].sum()))
    return PairedComparison(float(delta), low, high, p_value, int(differences.size), units)
