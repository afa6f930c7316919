"""The score card that every exam returns, and the rule that nothing is not zero."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that ``json.dumps(..., allow_nan=False)`` can write."""


@dataclass(frozen=True, slots=True)
class NotComputed:
    """Stand in a card's section for a figure that cannot be computed, with the reason."""

    reason: str


Figure: TypeAlias = "Json | NotComputed | np.generic | Sequence[Figure] | Mapping[str, Figure]"
"""What a scorer may put in a section before ``section`` makes it plain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCard:
    """What a scorer says about one run.

    ``public`` and ``private`` hold figures as fractions; a figure that cannot be computed is
    ``None`` and its reason stands in ``public["reasons"]`` under the figure's name.
    Two cards with equal ``scorer_string`` and ``labels_version`` are comparable.
    """

    track: str
    scorer_name: str
    scorer_version: str
    scorer_string: str
    labels_version: str
    complete: bool
    public: Mapping[str, Json]
    private: Mapping[str, Json] = field(default_factory=dict)
    provenance: Mapping[str, Json] = field(default_factory=dict)

    def public_document(self) -> dict[str, Any]:
        """Return the card as everybody may see it: without the private section."""
        document: dict[str, Any] = {
            "track": self.track,
            "scorer": {
                "name": self.scorer_name,
                "version": self.scorer_version,
                "string": self.scorer_string,
            },
            "labels": self.labels_version,
            "complete": self.complete,
            "public": _copied(self.public),
        }
        if self.provenance:
            document["provenance"] = _copied(self.provenance)
        return document

    def as_document(self) -> dict[str, Any]:
        """Return the whole card, the private section included."""
        return self.public_document() | {"private": _copied(self.private)}


def section(figures: Mapping[str, Figure]) -> dict[str, Json]:
    """Make a card's section of figures: plain values, and the reasons of those that are missing.

    NumPy scalars become Python numbers. A ``NotComputed`` becomes ``None`` and its reason goes
    to ``reasons`` under the figure's name, ``outer.inner`` where it is nested. Raise
    ``ValueError`` for a number that is not finite: the scorer must say why there is no figure.
    """
    reasons: dict[str, Json] = {}
    plain = {name: _plain(value, name, reasons) for name, value in figures.items()}
    if reasons:
        plain["reasons"] = reasons
    return plain


def _plain(value: Figure, name: str, reasons: dict[str, Json]) -> Json:
    if isinstance(value, NotComputed):
        reasons[name] = value.reason
        return None
    if isinstance(value, Mapping):
        return {key: _plain(inner, f"{name}.{key}", reasons) for key, inner in value.items()}
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Sequence):
        return [_plain(inner, f"{name}.{i}", reasons) for i, inner in enumerate(value)]
    return _plain_number(value, name)


def _plain_number(value: float | np.generic, name: str) -> bool | int | float:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if not isinstance(value, (float, np.floating)):
        raise TypeError(f"figure {name} is a {type(value).__name__}, not a number")
    if not math.isfinite(value):
        raise ValueError(f"figure {name} is {value}; say NotComputed(reason) instead")
    return float(value)


def _copied(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_copied(inner) for inner in value]
    return value
