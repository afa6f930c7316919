"""The cost of showing one frame for another: best similarity, then the mean joint error.

Every hypothesis frame is fitted to every reference frame at once (translation, scale and proper
rotation; never a mirror image), each pair over the points that both have. The moments of a pair's
own mask are matrix products of the masks, so pair-specific masks cost nothing extra.

With n reference points of a frame and s their mean distance to their centroid (its spread), a
pair costs (sum of the aligned errors of common points + s x points that the hypothesis lacks)
/ (n s): unit-free, about 1 at worst. A pair with too few common points to fit costs 1 (scoring
notes, 0 and 1.2). In the plane, points are complex numbers and the fit is one quotient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
MaskArray = NDArray[np.bool_]

PLANAR_POINTS = 2
SPATIAL_POINTS = 3

_PRODUCT_LIMIT = 200_000
"""Multiplications in one matrix product. Larger ones are spread over threads, whose number then
shows in the last digits, and which wait for each other on a busy machine."""

COLLAPSED = 1e-12
"""Below this share of the energy, a variance is rounding: the points are one, and scale is 0."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Points of a clip: ``coordinates`` (frames, points, dims), ``present`` (frames, points).

    Coordinates are float64, and zero where a point is absent.
    """

    coordinates: FloatArray
    present: MaskArray

    def centred(self) -> Frames:
        """Move each frame's centroid to the origin: translations are free, cancellation is not."""
        counts = np.maximum(self.present.sum(axis=1), 1)[:, None, None]
        centroids = self.coordinates.sum(axis=1, keepdims=True) / counts
        moved = (self.coordinates - centroids) * self.present[..., None]
        return Frames(moved, self.present)

    def spreads(self) -> FloatArray:
        """Return (frames,): the mean distance of each frame's points to their centroid."""
        distances = np.sqrt((self.centred().coordinates ** 2).sum(axis=2))
        means: FloatArray = distances.sum(axis=1) / np.maximum(self.present.sum(axis=1), 1)
        return means

    def kept(self, frames: MaskArray | slice) -> Frames:
        """Keep the frames that the mask or the slice names."""
        return Frames(self.coordinates[frames], self.present[frames])


def planar_costs(hypothesis: Frames, reference: Frames) -> FloatArray:
    """Return the cost of every frame pair in the plane, shape (hypothesis, reference) frames.

    With x reference and y hypothesis points as complex numbers, both centred over the pair's
    common points: c = sum(x conj(y)) / sum(|y|^2), joint error |x - c y|. A complex factor is a
    rotation and a scale, so no reflection is possible and no decomposition is needed. Every
    reference frame must have a positive spread.
    """
    moved, target = hypothesis.centred(), reference.centred()
    step = max(1, _PRODUCT_LIMIT // (2 * target.present.size))
    errors, common = [], []
    for begin in range(0, moved.present.shape[0], step):
        block = moved.kept(slice(begin, begin + step))
        shared, factor, shift = _fitted(block, target)
        errors.append(_planar_errors(block, target, factor, shift))
        common.append(shared)
    return normalised_costs(
        np.concatenate(errors), np.concatenate(common), reference, PLANAR_POINTS
    )


def _fitted(
    moved: Frames, target: Frames
) -> tuple[FloatArray, NDArray[np.complex128], NDArray[np.complex128]]:
    """Return, for every pair, its number of common points, c and the shift of c y onto x.

    All products are real, sum(x conj(y)) = sum(y0 x0 + y1 x1) + i sum(y0 x1 - y1 x0).
    """
    y, x = moved.coordinates.transpose(2, 0, 1), target.coordinates.transpose(2, 1, 0)
    has_y, has_x = moved.present.astype(np.float64), target.present.astype(np.float64)
    common = has_y @ has_x.T
    counts = np.maximum(common, 1.0)
    sums = np.stack([y[0], y[1], y[0] ** 2 + y[1] ** 2]) @ has_x.T
    mean_y, energy = _complex(sums[:2]) / counts, sums[2]
    mean_x = _complex(has_y @ x) / counts
    products = np.concatenate(y, axis=1) @ np.stack(
        [np.concatenate(x), np.concatenate([x[1], -x[0]])]
    )
    covariance = _complex(products) - counts * mean_y.conj() * mean_x
    variance = energy - counts * (mean_y.real**2 + mean_y.imag**2)
    factor = np.divide(
        covariance, variance, out=np.zeros_like(covariance), where=variance > energy * COLLAPSED
    )
    return common, factor, mean_x - factor * mean_y


def _complex(parts: FloatArray) -> NDArray[np.complex128]:
    """Join real and imaginary parts, stacked along the first axis."""
    joined: NDArray[np.complex128] = parts[0] + 1j * parts[1]
    return joined


def _planar_errors(
    moved: Frames, target: Frames, factor: NDArray[np.complex128], shift: NDArray[np.complex128]
) -> FloatArray:
    """Sum |factor y + shift - x| over the common points of every pair.

    One hypothesis frame at a time against all reference frames, so that the buffers stay in the
    processor's cache. Real parts stand above imaginary ones, (2 x reference frames, points), and
    one product with the rows (y real, y imaginary, 1) places a frame on every reference frame.
    """
    places = np.stack(
        [
            np.concatenate([factor.real, factor.imag], axis=1),
            np.concatenate([-factor.imag, factor.real], axis=1),
            np.concatenate([shift.real, shift.imag], axis=1),
        ],
        axis=2,
    )
    x = np.concatenate([target.coordinates[..., 0], target.coordinates[..., 1]])
    has_y, has_x = moved.present.astype(np.float64), target.present.astype(np.float64)
    half, points = has_x.shape
    rows = np.ones((3, points))
    placed, sums = np.empty_like(x), np.empty(factor.shape)
    squared = placed[:half]
    for i, frame in enumerate(moved.coordinates):
        rows[:2] = frame.T
        np.matmul(places[i], rows, out=placed)
        placed -= x
        placed *= placed
        squared += placed[half:]
        np.sqrt(squared, out=squared)
        squared *= has_x
        np.matmul(squared, has_y[i], out=sums[i])
    return sums


def normalised_costs(
    errors: FloatArray, common: FloatArray, reference: Frames, least: int
) -> FloatArray:
    """Add what the hypothesis lacks and divide by the reference: see the head of this module.

    ``errors`` and ``common`` (hypothesis, reference) hold each pair's summed error and number of
    common points; below ``least`` of these no fit is defined and the pair costs 1.
    """
    points = reference.present.sum(axis=1).astype(np.float64)
    spreads = reference.spreads()
    costs: FloatArray = (errors + spreads * (points - common)) / (points * spreads)
    costs[common < least] = 1.0
    return costs
