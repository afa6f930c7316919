"""DTW-PA-MPJPE in its plain form: loops, and an alignment by SVD for each frame pair. An oracle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scorers.translation.alignment import Frames

FloatArray = NDArray[np.float64]


def plain_pair_cost(
    hypothesis: FloatArray, reference: FloatArray, common: NDArray[np.bool_]
) -> float:
    """Return the summed error of the common points after the best similarity (Umeyama 1991)."""
    y, x = hypothesis[common], reference[common]
    y_centred, x_centred = y - y.mean(axis=0), x - x.mean(axis=0)
    variance = (y_centred**2).sum()
    if variance <= 1e-12 * max(float((y**2).sum()), 1e-300):
        return float(np.linalg.norm(x_centred, axis=1).sum())
    left, singular, right = np.linalg.svd(x_centred.T @ y_centred)
    turn = np.ones(x.shape[1])
    if np.linalg.det(left @ right) < 0:
        turn[-1] = -1.0
    rotation = left @ np.diag(turn) @ right
    scale = (singular * turn).sum() / variance
    return float(np.linalg.norm(x_centred - scale * y_centred @ rotation.T, axis=1).sum())


def plain_pose_error(hypothesis: Frames, reference: Frames) -> float:
    """Return DTW-PA-MPJPE as it is defined: two loops over frames, then a table of paths."""
    dims = reference.coordinates.shape[2]
    costs = [[0.0] * len(reference.present) for _ in hypothesis.present]
    for i, has_y in enumerate(hypothesis.present):
        for j, has_x in enumerate(reference.present):
            points = reference.coordinates[j][has_x]
            spread = float(np.linalg.norm(points - points.mean(axis=0), axis=1).mean())
            common = has_y & has_x
            shared, n = int(common.sum()), int(has_x.sum())
            if shared < dims:
                costs[i][j] = 1.0
                continue
            error = plain_pair_cost(hypothesis.coordinates[i], reference.coordinates[j], common)
            costs[i][j] = (error + spread * (n - shared)) / (n * spread)
    return plain_mean_path_cost(costs)


def plain_mean_path_cost(costs: list[list[float]]) -> float:
    """Return the mean cost over the cheapest path, diagonal first on ties."""
    rows, columns = len(costs), len(costs[0])
    table = [[float("inf")] * (columns + 1) for _ in range(rows + 1)]
    table[0][0] = 0.0
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            best = min(table[i - 1][j - 1], table[i - 1][j], table[i][j - 1])
            table[i][j] = costs[i - 1][j - 1] + best
    i, j, pairs = rows, columns, 1
    while (i, j) != (1, 1):
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = min(before, key=lambda place: table[place[0]][place[1]])
        pairs += 1
    return table[rows][columns] / pairs
