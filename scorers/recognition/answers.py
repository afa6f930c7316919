"""A run's answers as arrays, aligned with the reference and checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.glosses import UNKNOWN, gloss_fault
from manifests.text import escape_untrusted
from scorers.recognition.exam import MOST_CANDIDATES, Position, Predictions
from scorers.recognition.reference import Reference

MISSING_ID = -1
UNKNOWN_ID = -2
LEAST_CONFIDENT = -1.0
"""Below every confidence that an answer may state: UNKNOWN and missing positions."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one complete run, one row a position of the reference.

    ``candidates`` has shape (positions, 3), padded with ``MISSING_ID``; ``confidence`` has shape
    (positions,), ``LEAST_CONFIDENT`` where nothing was answered. ``gloss_ids`` extends the
    reference's by the glosses that only the run knows.
    """

    reference: Reference
    gloss_ids: dict[str, int]
    candidates: NDArray[np.int64]
    confidence: NDArray[np.float64]

    @property
    def first(self) -> NDArray[np.int64]:
        """Return the answer of each position."""
        return self.candidates[:, 0]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Tell where the answer is the label, in any vocabulary."""
        right: NDArray[np.bool_] = self.first == self.reference.label
        return right

    @property
    def right_among_candidates(self) -> NDArray[np.bool_]:
        """Tell where a candidate is the label; an answer that is UNKNOWN is wrong throughout."""
        matches: NDArray[np.bool_] = self.candidates == self.reference.label[:, None]
        abstained: NDArray[np.bool_] = self.first == UNKNOWN_ID
        return np.logical_and(matches.any(axis=1), ~abstained)

    @property
    def in_vocabulary(self) -> NDArray[np.bool_]:
        """Tell where the answer is one of the scored glosses."""
        return (self.first >= 0) & (self.first < self.reference.vocabulary_size)


def missing_clips(reference: Reference, predictions: Predictions) -> tuple[str, ...]:
    """Return the clips of the exam that the run has no entry for, sorted."""
    return tuple(clip_id for clip_id in reference.clip_ids if clip_id not in predictions)


def encode_answers(reference: Reference, predictions: Predictions) -> Answers:
    """Check a complete run's answers and align them with the reference.

    Raise ``MalformedDocument``, naming clip and position, for a clip that the exam has not or
    the run has not, more positions than labels, a bad gloss, no or more than three candidates,
    and a confidence that is not a number in [0, 1].
    """
    check_answers(reference, predictions)
    absent = missing_clips(reference, predictions)
    if absent:
        raise MalformedDocument(f"predictions: {missing_text(absent, reference)}")
    return encode_checked(reference, predictions)


def encode_checked(reference: Reference, predictions: Predictions) -> Answers:
    """Align a complete run that ``check_answers`` has accepted."""
    gloss_ids = dict(reference.gloss_ids)
    table = {UNKNOWN: UNKNOWN_ID}
    shape = (reference.label.size, MOST_CANDIDATES)
    candidates = np.full(shape, MISSING_ID, dtype=np.int64)
    confidence = np.full(reference.label.size, LEAST_CONFIDENT)
    starts = np.cumsum(reference.lengths) - reference.lengths
    for clip_id, start in zip(reference.clip_ids, starts.tolist(), strict=True):
        for row, position in enumerate(predictions[clip_id], start=start):
            for rank, gloss in enumerate(position.candidates):
                known = table.get(gloss)
                if known is None:
                    known = table[gloss] = gloss_ids.setdefault(gloss, len(gloss_ids))
                candidates[row, rank] = known
            if position.candidates[0] != UNKNOWN:
                confidence[row] = position.confidence or 0.0
    return Answers(reference, gloss_ids, candidates, confidence)


def check_answers(reference: Reference, predictions: Predictions) -> None:
    """Refuse what cannot be aligned or is out of bounds, complete or not.

    Raise ``MalformedDocument`` as ``encode_answers`` does, but accept absent clips.
    """
    checked = {UNKNOWN, *reference.gloss_ids}
    lengths = dict(zip(reference.clip_ids, reference.lengths.tolist(), strict=True))
    for clip_id, positions in predictions.items():
        if clip_id not in lengths:
            raise MalformedDocument(f"{_place(clip_id)}: the exam has no such clip; leave it out")
        if len(positions) > lengths[clip_id]:
            raise MalformedDocument(
                f"{_place(clip_id)}: {len(positions)} signs for {lengths[clip_id]} segments; "
                "answer each given segment once"
            )
        for number, position in enumerate(positions, start=1):
            fault = _position_fault(position, checked)
            if fault:
                raise MalformedDocument(f"{_place(clip_id)}, sign {number}: {fault}")


def missing_text(absent: tuple[str, ...], reference: Reference) -> str:
    """Say how many clips have no entry, and name the first ones."""
    named = ", ".join(escape_untrusted(clip_id, 40) for clip_id in absent[:5])
    more = ", …" if len(absent) > 5 else ""
    return (
        f"{len(absent)} of {len(reference.clip_ids)} clips have no entry ({named}{more}); "
        "only complete runs are scored"
    )


def _place(clip_id: str) -> str:
    return f"predictions, clip {escape_untrusted(clip_id)}"


def _position_fault(position: Position, checked: set[str]) -> str | None:
    """Say what is wrong with one answer; good glosses join ``checked``."""
    count = len(position.candidates)
    if not 1 <= count <= MOST_CANDIDATES:
        return f"{count} candidates; give one to {MOST_CANDIDATES}"
    for gloss in position.candidates:
        fault = None if gloss in checked else gloss_fault(gloss)
        if fault:
            return fault
        checked.add(gloss)
    stated = position.confidence
    if stated is not None and not (math.isfinite(stated) and 0 <= stated <= 1):
        return f"confidence {stated}; give a number in [0, 1]"
    return None
