"""What goes into the recognition exam: labels, answers and the scorer's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from manifests.errors import MalformedDocument

MOST_CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class Position:
    """One answer: one to three ranked candidates, the first is the answer.

    ``confidence`` lies in [0, 1]. An answer without one counts as confidence 0, so it never
    gains from silence, and a file without any is flat.
    """

    candidates: tuple[str, ...]
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class ClipLabels:
    """The reference of one clip: who signs, and every gloss in order, in any vocabulary."""

    clip_id: str
    signer_id: str
    glosses: tuple[str, ...]


Predictions: TypeAlias = Mapping[str, Sequence[Position]]
"""Answers by clip id, aligned by position; fewer than the labels means missing, so wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognitionParameters:
    """Everything about the scorer that an edition may choose.

    ``resamples`` clip bootstraps are drawn from PCG64(``seed``). Sentences of ``length_tail``
    positions or more share one bin of top-1 by length. ``held_out_signer`` names the person who
    is absent from public data, if the exam has one. Raise ``MalformedDocument`` for a number
    that is out of bounds.
    """

    scorer_name: str = "epee200"
    version: str = "2.1"
    resamples: int = 1000
    seed: int = 200
    held_out_signer: str | None = None
    labels_version: str = "labels-v1"
    length_tail: int = 10

    def __post_init__(self) -> None:
        least = {"resamples": 2, "seed": 0, "length_tail": 1}
        for name, bound in least.items():
            value = getattr(self, name)
            if value < bound:
                raise MalformedDocument(f"scorer: {name} is {value}; give {bound} or more")
