"""Every choice the published rules leave open, as one value that the card prints."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import rapidfuzz

from manifests.errors import MalformedDocument
from scorers.statistics.signature import scorer_string

SCORER_NAME = "consumer-aware"
SCORER_VERSION = "1.0"


class Matcher(StrEnum):
    """How reference and predicted segments are paired, one to one, blind to labels."""

    GREEDY = "greedy"
    """All pairs by falling IoU, ties by lower reference, then lower prediction; IoU >= t."""

    HUNGARIAN = "hungarian"
    """The assignment with the largest total IoU; IoU >= t."""

    RENZ = "renz"
    """As Renz et al. 2021 score: ties by lower prediction first, IoU > t on a float grid, F1
    rounded to two decimals of a percent."""


class Boundaries(StrEnum):
    """Which points mF1B compares."""

    ENDPOINTS = "endpoints"
    """The set of starts and ends; an end that is the next start counts once."""

    RENZ = "renz"
    """The midpoints of the runs outside signs, as Renz et al. 2021 have them."""


class Pooling(StrEnum):
    """How the frame figures join the clips."""

    POOLED = "pooled"
    PER_VIDEO = "per_video"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationParameters:
    """Name every parameter of the segmentation exam (scoring notes, section 0).

    ``labels_version`` names the labels and stands on the card, not in the scorer string.
    Grids are whole percents of IoU and whole frames, so that each decision is one on integers.
    Raise ``MalformedDocument`` for a grid that does not rise or leaves its bounds.
    """

    matcher: Matcher = Matcher.GREEDY
    boundaries: Boundaries = Boundaries.ENDPOINTS
    frame_f1: Pooling = Pooling.POOLED
    foreground_iou: Pooling = Pooling.POOLED
    f1s_percent: tuple[int, ...] = tuple(range(40, 80, 5))
    tolerances_frames: tuple[int, ...] = (1, 2, 3, 4)
    utility_percent: tuple[int, ...] = tuple(range(30, 100, 10))
    resamples: int = 20_000
    seed: int = 200
    labels_version: str = "labels-v1"

    def __post_init__(self) -> None:
        """Check the grids and the number of resamples."""
        _check_rising("f1s_percent", self.f1s_percent, 1, 100)
        _check_rising("tolerances_frames", self.tolerances_frames, 0, 1_000)
        _check_rising("utility_percent", self.utility_percent, 1, 100)
        if not 1 <= self.resamples <= 1_000_000:
            raise MalformedDocument(f"resamples is {self.resamples}; it must be 1 to 1,000,000")
        if self.seed < 0:
            raise MalformedDocument(f"seed is {self.seed}; it must not be negative")

    @property
    def scorer_string(self) -> str:
        """Return the one line that two comparable cards share."""
        return scorer_string(SCORER_NAME, SCORER_VERSION, self._parts())

    def _parts(self) -> dict[str, str | int | float]:
        return {
            "match": self.matcher.value,
            "cmp": "gt" if self.matcher is Matcher.RENZ else "ge",
            "mf1s": _grid(self.f1s_percent),
            "mf1b": self.boundaries.value,
            "tol": _grid(self.tolerances_frames),
            "frame": f"bio-{self.frame_f1.value}",
            "fgiou": self.foreground_iou.value,
            "auc-ru": _grid(self.utility_percent),
            "wer": f"rapidfuzz-{rapidfuzz.__version__}",
            "cluster": "signer",
            "resamples": self.resamples,
            "seed": self.seed,
        }


def renz_parameters(*, resamples: int = 20_000, seed: int = 200) -> SegmentationParameters:
    """Return the parameters that reproduce mF1S and mF1B of Renz et al. 2021."""
    return SegmentationParameters(
        matcher=Matcher.RENZ, boundaries=Boundaries.RENZ, resamples=resamples, seed=seed
    )


def _check_rising(name: str, grid: tuple[int, ...], low: int, high: int) -> None:
    rising = all(a < b for a, b in pairwise(grid))
    if not grid or not rising or grid[0] < low or grid[-1] > high:
        raise MalformedDocument(f"{name} is {grid}; it must rise strictly within {low} to {high}")


def _grid(values: tuple[int, ...]) -> str:
    return ",".join(str(value) for value in values)
