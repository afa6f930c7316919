"""What is asked and what was answered: labels and predictions, checked and put in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted


class Slice(StrEnum):
    """The four parts of the exam; the canary measures transfer and never enters S_translation."""

    STUDIO = "studio"
    BROADCAST = "broadcast"
    CONVERSATIONAL = "conversational"
    CANARY = "canary"


SLICE_ORDER = tuple(Slice)
MAIN_SLICES = (Slice.STUDIO, Slice.BROADCAST, Slice.CONVERSATIONAL)


@dataclass(frozen=True, slots=True)
class TranslationLabel:
    """One clip's reference translation."""

    clip_id: str
    slice: Slice
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Labels and hypotheses side by side, ordered by clip id: row order never matters.

    ``slice_numbers`` (clips,) counts in ``SLICE_ORDER``. A clip without a prediction stands
    in ``missing`` and has the empty hypothesis; an empty hypothesis is never dropped.
    """

    clip_ids: tuple[str, ...]
    slice_numbers: NDArray[np.int64]
    references: tuple[str, ...]
    hypotheses: tuple[str, ...]
    missing: tuple[str, ...]

    def members(self, part: Slice) -> NDArray[np.int64]:
        """Return the positions of one slice's clips, rising."""
        return np.flatnonzero(self.slice_numbers == SLICE_ORDER.index(part))

    def is_main(self) -> NDArray[np.bool_]:
        """Return (clips,) true where the clip counts for S_translation."""
        return np.not_equal(self.slice_numbers, SLICE_ORDER.index(Slice.CANARY))


def arrange(labels: Sequence[TranslationLabel], predictions: Mapping[str, str]) -> Corpus:
    """Put labels and predictions in clip order.

    Raise ``MalformedDocument``, naming the clip, for a duplicate label, an unknown slice, a
    reference without text, a prediction for an unknown clip or one that is not text, and for
    labels that hold no clip of a main slice.
    """
    ordered = sorted(labels, key=lambda label: label.clip_id)
    _check_labels(ordered)
    _check_predictions(predictions, {label.clip_id for label in ordered})
    return Corpus(
        clip_ids=tuple(label.clip_id for label in ordered),
        slice_numbers=np.array([SLICE_ORDER.index(label.slice) for label in ordered], np.int64),
        references=tuple(label.reference for label in ordered),
        hypotheses=tuple(predictions.get(label.clip_id, "") for label in ordered),
        missing=tuple(x.clip_id for x in ordered if x.clip_id not in predictions),
    )


def _check_labels(ordered: Sequence[TranslationLabel]) -> None:
    for before, label in zip([None, *ordered], ordered, strict=False):
        if before is not None and before.clip_id == label.clip_id:
            raise MalformedDocument(f"{_clip(label.clip_id)} has two labels; keep one")
        if label.slice not in SLICE_ORDER:
            known = ", ".join(SLICE_ORDER)
            shown = escape_untrusted(str(label.slice))
            raise MalformedDocument(f"{_clip(label.clip_id)}: slice '{shown}' is none of {known}")
        if not label.reference.split():
            raise MalformedDocument(
                f"{_clip(label.clip_id)}: the reference holds no text; every clip needs one"
            )
    if not any(label.slice in MAIN_SLICES for label in ordered):
        raise MalformedDocument(f"the labels hold no clip of {', '.join(MAIN_SLICES)}")


def _check_predictions(predictions: Mapping[str, str], known: set[str]) -> None:
    for clip_id, text in predictions.items():
        if clip_id not in known:
            raise MalformedDocument(
                f"{_clip(clip_id)} is not one of the exam's {len(known)} clips; remove it"
            )
        if not isinstance(text, str):
            raise MalformedDocument(f"{_clip(clip_id)}: the prediction is not text")


def _clip(clip_id: str) -> str:
    return f"clip {escape_untrusted(str(clip_id), 64)}"
