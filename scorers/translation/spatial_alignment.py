"""The cost of showing one frame for another in space: the option with three dimensions.

Same fit, masks and unit as in the plane (``alignment``); the rotation comes from the singular
value decomposition of each pair's covariance, its last axis turned where the determinant is
negative, so that only proper rotations are left (Kabsch 1976; Umeyama 1991).
"""

from __future__ import annotations

import numpy as np

from scorers.translation.alignment import (
    COLLAPSED,
    SPATIAL_POINTS,
    FloatArray,
    Frames,
    normalised_costs,
)


def spatial_costs(hypothesis: Frames, reference: Frames) -> FloatArray:
    """Return the cost of every frame pair in space, shape (hypothesis, reference) frames.

    Both clips have three dimensions and depth: where every z is zero, a rotation in space is
    a reflection in the plane, and ``planar_costs`` is the right function.
    """
    moved, target = hypothesis.centred(), reference.centred()
    has_y, has_x = moved.present.astype(np.float64), target.present.astype(np.float64)
    common = has_y @ has_x.T
    counts = np.maximum(common, 1.0)[..., None]
    y, x = moved.coordinates, target.coordinates
    mean_y = np.einsum("ikd,jk->ijd", y, has_x, optimize=True) / counts
    mean_x = np.einsum("ik,jkd->ijd", has_y, x, optimize=True) / counts
    transform = _similarities(moved, target, mean_y * counts, mean_x)
    shift = mean_x - np.einsum("ijde,ije->ijd", transform, mean_y)
    sums = _errors(moved, target, transform, shift)
    return normalised_costs(sums, common, reference, SPATIAL_POINTS)


def _similarities(
    moved: Frames, target: Frames, sum_y: FloatArray, mean_x: FloatArray
) -> FloatArray:
    """Return scale x rotation of every pair, (hypothesis, reference, 3, 3), maps y to x."""
    y, x = moved.coordinates, target.coordinates
    energy = np.einsum("ikd,ikd,jk->ij", y, y, target.present.astype(np.float64), optimize=True)
    counts = np.maximum(moved.present.astype(np.float64) @ target.present.T, 1.0)
    variance = energy - (sum_y**2).sum(axis=2) / counts
    covariance = np.einsum("jkd,ike->ijde", x, y, optimize=True)
    covariance -= mean_x[..., :, None] * sum_y[..., None, :]
    left, singular, right = np.linalg.svd(covariance)
    turned = np.where(np.linalg.det(left) * np.linalg.det(right) < 0, -1.0, 1.0)
    left[..., :, 2] *= turned[..., None]
    trace = singular[..., 0] + singular[..., 1] + turned * singular[..., 2]
    scale = np.divide(
        trace, variance, out=np.zeros_like(trace), where=variance > energy * COLLAPSED
    )
    transforms: FloatArray = (left @ right) * scale[..., None, None]
    return transforms


def _errors(moved: Frames, target: Frames, transform: FloatArray, shift: FloatArray) -> FloatArray:
    """Sum |x - T y - shift| over the common points of every pair, a hypothesis frame at a time."""
    sums = np.empty(shift.shape[:2])
    for i, points in enumerate(moved.coordinates):
        placed = points @ transform[i].transpose(0, 2, 1) + shift[i][:, None, :]
        placed -= target.coordinates
        distances = np.sqrt((placed**2).sum(axis=2))
        distances *= target.present
        sums[i] = distances @ moved.present[i].astype(np.float64)
    return sums
