"""S_pose: how well a clip's skeletons follow the reference's, by DTW-PA-MPJPE.

Every frame pair is aligned by a similarity (``alignment``), the clip is warped in time
(``warping``), and the mean cost e of the path becomes clip(1 - e / e_ref, 0, 1). All human poses
look alike, so e_ref is to be calibrated; until then it is 1. The field's name fixes none of these
choices (scoring notes, 1.2): each is a parameter that the scorer string names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from scorers.translation.alignment import FloatArray, Frames, planar_costs
from scorers.translation.spatial_alignment import spatial_costs
from scorers.translation.warping import mean_path_cost

LAYOUT_POINTS = 128
SCORED_POINTS = 54
"""Hands (0-41) and upper body (42-53) of layout ``clerc-128``."""

MAX_STRETCH = 10
"""Time warping costs the product of both lengths; a slower pose than this is refused."""

_PAIRS_AT_ONCE = 250_000
_LEAST_SPREAD = 1e-9
"""In units of the image; what is smaller is the rounding of a centroid."""

PoseArray = NDArray[np.floating[Any]]
Dimensions = Literal["xy", "xyz"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseParameters:
    """What the pose figure depends on; ``reference_error`` is e_ref.

    Raise ``MalformedDocument`` for an e_ref that is not above 0 and for other dimensions.
    """

    dimensions: Dimensions = "xy"
    reference_error: float = 1.0

    def __post_init__(self) -> None:
        """Check the bounds."""
        if self.dimensions not in {"xy", "xyz"}:
            raise MalformedDocument(f"pose dimensions {self.dimensions!r} are not 'xy' or 'xyz'")
        if not 0 < self.reference_error < float("inf"):
            raise MalformedDocument(f"pose reference error {self.reference_error} is not above 0")


class LazyPoses(Mapping[str, PoseArray]):
    """Clips of keypoints that are read one by one, so that a whole exam never stands in memory."""

    def __init__(self, clip_ids: Sequence[str], load: Callable[[str], PoseArray]) -> None:
        self._clip_ids = dict.fromkeys(clip_ids)
        self._load = load

    def __getitem__(self, clip_id: str) -> PoseArray:
        """Read one clip."""
        if clip_id not in self._clip_ids:
            raise KeyError(clip_id)
        return self._load(clip_id)

    def __iter__(self) -> Iterator[str]:
        """Go through the clip ids without reading a clip."""
        return iter(self._clip_ids)

    def __len__(self) -> int:
        """Count the clips."""
        return len(self._clip_ids)

    def __contains__(self, clip_id: object) -> bool:
        """Say whether a clip is there, without reading it."""
        return clip_id in self._clip_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Poses:
    """Keypoints by clip id, float (frames, 128, 3), (0, 0, 0) where nothing was detected.

    ``frame_sizes`` gives (width, height) in pixels where they are known: image-normalised x
    and y have different units, and a rotation needs equal ones.
    """

    hypothesis: Mapping[str, PoseArray]
    reference: Mapping[str, PoseArray]
    frame_sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def clip_pose_score(clip_id: str, poses: Poses, parameters: PoseParameters) -> float | None:
    """Return a clip's pose score in [0, 1]; None where the reference shows no pose.

    A hypothesis that is absent or has no frames scores 0. Raise ``MalformedDocument``, naming
    the clip, for a wrong shape, a number that is not finite and a pose that is too long.
    """
    error = clip_pose_error(clip_id, poses, parameters.dimensions)
    if error is None:
        return None
    return float(np.clip(1.0 - error / parameters.reference_error, 0.0, 1.0))


def clip_pose_error(clip_id: str, poses: Poses, dimensions: Dimensions) -> float | None:
    """Return a clip's e; infinity without a hypothesis, None where the reference shows no pose."""
    if clip_id not in poses.reference:
        return None
    size = poses.frame_sizes.get(clip_id)
    whole = _frames(poses.reference[clip_id], clip_id, "reference pose", size)
    reference = whole.kept(_has_shape(whole))
    if reference.present.shape[0] == 0:
        return None
    if clip_id not in poses.hypothesis:
        return math.inf
    hypothesis = _frames(poses.hypothesis[clip_id], clip_id, "pose", size)
    if hypothesis.present.shape[0] == 0:
        return math.inf
    _check_length(clip_id, hypothesis.present.shape[0], whole.present.shape[0])
    return pose_error(hypothesis, reference, dimensions)


def pose_error(hypothesis: Frames, reference: Frames, dimensions: Dimensions = "xy") -> float:
    """Return e, the mean cost over the warping path of two clips with at least a frame each.

    Every reference frame must have a positive spread. With ``xyz``, a clip without depth is
    compared in the plane, where no rotation can mirror it.
    """
    if dimensions == "xyz" and _has_depth(hypothesis) and _has_depth(reference):
        return mean_path_cost(_spatial_by_blocks(hypothesis, reference))
    return mean_path_cost(planar_costs(_flat(hypothesis), _flat(reference)))


def _spatial_by_blocks(hypothesis: Frames, reference: Frames) -> FloatArray:
    """Compute the costs of some hypothesis frames at a time: a pair takes some 3 x 3 matrices."""
    step = max(1, _PAIRS_AT_ONCE // reference.present.shape[0])
    begins = range(0, hypothesis.present.shape[0], step)
    return np.concatenate(
        [spatial_costs(hypothesis.kept(slice(b, b + step)), reference) for b in begins]
    )


def frames_of(keypoints: PoseArray, frame_size: tuple[int, int] | None = None) -> Frames:
    """Take the scored points of a clip (frames, 128, 3); x and y to scale where the size is known.

    A point with every coordinate exactly 0 was not detected.
    """
    points = np.asarray(keypoints[:, :SCORED_POINTS, :], dtype=np.float64)
    present = (points != 0).any(axis=2)
    if frame_size is not None:
        width, height = frame_size
        points = points * np.array([1.0, height / width, 1.0])
    return Frames(points, present)


def _frames(
    keypoints: PoseArray, clip_id: str, what: str, frame_size: tuple[int, int] | None
) -> Frames:
    place = f"clip {escape_untrusted(clip_id, 64)}: the {what}"
    array = np.asarray(keypoints)
    if array.ndim != 3 or array.shape[1:] != (LAYOUT_POINTS, 3) or array.dtype.kind != "f":
        raise MalformedDocument(
            f"{place} is {array.dtype} {array.shape}; it must be float32 (frames, 128, 3)"
        )
    if not np.isfinite(array).all():
        raise MalformedDocument(f"{place} holds NaN or infinity; write 0 for missing points")
    if frame_size is not None and min(frame_size) <= 0:
        raise MalformedDocument(f"{place} has a frame of {frame_size}; both must be positive")
    return frames_of(array, frame_size)


def _check_length(clip_id: str, frames: int, reference_frames: int) -> None:
    bound = MAX_STRETCH * reference_frames
    if frames > bound:
        raise MalformedDocument(
            f"clip {escape_untrusted(clip_id, 64)}: the pose has {frames} frames; "
            f"at most {bound}, {MAX_STRETCH} times the reference's, are compared"
        )


def _has_shape(reference: Frames) -> NDArray[np.bool_]:
    """Name the frames with at least two points apart in the plane: others show no pose."""
    return np.greater(_flat(reference).spreads(), _LEAST_SPREAD)


def _flat(frames: Frames) -> Frames:
    return Frames(frames.coordinates[..., :2], frames.present)


def _has_depth(frames: Frames) -> bool:
    return bool((frames.coordinates[..., 2] != 0).any())
