"""BLEURT's segment scores, computed elsewhere: the values and their file format.

The file is JSON Lines. The first line names the checkpoint:
``{"checkpoint": "BLEURT-20", "sha256": "<64 hex>"}``; every further line is one clip:
``{"clip_id": "0001", "score": 0.71, "deranged_score": 0.32}``. ``deranged_score`` is the score
against the reference that the derangement gives the clip; it stands on every main clip or on none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from manifests.encoding import Json, canonical_json, parse_json_object
from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

_SHA256 = re.compile(r"[0-9a-f]{64}")
_BOUND = 1000
"""Far beyond any BLEURT score; it keeps huge integers out of floating point."""


@dataclass(frozen=True, slots=True)
class SegmentScores:
    """Scores by clip id against the true and, where known, the deranged references.

    Scores of two checkpoints are not comparable, so the digest is part of the scorer string.
    Raise ``MalformedDocument`` for a digest that is none and for a score that is not finite.
    """

    checkpoint_name: str
    checkpoint_sha256: str
    scores: Mapping[str, float]
    deranged: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Check digest and numbers."""
        if not _SHA256.fullmatch(self.checkpoint_sha256):
            shown = escape_untrusted(self.checkpoint_sha256, 80)
            raise MalformedDocument(f"BLEURT checkpoint digest '{shown}' is not 64 hex digits")
        for scores in (self.scores, self.deranged or {}):
            for clip_id, score in scores.items():
                if not math.isfinite(score):
                    shown = escape_untrusted(clip_id, 64)
                    raise MalformedDocument(f"clip {shown}: BLEURT score {score} is not finite")


def parse_segment_scores(data: bytes, source: str = "BLEURT scores") -> SegmentScores:
    """Read a file of precomputed scores; ``source`` names it in messages.

    Raise ``MalformedDocument``, naming the line, for anything but the format above: unknown,
    absent or duplicate keys, duplicate clips, numbers that are not finite. Whether every clip
    has its scores is found when they meet the labels.
    """
    lines = data.splitlines()
    if not lines:
        raise MalformedDocument(f"{source} is empty; line 1 must name the checkpoint")
    place = f"{source} line 1"
    head = _row(lines[0], place, {"checkpoint", "sha256"}, set())
    name, digest = (_text(head[key], place, key) for key in ("checkpoint", "sha256"))
    scores: dict[str, float] = {}
    deranged: dict[str, float] = {}
    for number, line in enumerate(lines[1:], start=2):
        place = f"{source} line {number}"
        row = _row(line, place, {"clip_id", "score"}, {"deranged_score"})
        clip_id = _text(row["clip_id"], place, "clip_id")
        if clip_id in scores:
            raise MalformedDocument(f"{place}: clip {escape_untrusted(clip_id, 64)} stands twice")
        scores[clip_id] = _number(row["score"], place, "score")
        if "deranged_score" in row:
            deranged[clip_id] = _number(row["deranged_score"], place, "deranged_score")
    return SegmentScores(name, digest, scores, deranged or None)


def render_segment_scores(scores: SegmentScores) -> bytes:
    """Write scores in the format that ``parse_segment_scores`` reads, ordered by clip id."""
    rows: list[dict[str, str | float]] = [
        {"checkpoint": scores.checkpoint_name, "sha256": scores.checkpoint_sha256}
    ]
    deranged = scores.deranged or {}
    for clip_id in sorted(scores.scores):
        row: dict[str, str | float] = {"clip_id": clip_id, "score": scores.scores[clip_id]}
        if clip_id in deranged:
            row["deranged_score"] = deranged[clip_id]
        rows.append(row)
    return b"".join(canonical_json(row) + b"\n" for row in rows)


def _row(line: bytes, place: str, needed: set[str], allowed: set[str]) -> dict[str, Json]:
    row = parse_json_object(line, source=place)
    lacking, unknown = needed - set(row), set(row) - needed - allowed
    if lacking:
        raise MalformedDocument(f"{place} lacks {', '.join(sorted(lacking))}")
    if unknown:
        shown = escape_untrusted(", ".join(sorted(unknown)))
        raise MalformedDocument(f"{place} holds unknown keys: {shown}")
    return row


def _text(value: Json, place: str, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise MalformedDocument(f"{place}: {key} must be a text that is not empty")
    return value


def _number(value: Json, place: str, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _BOUND:
        raise MalformedDocument(f"{place}: {key} must be a number between -{_BOUND} and {_BOUND}")
    return float(value)
