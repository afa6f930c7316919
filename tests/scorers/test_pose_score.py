"""S_pose of a clip: layout, missing points, bad files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from scorers.translation import LazyPoses, PoseParameters, Poses
from scorers.translation.pose import Dimensions, PoseArray, clip_pose_score

DEFAULT = PoseParameters()


def keypoints(seed: int, frames: int = 6) -> PoseArray:
    random = np.random.default_rng(seed)
    start = random.random((1, 128, 3))
    return (start + 0.02 * random.normal(size=(frames, 128, 3)).cumsum(axis=0)).astype(np.float32)


def clip_score(
    hypothesis: PoseArray, reference: PoseArray, parameters: PoseParameters = DEFAULT
) -> float | None:
    poses = Poses(hypothesis={"a": hypothesis}, reference={"a": reference})
    return clip_pose_score("a", poses, parameters)


def without(clip: PoseArray, points: slice, frames: slice = slice(None)) -> PoseArray:
    emptied = clip.copy()
    emptied[frames, points] = 0
    return emptied


def test_the_reference_itself_scores_one() -> None:
    assert clip_score(keypoints(1), keypoints(1)) == pytest.approx(1.0, abs=1e-9)
    assert clip_score(keypoints(1).repeat(2, axis=0), keypoints(1)) == pytest.approx(1.0, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    noise=st.floats(0, 0.2),
    part=st.sampled_from([slice(0, 21), slice(21, 42), slice(42, 54), slice(3, 9)]),
)
def test_dropping_a_part_never_raises_the_score(seed: int, noise: float, part: slice) -> None:
    reference = keypoints(seed)
    wobble = noise * np.random.default_rng(seed).normal(size=reference.shape)
    hypothesis = (reference + wobble).astype(np.float32)
    whole = clip_score(hypothesis, reference)
    dropped = clip_score(without(hypothesis, part), reference)
    assert whole is not None
    assert dropped is not None
    assert dropped <= whole + 1e-12


def test_a_point_that_the_reference_lacks_is_masked_out() -> None:
    reference = without(keypoints(1), slice(0, 21))
    hypothesis = keypoints(1)
    hypothesis[:, :21] += 5
    assert clip_score(hypothesis, reference) == pytest.approx(1.0, abs=1e-9)


def test_only_hands_and_upper_body_count() -> None:
    hypothesis = keypoints(1)
    hypothesis[:, 54:] = 9
    assert clip_score(hypothesis, keypoints(1)) == pytest.approx(1.0, abs=1e-9)


def test_depth_counts_only_where_it_is_asked_for() -> None:
    hypothesis = keypoints(1)
    hypothesis[:, :, 2] = keypoints(2)[:, :, 2]
    flat, deep = (
        clip_score(hypothesis, keypoints(1), PoseParameters(dimensions=dimensions))
        for dimensions in ("xy", "xyz")
    )
    assert flat == pytest.approx(1.0, abs=1e-9)
    assert deep is not None
    assert deep < 0.95


def test_reference_frames_without_any_point_are_left_out() -> None:
    gappy = without(keypoints(1), slice(None), slice(2, 4))
    assert clip_score(keypoints(1)[[0, 1, 4, 5]], gappy) == pytest.approx(1.0, abs=1e-9)


def test_without_a_reference_pose_there_is_no_score_rather_than_zero() -> None:
    nothing = np.zeros((3, 128, 3), dtype=np.float32)
    assert clip_score(keypoints(1), nothing) is None
    assert clip_score(keypoints(1), nothing[:0]) is None
    assert clip_pose_score("a", Poses(hypothesis={}, reference={}), DEFAULT) is None


def test_a_missing_or_empty_hypothesis_scores_zero() -> None:
    reference = {"a": keypoints(1)}
    assert clip_pose_score("a", Poses(hypothesis={}, reference=reference), DEFAULT) == 0.0
    assert clip_score(keypoints(1)[:0], keypoints(1)) == 0.0
    assert clip_score(np.zeros((3, 128, 3), dtype=np.float32), keypoints(1)) == 0.0


def test_the_reference_error_sets_where_zero_lies() -> None:
    whole = clip_score(keypoints(2), keypoints(1))
    half = clip_score(keypoints(2), keypoints(1), PoseParameters(reference_error=2.0))
    assert whole is not None
    assert half == pytest.approx(1 - (1 - whole) / 2)


def test_a_known_frame_size_makes_a_rotation_of_the_picture_free() -> None:
    reference = keypoints(1)
    width, height = 1920, 1080
    pixels = reference[..., :2].astype(np.float64) * [width, height]
    turned = pixels @ np.array([[0.0, 1.0], [-1.0, 0.0]]) / [width, height]
    hypothesis = reference.copy()
    hypothesis[..., :2] = turned
    poses = Poses(
        hypothesis={"a": hypothesis}, reference={"a": reference}, frame_sizes={"a": (1920, 1080)}
    )
    assert clip_pose_score("a", poses, DEFAULT) == pytest.approx(1.0, abs=1e-5)
    unsized = clip_score(hypothesis, reference)
    assert unsized is not None
    assert unsized < 0.9


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (np.zeros((3, 127, 3), dtype=np.float32), r"clip a: the pose is float32 \(3, 127, 3\)"),
        (np.zeros((128, 3), dtype=np.float32), r"must be float32 \(frames, 128, 3\)"),
        (np.zeros((3, 128, 3), dtype=np.int64), "clip a: the pose is int64"),
        (np.full((3, 128, 3), np.nan, dtype=np.float32), "clip a: the pose holds NaN"),
    ],
)
def test_a_malformed_pose_is_refused_with_its_clip(broken: PoseArray, complaint: str) -> None:
    with pytest.raises(MalformedDocument, match=complaint):
        clip_score(broken, keypoints(1))


def test_lazy_poses_read_a_clip_only_when_it_is_scored() -> None:
    read: list[str] = []

    def load(clip_id: str) -> PoseArray:
        read.append(clip_id)
        return keypoints(1)

    poses = LazyPoses(["a", "b"], load)
    assert "a" in poses
    assert list(poses) == ["a", "b"]
    assert len(poses) == 2
    assert read == []
    assert clip_pose_score("a", Poses(hypothesis=poses, reference=poses), DEFAULT) is not None
    assert read == ["a", "a"]
    with pytest.raises(KeyError):
        poses["c"]


def test_a_frame_without_extent_is_refused() -> None:
    clips = {"a": keypoints(1)}
    poses = Poses(hypothesis=clips, reference=clips, frame_sizes={"a": (0, 1080)})
    with pytest.raises(MalformedDocument, match="clip a: the reference pose has a frame of"):
        clip_pose_score("a", poses, DEFAULT)


def test_pose_parameters_out_of_their_bounds_are_refused() -> None:
    with pytest.raises(MalformedDocument, match="not above 0"):
        PoseParameters(reference_error=0.0)
    with pytest.raises(MalformedDocument, match="not 'xy' or 'xyz'"):
        PoseParameters(dimensions="yz")  # type: ignore[arg-type]


def test_a_pose_that_is_far_longer_than_the_reference_is_refused() -> None:
    with pytest.raises(MalformedDocument, match="clip a: the pose has 61 frames; at most 60"):
        clip_score(keypoints(1, 61), keypoints(1, 6))
    assert clip_score(keypoints(1, 60), keypoints(1, 6)) is not None


@pytest.mark.parametrize("dimensions", ["xy", "xyz"])
def test_clips_are_compared_in_blocks_without_any_difference(
    dimensions: Dimensions, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = PoseParameters(dimensions=dimensions)
    whole = clip_score(keypoints(2, 11), keypoints(1, 7), parameters)
    monkeypatch.setattr("scorers.translation.pose._PAIRS_AT_ONCE", 21)
    monkeypatch.setattr("scorers.translation.alignment._PRODUCT_LIMIT", 3 * 7 * 54)
    assert clip_score(keypoints(2, 11), keypoints(1, 7), parameters) == pytest.approx(
        whole, abs=1e-12
    )


@pytest.mark.parametrize("dimensions", ["xy", "xyz"])
@pytest.mark.parametrize("size", [1e-45, 1e-30, 1e30, 3e38])
def test_no_size_of_numbers_breaks_the_score(size: float, dimensions: Dimensions) -> None:
    wild = keypoints(2)
    wild[:, 5:20] = np.float32(size)
    scored = clip_score(wild, keypoints(1), PoseParameters(dimensions=dimensions))
    assert scored is not None
    assert 0 <= scored <= 1
