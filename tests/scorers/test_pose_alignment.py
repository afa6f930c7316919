"""DTW-PA-MPJPE: the vectorised form against the plain one, and what it must not notice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.translation.alignment import Frames, planar_costs
from scorers.translation.pose import pose_error
from scorers.translation.spatial_alignment import spatial_costs
from scorers.translation.warping import mean_path_cost
from tests.support.plain_pose import plain_mean_path_cost, plain_pose_error

SEEDS = st.integers(0, 2**32 - 1)


def random_clip(seed: int, frames: int, points: int, dims: int, missing: float) -> Frames:
    """Draw a clip; the first dims + 1 points of a frame are always there."""
    random = np.random.default_rng(seed)
    present = random.random((frames, points)) >= missing
    present[:, : dims + 1] = True
    coordinates = random.random((frames, points, dims))
    return Frames(np.where(present[..., None], coordinates, 0.0), present)


def thinned(clip: Frames, seed: int, share: float) -> Frames:
    present = clip.present & (np.random.default_rng(seed).random(clip.present.shape) >= share)
    return Frames(np.where(present[..., None], clip.coordinates, 0.0), present)


def moved(clip: Frames, matrix: np.ndarray, shift: np.ndarray) -> Frames:
    placed = clip.coordinates @ matrix.T + shift
    return Frames(np.where(clip.present[..., None], placed, 0.0), clip.present)


def rotation(seed: int, dims: int) -> np.ndarray:
    basis, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(dims, dims)))
    basis[:, 0] *= np.sign(np.linalg.det(basis))
    return np.asarray(basis)


@settings(max_examples=150, deadline=None)
@given(
    seed=SEEDS,
    frames=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    points=st.integers(3, 7),
    missing=st.sampled_from([0.0, 0.3, 0.8]),
    dropped=st.sampled_from([0.0, 0.3, 0.9]),
)
def test_the_plane_form_equals_an_svd_for_each_frame_pair(
    seed: int, frames: tuple[int, int], points: int, missing: float, dropped: float
) -> None:
    reference = random_clip(seed, frames[1], points, 2, missing)
    hypothesis = thinned(random_clip(seed + 1, frames[0], points, 2, missing), seed, dropped)
    expected = plain_pose_error(hypothesis, reference)
    assert pose_error(hypothesis, reference) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(
    seed=SEEDS,
    frames=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    missing=st.sampled_from([0.0, 0.3, 0.8]),
    dropped=st.sampled_from([0.0, 0.3, 0.9]),
)
def test_the_space_form_equals_an_svd_for_each_frame_pair(
    seed: int, frames: tuple[int, int], missing: float, dropped: float
) -> None:
    reference = random_clip(seed, frames[1], 8, 3, missing)
    hypothesis = thinned(random_clip(seed + 1, frames[0], 8, 3, missing), seed, dropped)
    expected = plain_pose_error(hypothesis, reference)
    ours = mean_path_cost(spatial_costs(hypothesis, reference))
    assert ours == pytest.approx(expected, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.integers(1, 7),
    columns=st.integers(1, 7),
    values=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=49, max_size=49),
)
def test_the_warping_path_is_the_plain_tables_also_among_ties(
    rows: int, columns: int, values: list[float]
) -> None:
    costs = np.array(values[: rows * columns]).reshape(rows, columns)
    assert mean_path_cost(costs) == plain_mean_path_cost(costs.tolist())


def test_equal_paths_are_walked_along_the_diagonal() -> None:
    flat = np.ones((3, 3))
    assert mean_path_cost(flat) == 1.0
    assert mean_path_cost(np.array([[1.0, 0.0], [0.0, 1.0]])) == 1.0, "two pairs, not three"


@pytest.mark.parametrize("dims", [2, 3])
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, scale=st.floats(0.05, 20), missing=st.sampled_from([0.0, 0.4]))
def test_a_similarity_of_the_hypothesis_changes_nothing(
    dims: int, seed: int, scale: float, missing: float
) -> None:
    reference = random_clip(seed, 4, 9, dims, missing)
    hypothesis = random_clip(seed + 1, 5, 9, dims, missing)
    shift = np.random.default_rng(seed).normal(size=dims)
    elsewhere = moved(hypothesis, scale * rotation(seed, dims), shift)
    form = planar_costs if dims == 2 else spatial_costs
    assert form(elsewhere, reference) == pytest.approx(form(hypothesis, reference), abs=1e-8)
    assert form(moved(reference, scale * rotation(seed, dims), shift), reference).diagonal() == (
        pytest.approx(0, abs=1e-8)
    )


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_mirror_image_is_another_pose(seed: int) -> None:
    clip = random_clip(seed, 3, 12, 2, 0.0)
    mirrored = moved(clip, np.diag([-1.0, 1.0]), np.zeros(2))
    assert pose_error(mirrored, clip) > 0.05


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_mirror_image_stays_another_pose_in_space_and_without_depth(seed: int) -> None:
    deep = random_clip(seed, 3, 12, 3, 0.0)
    flat = Frames(deep.coordinates * np.array([1.0, 1.0, 0.0]), deep.present)
    for clip in (deep, flat):
        mirrored = moved(clip, np.diag([-1.0, 1.0, 1.0]), np.zeros(3))
        assert pose_error(mirrored, clip, "xyz") > 0.05


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, times=st.integers(2, 4))
def test_time_stretching_is_free(seed: int, times: int) -> None:
    clip = random_clip(seed, 6, 9, 2, 0.2)
    slow = Frames(clip.coordinates.repeat(times, axis=0), clip.present.repeat(times, axis=0))
    assert pose_error(slow, clip) == pytest.approx(0, abs=1e-12)
    assert pose_error(clip, slow) == pytest.approx(0, abs=1e-12)


def test_a_collapsed_hypothesis_costs_the_spread_and_divides_by_nothing() -> None:
    reference = random_clip(3, 4, 9, 2, 0.0)
    collapsed = Frames(np.full((4, 9, 2), 0.5), np.ones((4, 9), dtype=np.bool_))
    assert planar_costs(collapsed, reference) == pytest.approx(1.0, abs=1e-12)


def test_fewer_common_points_than_a_fit_needs_cost_the_spread() -> None:
    reference = random_clip(3, 2, 9, 2, 0.0)
    one = np.zeros((1, 9), dtype=np.bool_)
    one[0, 4] = True
    nearly_blind = Frames(np.where(one[..., None], [0.3, 0.4], 0.0), one)
    assert planar_costs(nearly_blind, reference).tolist() == [[1.0, 1.0]]
    blind = Frames(np.zeros((1, 9, 2)), np.zeros((1, 9), dtype=np.bool_))
    assert planar_costs(blind, reference).tolist() == [[1.0, 1.0]]
