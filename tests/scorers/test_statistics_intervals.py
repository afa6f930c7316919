"""Intervals, floors, F1 and the scorer string."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from scorers.statistics.f1 import f1, f1_array
from scorers.statistics.intervals import (
    binomial_half_width,
    noise_floor,
    percentile_interval,
    wilson_interval,
)
from scorers.statistics.signature import scorer_string


def test_the_held_out_half_width_is_seven_points_on_154_signs_at_73_percent() -> None:
    half_width = binomial_half_width(round(0.73 * 154), 154)
    assert half_width is not None
    assert round(100 * half_width) == 7


@given(st.integers(1, 500), st.data())
@settings(max_examples=100)
def test_the_wilson_interval_is_scipys(n: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, n))
    theirs = binomtest(right, n).proportion_ci(0.95, method="wilson")
    # 1.96 stands for the quantile 1.959964 in every published figure of the exam.
    assert wilson_interval(right, n) == pytest.approx((theirs.low, theirs.high), abs=2e-5)


def test_nothing_observed_has_no_interval() -> None:
    assert wilson_interval(0, 0) is None
    assert binomial_half_width(0, 0) is None


def test_the_floor_is_196_standard_deviations_of_the_defined_replicates() -> None:
    replicates = np.array([0.5, 0.7, np.nan, 0.6])
    assert noise_floor(replicates) == pytest.approx(1.96 * 0.1)
    assert noise_floor(np.array([0.5, np.nan])) is None


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
@settings(max_examples=50)
def test_equal_probabilities_give_the_inverted_cdf_quantiles(values: list[float]) -> None:
    replicates = np.array(values)
    # A tail of 4% meets no step of at most 40 equal probabilities but 1/25, where rounding
    # of the cumulated sum would choose between two neighbours.
    assume(replicates.size != 25)
    exact = percentile_interval(
        replicates, probabilities=np.full(replicates.size, 1 / replicates.size), level=0.92
    )
    expected = np.quantile(replicates, [0.04, 0.96], method="inverted_cdf")
    assert exact == pytest.approx(tuple(expected))


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        percentile_interval(np.array([]))


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=20))
@settings(max_examples=50)
def test_f1_of_arrays_is_f1_of_each_class(counts: list[tuple[int, int, int]]) -> None:
    tp, fp, fn = np.array(counts).T
    expected = [f1(*row) for row in counts]
    assert f1_array(tp, tp + fp, tp + fn).tolist() == pytest.approx(expected)


def test_f1_of_a_class_that_nobody_saw_or_said_is_zero() -> None:
    assert f1(0, 0, 0) == 0.0


def test_the_scorer_string_reads_as_a_signature() -> None:
    made = scorer_string("epee200", "2.1", {"resamples": 1000, "seed": 200})
    assert made == f"epee200|version:2.1|resamples:1000|seed:200|numpy:{np.__version__}"


@given(st.text(max_size=8), st.text(max_size=8))
@settings(max_examples=100)
def test_different_parameters_give_different_one_line_strings(first: str, second: str) -> None:
    one, two = (scorer_string("s", "1", {"held_out": value}) for value in (first, second))
    assert (one == two) == (first == second)
    assert one.count("|") == 3
    assert one.isascii()
    assert one.split() == [one]
