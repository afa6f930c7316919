"""Put signing hands onto a body of 128 points, and lose them as trackers do. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifests.clips import (
    EYES_AND_MOUTH,
    HEAD_OUTLINE,
    LEFT_HAND,
    LOWER_BODY,
    POINTS,
    RIGHT_HAND,
    UPPER_BODY,
)
from orchestrator.samples.rules.sample_signs import Floats, hand_points

SIGNERS = ("ALPHA", "BRAVO", "CHARLIE", "DELTA", "ECHO", "FOXTROT")

_STYLE_SEED = 6
_LOST_SHARE = 0.37
"""Of the frames of one hand; then one hand at least is lost in 1 - 0.63² = 60% of the frames."""
_LOST_RUN_FRAMES = 6.0
_JITTER = 0.0015
"""Of every tracked point, in image widths."""


@dataclass(frozen=True, slots=True)
class SignerStyle:
    """How one person signs."""

    centre: Floats
    """(3,): the middle of the shoulders in the image."""
    size: float
    """Of the body, as a factor."""
    reach: float
    """Of the movements, as a factor beyond the body's size."""
    offset: Floats
    """(2 hands, 3): a habit of signing higher, lower, closer."""
    tempo: float
    turn: float


def signer_style(signer: str) -> SignerStyle:
    """Return the style of one of `SIGNERS`; always the same."""
    rng = np.random.default_rng([_STYLE_SEED, SIGNERS.index(signer)])
    return SignerStyle(
        centre=np.array([rng.uniform(0.46, 0.54), rng.uniform(0.40, 0.48), 0.0]),
        size=float(rng.uniform(0.85, 1.15)),
        reach=float(rng.uniform(0.9, 1.12)),
        offset=rng.normal(0.0, 0.012, (2, 3)),
        tempo=float(rng.uniform(0.85, 1.2)),
        turn=float(rng.normal(0.0, 0.15)),
    )


def _ring(count: int, centre: tuple[float, float], radii: tuple[float, float]) -> Floats:
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    x, y = centre[0] + radii[0] * np.sin(angle), centre[1] - radii[1] * np.cos(angle)
    return np.stack([x, y, np.zeros(count)], axis=1)


def _resting_body() -> Floats:
    body = np.zeros((POINTS, 3))
    eyes = [_ring(8, (side * 0.025, -0.165), (0.012, 0.006)) for side in (1, -1)]
    body[EYES_AND_MOUTH] = np.concatenate([*eyes, _ring(12, (0.0, -0.105), (0.022, 0.01))])
    body[HEAD_OUTLINE] = _ring(36, (0.0, -0.15), (0.06, 0.085))
    legs = [(0.06, 0.34), (0.07, 0.62), (0.07, 0.9), (0.07, 0.93), (0.09, 0.95)]
    body[LOWER_BODY] = [(side * x, y, 0.0) for x, y in legs for side in (1, -1)]
    body[UPPER_BODY][:2] = [(0.1, 0.0, 0.0), (-0.1, 0.0, 0.0)]
    return body


_BODY = _resting_body()


def body_frames(
    wrists: Floats, stretch: Floats, turn: Floats, style: SignerStyle, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return keypoints (frames, 128, 3) for wrists (frames, 2, 3) relative to the shoulders.

    `stretch` is (frames, 2, 5), `turn` (frames, 2). Both hands are exactly zero where lost.
    """
    frames = np.repeat(_BODY[None], len(wrists), axis=0)
    sides = (LEFT_HAND, RIGHT_HAND)
    for side, hand in enumerate(sides):
        frames[:, hand] = hand_points(wrists[:, side], stretch[:, side], turn[:, side])
    _add_arms(frames, wrists)
    frames = style.centre + style.size * frames
    frames += rng.normal(0.0, _JITTER, frames.shape)
    for hand in sides:
        frames[_lost(len(frames), rng), hand] = 0.0
    return frames.astype(np.float32)


def _add_arms(frames: Floats, wrists: Floats) -> None:
    """Fill Pose 13-22: elbows halfway and outward, wrists, and three points of each hand."""
    upper = frames[:, UPPER_BODY]
    shoulders = upper[:, :2]
    upper[:, 2:4] = (shoulders + wrists) / 2 + np.array([[0.04, 0.05, 0.0], [-0.04, 0.05, 0.0]])
    upper[:, 4:6] = wrists
    for first, tip in ((6, 20), (8, 8), (10, 4)):  # little finger, index finger, thumb
        upper[:, first], upper[:, first + 1] = frames[:, tip], frames[:, 21 + tip]


def _lost(frames: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return in which frames a hand is lost: runs of a random length, as trackers lose hands."""
    tracked_run = _LOST_RUN_FRAMES * (1 - _LOST_SHARE) / _LOST_SHARE
    runs = max(4, frames)
    lengths = np.stack(
        [rng.geometric(1 / tracked_run, runs), rng.geometric(1 / _LOST_RUN_FRAMES, runs)], axis=1
    ).ravel()
    states = np.tile([False, True], runs)
    first = int(rng.random() < _LOST_SHARE)
    return np.repeat(states[first:], lengths[first:])[:frames]
