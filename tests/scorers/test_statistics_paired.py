"""The paired bootstrap's summary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.statistics.bootstrap import enumerated_weights, resample_weights
from scorers.statistics.paired import compare_replicates


def test_identical_systems_have_a_p_value_of_one() -> None:
    found = compare_replicates(0.0, np.zeros(1000), units=200)
    assert (found.p_value, found.low, found.high) == (1.0, 0.0, 0.0)


def test_a_challenger_that_is_always_better_has_the_smallest_p_value() -> None:
    assert compare_replicates(0.1, np.full(9999, 0.1), units=200).p_value == 1 / 10_000


def test_a_clearly_worse_challenger_has_a_p_value_of_one() -> None:
    assert compare_replicates(-0.1, np.full(999, -0.1), units=200).p_value == 1.0


@given(st.lists(st.sampled_from([-0.2, 0.0, 0.1, 0.3]), min_size=1, max_size=60))
@settings(max_examples=50)
def test_the_p_value_is_the_one_of_a_loop(differences: list[float]) -> None:
    against = sum(1 for d in differences if d <= 0)
    found = compare_replicates(0.1, np.array(differences), units=5)
    assert found.p_value == (1 + against) / (len(differences) + 1)
    expected = np.percentile(differences, [2.5, 97.5]).tolist()
    assert [found.low, found.high] == pytest.approx(expected, abs=1e-12)


def test_an_undefined_replicate_counts_against_the_challenger() -> None:
    found = compare_replicates(0.1, np.array([0.1, np.nan, 0.1]), units=3)
    assert found.p_value == 2 / 4
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))


def test_enumerated_resamples_give_the_limit_of_drawn_ones() -> None:
    gains = np.array([0.03, -0.02, 0.05, 0.01, -0.01, 0.02])
    weights, probabilities = enumerated_weights(6)
    exact = compare_replicates(
        gains.mean(), weights @ gains / 6, units=6, probabilities=probabilities
    )
    drawn = compare_replicates(gains.mean(), resample_weights(6, 100_000, 3) @ gains / 6, units=6)
    assert exact.p_value == pytest.approx(drawn.p_value, abs=5e-3)
    assert exact.replicates == 462


def test_a_comparison_is_written_under_its_field_names() -> None:
    found = compare_replicates(0.1, np.full(3, 0.1), units=7)
    assert found.as_document() == {
        "delta": 0.1, "low": 0.1, "high": 0.1, "p_value": 0.25, "replicates": 3, "units": 7,
    }  # fmt: skip
