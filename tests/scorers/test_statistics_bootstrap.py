"""Resampling weights: pinned, complete, and equal to the obvious form."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.statistics.bootstrap import (
    distinct_resamples,
    enumerated_weights,
    resample_weights,
    stratified_weights,
    weights_digest,
)
from scorers.statistics.intervals import percentile_interval


def test_the_weights_of_the_exam_are_the_pinned_ones() -> None:
    # 200 clips, 1,000 resamples, seed 200. If a NumPy draws otherwise, floors change: the
    # scorer string holds NumPy's version, and this test says that it happened.
    assert weights_digest(resample_weights(200, 1000, 200)) == (
        "0f1702319cd97eaa02c699781f653c9a5d6d200d2458e4492ddabc5f1a20e119"
    )


def test_the_stratified_weights_are_the_pinned_ones() -> None:
    assert weights_digest(stratified_weights([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], 1000, 7)) == (
        "0aede88a65da1596b854cf7170c746c984fcc0a3e65ddffe4553432477827829"
    )


@given(st.integers(1, 12), st.integers(0, 20), st.integers(0, 2**32))
@settings(max_examples=50)
def test_weights_count_what_a_loop_over_the_same_draws_counts(
    units: int, resamples: int, seed: int
) -> None:
    generator = np.random.Generator(np.random.PCG64(seed))
    draws = generator.integers(0, units, (resamples, units))
    expected = [[Counter(row.tolist())[unit] for unit in range(units)] for row in draws]
    assert resample_weights(units, resamples, seed).tolist() == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 1000))
@settings(max_examples=50)
def test_stratified_weights_keep_the_size_of_every_stratum(strata: list[int], seed: int) -> None:
    weights = stratified_weights(strata, 20, seed)
    for stratum in set(strata):
        members = np.flatnonzero(np.array(strata) == stratum)
        assert (weights[:, members].sum(axis=1) == members.size).all()


def test_one_stratum_draws_as_no_strata_do() -> None:
    assert (stratified_weights([4] * 30, 50, 9) == resample_weights(30, 50, 9)).all()


def test_six_signers_have_462_distinct_resamples() -> None:
    weights, probabilities = enumerated_weights(6)
    assert distinct_resamples(6) == len(weights) == len({tuple(row) for row in weights}) == 462
    assert (weights.sum(axis=1) == 6).all()
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)


def test_enumerated_probabilities_are_those_of_all_ordered_draws() -> None:
    weights, probabilities = enumerated_weights(4)
    ordered = Counter(
        tuple(Counter(draw)[unit] for unit in range(4)) for draw in product(range(4), repeat=4)
    )
    assert len(weights) == len(ordered)
    for row, probability in zip(weights.tolist(), probabilities, strict=True):
        assert probability == pytest.approx(ordered[tuple(row)] / 4**4, abs=1e-15)


def test_the_exact_interval_of_six_clusters_is_the_limit_of_drawn_ones() -> None:
    values = np.array([0.61, 0.72, 0.55, 0.80, 0.67, 0.74])
    weights, probabilities = enumerated_weights(6)
    exact = percentile_interval(weights @ values / 6, probabilities=probabilities)
    drawn = percentile_interval(resample_weights(6, 200_000, 1) @ values / 6)
    assert exact == pytest.approx(drawn, abs=2e-3)


def test_too_many_units_to_enumerate_are_refused() -> None:
    assert math.comb(17, 9) == distinct_resamples(9) > 20_000
    with pytest.raises(ValueError, match="9 units have 24310 resamples"):
        enumerated_weights(9)
