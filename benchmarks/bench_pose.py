"""DTW-PA-MPJPE of two clips against its plain form: an alignment by SVD for each frame pair."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from scorers.translation.alignment import Frames
from scorers.translation.pose import pose_error
from tests.support.plain_pose import plain_pose_error

FRAMES = 150
POINTS = 54
MISSING_SHARE = 0.2
LEAST_RATIO = 100.0
MOST_SECONDS = 0.060


def example_clip(seed: int, frames: int = FRAMES) -> Frames:
    """Draw a clip of moving points, a fifth of them missing."""
    random = np.random.default_rng(seed)
    present = random.random((frames, POINTS)) > MISSING_SHARE
    drift = 0.01 * random.normal(size=(frames, POINTS, 2)).cumsum(axis=0)
    coordinates = random.random((1, POINTS, 2)) + drift
    return Frames(np.where(present[..., None], coordinates, 0.0), present)


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several timings."""
    timings = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        timings.append(time.perf_counter() - begin)
    return min(timings)


def measure() -> list[dict[str, Any]]:
    """Time both forms on the same clips; they must agree to 1e-9."""
    hypothesis, reference = example_clip(1), example_clip(2)
    ours = best_seconds(lambda: pose_error(hypothesis, reference), repeats=7)
    begin = time.perf_counter()
    expected = plain_pose_error(hypothesis, reference)
    peer = time.perf_counter() - begin
    equal = abs(expected - pose_error(hypothesis, reference)) < 1e-9
    return [
        {
            "work": f"DTW-PA-MPJPE, {FRAMES} x {FRAMES} frames, {POINTS} points, masks",
            "ours_s": ours,
            "peer": "plain Python form: an SVD for each frame pair",
            "peer_s": peer,
            "ratio": peer / ours,
            "bound": f">= {LEAST_RATIO:.0f}x and <= {MOST_SECONDS * 1000:.0f} ms, equal to 1e-9",
            "holds": equal and peer / ours >= LEAST_RATIO and ours <= MOST_SECONDS,
        }
    ]


if __name__ == "__main__":
    print(measure())
