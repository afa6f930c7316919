"""Translation: one text per clip, and optionally a pose file per clip."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from manifests.clips import parse_keypoints
from manifests.encoding import Json, canonical_json
from manifests.errors import MalformedDocument
from manifests.predictions.lines import (
    ClipExpectation,
    PredictionLimits,
    Reading,
    check_fields,
    read_lines,
)
from manifests.predictions.problems import EntryFault, PredictionProblem, ProblemKind
from manifests.text import escape_untrusted

MAX_TEXT_CHARACTERS = 2000
MAX_POSE_STRETCH = 10
"""A pose may have ten times the frames of its clip: time warping is quadratic in them."""


@dataclass(frozen=True, slots=True)
class TranslationPrediction:
    """One clip's text, in form NFC, whitespace folded to single spaces; it may be empty."""

    clip_id: str
    text: str


def read_translation(
    data: bytes,
    *,
    source: str,
    clips: Mapping[str, ClipExpectation],
    limits: PredictionLimits | None = None,
) -> Reading[TranslationPrediction]:
    """Read translation predictions; every problem is a value, none is raised."""
    return read_lines(
        data, source=source, clips=clips, read_entry=_entry, limits=limits or PredictionLimits()
    )


def render_translation(entries: Iterable[TranslationPrediction]) -> bytes:
    """Return the canonical file: one line of canonical JSON per clip, by rising clip id."""
    ordered = sorted(entries, key=lambda entry: entry.clip_id)
    return b"".join(
        canonical_json({"clip_id": entry.clip_id, "text": entry.text}) + b"\n" for entry in ordered
    )


def pose_problem(
    name: str, data: bytes, *, clips: Mapping[str, ClipExpectation]
) -> PredictionProblem | None:
    """Return what is wrong with the pose file `name`, as `0001.npy`, or None.

    It must belong to a clip and be float32 (frames, 128, 3), finite, with at most ten times the
    clip's frames.
    """
    shown = f"pose/{escape_untrusted(name, 70)}"
    clip_id = name.removesuffix(".npy")
    if not name.endswith(".npy") or clip_id not in clips:
        message = f"{shown}: not the name of a clip and .npy"
        return PredictionProblem(ProblemKind.BAD_POSE, None, None, message)
    try:
        n_frames = parse_keypoints(data, source=f"{shown}, clip {clip_id}").shape[0]
    except MalformedDocument as error:
        return PredictionProblem(ProblemKind.BAD_POSE, clip_id, None, str(error))
    clip_frames = clips[clip_id].n_frames
    if clip_frames is not None and n_frames > MAX_POSE_STRETCH * clip_frames:
        bound = MAX_POSE_STRETCH * clip_frames
        message = f"{shown}, clip {clip_id}: {n_frames} frames; at most {bound} are allowed"
        return PredictionProblem(ProblemKind.BAD_POSE, clip_id, None, message)
    return None


def _entry(clip_id: str, document: dict[str, Json]) -> TranslationPrediction:
    check_fields(document, required="clip_id text")
    text = document["text"]
    if not isinstance(text, str):
        raise EntryFault(ProblemKind.WRONG_TYPE, "text is not a string")
    folded = unicodedata.normalize("NFC", " ".join(text.split()))
    if len(folded) > MAX_TEXT_CHARACTERS:
        fact = f"the text has {len(folded)} characters; at most {MAX_TEXT_CHARACTERS} are allowed"
        raise EntryFault(ProblemKind.BAD_TEXT, fact)
    for character in folded:
        if unicodedata.category(character) in {"Cc", "Cs"}:
            fact = f"the text holds the character U+{ord(character):04X}; leave it out"
            raise EntryFault(ProblemKind.BAD_TEXT, fact)
    return TranslationPrediction(clip_id, folded)
