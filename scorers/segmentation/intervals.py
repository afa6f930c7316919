"""Intervals and paired comparisons that resample signers, the unit that really varies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scorers.segmentation.counts import Counts
from scorers.segmentation.figures import LOWER_IS_BETTER, Figure, figure_values
from scorers.segmentation.parameters import SegmentationParameters
from scorers.statistics.bootstrap import (
    ENUMERATION_LIMIT,
    distinct_resamples,
    enumerated_weights,
    resample_weights,
)
from scorers.statistics.intervals import percentile_interval
from scorers.statistics.paired import PairedComparison, compare_replicates


@dataclass(frozen=True, slots=True)
class SignerResamples:
    """Bootstrap samples of the signers: weights (replicates, signers).

    ``probabilities`` (replicates,) are there when every distinct sample is enumerated; they
    are None when the samples were drawn.
    """

    weights: NDArray[np.int64]
    probabilities: NDArray[np.float64] | None

    @property
    def method(self) -> str:
        """Return ``exact`` or ``monte-carlo``."""
        return "monte-carlo" if self.probabilities is None else "exact"


def signer_resamples(signers: int, parameters: SegmentationParameters) -> SignerResamples:
    """Enumerate all distinct samples where there are at most 20,000, else draw some.

    Up to 8 signers have so few (6 have 462): their interval is exact and needs no seed.
    """
    if distinct_resamples(signers) <= ENUMERATION_LIMIT:
        return SignerResamples(*enumerated_weights(signers))
    return SignerResamples(resample_weights(signers, parameters.resamples, parameters.seed), None)


def signer_intervals(
    by_signer: Counts,
    resamples: SignerResamples,
    figures: Iterable[Figure],
    parameters: SegmentationParameters,
) -> dict[Figure, tuple[float, float]]:
    """Return the 95% percentile interval of each figure; none where no replicate is defined.

    Replicates in which a figure is undefined are left out of its interval.
    """
    replicates = by_signer.weighted(resamples.weights)
    intervals = {}
    for figure in figures:
        values = figure_values(figure, replicates, parameters)
        defined = ~np.isnan(values)
        if defined.any():
            chances = resamples.probabilities
            kept = None if chances is None else chances[defined]
            intervals[figure] = percentile_interval(values[defined], probabilities=kept)
    return intervals


def compare_signers(
    figure: Figure,
    first: Counts,
    second: Counts,
    parameters: SegmentationParameters,
) -> PairedComparison:
    """Compare one figure of two systems whose counts stand by the same signers.

    ``delta`` is first - second in the figure's own direction; ``p_value`` is for the claim that
    the first is better, which for an error rate means lower. Raise ``ValueError`` when the
    figure is undefined in every replicate.
    """
    units = next(iter(first.columns.values())).shape[0]
    resamples = signer_resamples(units, parameters)
    sign = -1.0 if figure in LOWER_IS_BETTER else 1.0
    one, other = first.weighted(resamples.weights), second.weighted(resamples.weights)
    differences = figure_values(figure, one, parameters) - figure_values(figure, other, parameters)
    point = figure_values(figure, first.total(), parameters) - figure_values(
        figure, second.total(), parameters
    )
    found = compare_replicates(
        sign * float(point[0]),
        sign * differences,
        units=units,
        probabilities=resamples.probabilities,
    )
    return found if sign > 0 else _turned(found)


def _turned(found: PairedComparison) -> PairedComparison:
    return PairedComparison(
        delta=-found.delta,
        low=-found.high,
        high=-found.low,
        p_value=found.p_value,
        replicates=found.replicates,
        units=found.units,
    )
