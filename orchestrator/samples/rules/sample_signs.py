"""The invented sign language of the sample edition: glosses, and how each of them moves. Pure.

Nothing here was recorded from a person. A gloss is a path of the wrists through signing space, a
handshape and its turn; glosses share handshapes and parts of their paths, so that some are easily
taken for another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SCORED = """
    AFTERNOON AGAIN AGE APPLE ASK BABY BATHROOM BIRD BLUE BOOK BROTHER BUS CAT CHAIR CHILD COFFEE
    COLD COLOR COME COUNTRY DAY DEAF DIFFERENT DOCTOR DOG DOOR EAT FAMILY FATHER FINISH FISH FOOD
    FRIEND GIRL GO GOOD GREEN HAPPY HAVE HEARING HELP HOME HOT HOUSE HOW IX LANGUAGE LEARN LIKE
    MEET MILK MONEY MORNING MOTHER NAME NICE NIGHT NOW OLD PHONE PLEASE RAIN SCHOOL SIGN SISTER
    STORE TEACHER THANK-YOU WATER WHO YOU
"""
_UNSCORED = """
    AIRPLANE BRIDGE CANDLE DRAGON ELEPHANT FOREST GUITAR HAMMER ISLAND KITE LADDER MIRROR NEEDLE
    OCEAN PIANO ROCKET SPIDER TRACTOR WINDOW
"""
SCORED_GLOSSES = tuple(_SCORED.split())
UNSCORED_GLOSSES = tuple(_UNSCORED.split())
GLOSSES = SCORED_GLOSSES + UNSCORED_GLOSSES

_LANGUAGE_SEED = 71
_HANDSHAPES = 8
_FINGERS = 5
_JOINTS = 4
_ONE_HANDED_SHARE = 0.55
_JOINT_STEP = 0.016
"""Distance between two joints of a stretched finger, in image widths."""


@dataclass(frozen=True, slots=True)
class SignMovement:
    """How one gloss moves. Positions are relative to the middle of the shoulders."""

    start: Floats
    """(2 hands, 3): where left and right wrist begin."""
    end: Floats
    circle: Floats
    """(2 hands, 3): the radius of the circle around the straight path."""
    turns: float
    handshape: Floats
    """(5 fingers): 0 bent to 1 stretched."""
    two_handed: bool

    def wrists(self, progress: Floats) -> Floats:
        """Return (frames, 2, 3) wrist positions at `progress` in [0, 1]."""
        eased = (1 - np.cos(np.pi * progress)) / 2
        angle = 2 * np.pi * self.turns * progress
        turn = np.stack([np.cos(angle) - 1, np.sin(angle), np.sin(angle)], axis=1)
        straight = self.start + eased[:, None, None] * (self.end - self.start)
        return straight + turn[:, None, :] * self.circle


REST = np.array([[0.12, 0.42, 0.0], [-0.12, 0.42, 0.0]])
"""(2 hands, 3): hanging left and right hand, below the hips."""


@cache
def sign_movements() -> dict[str, SignMovement]:
    """Return how every gloss moves; always the same."""
    rng = np.random.default_rng(_LANGUAGE_SEED)
    handshapes = rng.uniform(0.15, 1.0, (_HANDSHAPES, _FINGERS))
    places = rng.uniform([-0.16, -0.16, -0.05], [0.12, 0.24, 0.05], (24, 3))
    return {gloss: _movement(rng, handshapes, places) for gloss in GLOSSES}


def _movement(rng: np.random.Generator, handshapes: Floats, places: Floats) -> SignMovement:
    two_handed = bool(rng.random() > _ONE_HANDED_SHARE)
    first, second = places[rng.integers(len(places), size=2)]
    mirror = np.array([-1.0, 1.0, 1.0])
    circle = rng.uniform(0.0, 0.05, 3)
    left = (mirror * first, mirror * second, mirror * circle)
    if not two_handed:
        left = (REST[0], REST[0], np.zeros(3))
    return SignMovement(
        start=np.stack([left[0], first]),
        end=np.stack([left[1], second]),
        circle=np.stack([left[2], circle]),
        turns=float(rng.choice([0.5, 1.0, 2.0])),
        handshape=handshapes[rng.integers(len(handshapes))],
        two_handed=two_handed,
    )


def hand_points(wrists: Floats, stretch: Floats, turn: Floats) -> Floats:
    """Return (frames, 21, 3): a hand at each of `wrists` (frames, 3), in MediaPipe's order.

    `stretch` is (frames, 5); `turn` (frames,) is the hand's angle in the image plane, in radians.
    """
    spread = np.linspace(-0.5, 0.5, _FINGERS)
    angle = turn[:, None] + spread
    direction = np.stack([np.sin(angle), -np.cos(angle), np.zeros_like(angle)], axis=2)
    joints = np.arange(1, _JOINTS + 1) * _JOINT_STEP
    reach = stretch[:, :, None] * joints
    fingers = wrists[:, None, None, :] + reach[..., None] * direction[:, :, None, :]
    return np.concatenate([wrists[:, None, :], fingers.reshape(len(wrists), -1, 3)], axis=1)
