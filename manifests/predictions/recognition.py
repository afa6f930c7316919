"""Recognition: ranked glosses for the given segments, aligned by position."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from manifests.encoding import Json, canonical_json
from manifests.glosses import gloss_fault
from manifests.predictions.lines import (
    ClipExpectation,
    PredictionLimits,
    Reading,
    check_fields,
    read_lines,
)
from manifests.predictions.problems import EntryFault, ProblemKind

MAX_CANDIDATES = 3
MAX_SIGNS = 10_000
"""Bound where the number of segments is not known."""
CONFIDENCE_DECIMALS = 4
"""Finer digits could carry bits of a sealed clip, so they are cut before scoring."""


@dataclass(frozen=True, slots=True)
class SignAnswer:
    """The answer to one segment: ranked distinct candidates, and a confidence or none.

    The confidence lies in [0, 1] and is rounded to four decimals, half to even.
    """

    candidates: tuple[str, ...]
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class RecognitionPrediction:
    """One clip's answers; fewer than the segments means that the last ones are missing."""

    clip_id: str
    signs: tuple[SignAnswer, ...]


def read_recognition(
    data: bytes,
    *,
    source: str,
    clips: Mapping[str, ClipExpectation],
    limits: PredictionLimits | None = None,
) -> Reading[RecognitionPrediction]:
    """Read recognition predictions; every problem is a value, none is raised.

    Glosses are brought into Unicode form NFC, repeated candidates collapse into the first, and
    confidences are rounded to four decimals.
    """

    def read_entry(clip_id: str, document: dict[str, Json]) -> RecognitionPrediction:
        return _entry(clip_id, document, clips[clip_id].n_segments)

    return read_lines(
        data,
        source=source,
        clips=clips,
        read_entry=read_entry,
        limits=limits or PredictionLimits(),
    )


def render_recognition(entries: Iterable[RecognitionPrediction]) -> bytes:
    """Return the canonical file: one line of canonical JSON per clip, by rising clip id.

    A single candidate without a confidence is a string, anything else an object.
    """
    lines = []
    for entry in sorted(entries, key=lambda entry: entry.clip_id):
        signs = [_plain(sign) for sign in entry.signs]
        lines.append(canonical_json({"clip_id": entry.clip_id, "signs": signs}) + b"\n")
    return b"".join(lines)


def _plain(sign: SignAnswer) -> Json:
    candidates: list[Json] = list(sign.candidates)
    if sign.confidence is not None:
        return {"candidates": candidates, "confidence": sign.confidence}
    return candidates[0] if len(candidates) == 1 else {"candidates": candidates}


def _entry(
    clip_id: str, document: dict[str, Json], n_segments: int | None
) -> RecognitionPrediction:
    check_fields(document, required="clip_id signs")
    signs = document["signs"]
    if not isinstance(signs, list):
        raise EntryFault(ProblemKind.WRONG_TYPE, "signs is not a list")
    bound = MAX_SIGNS if n_segments is None else n_segments
    if len(signs) > bound:
        fact = f"{len(signs)} signs for {bound} segments; answer each given segment once"
        raise EntryFault(ProblemKind.TOO_MANY_SIGNS, fact)
    return RecognitionPrediction(
        clip_id, tuple(_sign(sign, number) for number, sign in enumerate(signs, start=1))
    )


def _sign(sign: Json, number: int) -> SignAnswer:
    if isinstance(sign, str):
        return SignAnswer((_gloss(sign, number),))
    if not isinstance(sign, dict):
        fact = f"sign {number} is neither a gloss nor an object with candidates"
        raise EntryFault(ProblemKind.WRONG_TYPE, fact)
    try:
        check_fields(sign, required="candidates", optional="confidence")
    except EntryFault as fault:
        raise EntryFault(fault.kind, f"sign {number}: {fault}") from fault
    confidence = _confidence(sign["confidence"], number) if "confidence" in sign else None
    return SignAnswer(_candidates(sign["candidates"], number), confidence)


def _candidates(value: Json, number: int) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise EntryFault(ProblemKind.WRONG_TYPE, f"sign {number}: candidates is not a list")
    if not 1 <= len(value) <= MAX_CANDIDATES:
        fact = f"sign {number}: {len(value)} candidates; give 1 to {MAX_CANDIDATES}"
        raise EntryFault(ProblemKind.CANDIDATE_COUNT, fact)
    return tuple(dict.fromkeys(_gloss(gloss, number) for gloss in value))


def _gloss(value: Json, number: int) -> str:
    if not isinstance(value, str):
        raise EntryFault(ProblemKind.WRONG_TYPE, f"sign {number}: a candidate is not a string")
    gloss = unicodedata.normalize("NFC", value)
    fault = gloss_fault(gloss)
    if fault is not None:
        raise EntryFault(ProblemKind.BAD_GLOSS, f"sign {number}: {fault}")
    return gloss


def _confidence(value: Json, number: int) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        fact = f"sign {number}: confidence is not a number; leave it out where there is none"
        raise EntryFault(ProblemKind.WRONG_TYPE, fact)
    if not 0 <= value <= 1:
        fact = f"sign {number}: confidence {_short(value)} is outside [0, 1]"
        raise EntryFault(ProblemKind.BAD_CONFIDENCE, fact)
    return round(float(value), CONFIDENCE_DECIMALS) + 0.0  # + 0.0 turns -0.0 into 0.0


def _short(value: float) -> str:
    too_long = isinstance(value, int) and value.bit_length() > 64
    return "of more than 64 bits" if too_long else str(value)
