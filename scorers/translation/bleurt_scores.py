"""BLEURT's segment scores, computed elsewhere: the values and their file format.

The file is JSON Lines. The first line names the checkpoint:
``{"checkpoint": "BLEURT-20", "sha256": "<64 hex>"}``; every further line is one clip:
``{"clip_id": "0001", "score": 0.71, "deranged_score": 0.32}``. ``deranged_score`` is the score
against the reference that the derangement gives the clip; it stands on every main clip or on none.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

_SHA256 = re.compile(r"[0-9a-f]{64}")


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


def parse_segment_scores(data: bytes, name: str = "BLEURT scores") -> SegmentScores:
    """Read a file of precomputed scores; ``name`` stands in messages.

    Raise ``MalformedDocument``, naming the line, for anything but the format above: unknown or
    duplicate keys, duplicate clips, a ``deranged_score`` on some clips only at random is found
    later, against the labels.
    """
    lines = data.splitlines()
    if not lines:
        raise MalformedDocument(f"{name} is empty; line 1 must name the checkpoint")
    head = _parse_line(lines[0], f"{name} line 1", {"checkpoint", "sha256"}, set())
    scores: dict[str, float] = {}
    deranged: dict[str, float] = {}
    for number, line in enumerate(lines[1:], start=2):
        place = f"{name} line {number}"
        row = _parse_line(line, place, {"clip_id", "score"}, {"deranged_score"})
        clip_id = _text(row["clip_id"], place, "clip_id")
        if clip_id in scores:
            raise MalformedDocument(f"{place}: clip {escape_untrusted(clip_id, 64)} stands twice")
        scores[clip_id] = _number(row["score"], place, "score")
        if "deranged_score" in row:
            deranged[clip_id] = _number(row["deranged_score"], place, "deranged_score")
    checkpoint = _text(head["checkpoint"], f"{name} line 1", "checkpoint")
    digest = _text(head["sha256"], f"{name} line 1", "sha256")
    return SegmentScores(checkpoint, digest, scores, deranged or None)


def render_segment_scores(scores: SegmentScores) -> bytes:
    """Write scores in the format that ``parse_segment_scores`` reads, ordered by clip id."""
    rows: list[dict[str, Any]] = [
        {"checkpoint": scores.checkpoint_name, "sha256": scores.checkpoint_sha256}
    ]
    for clip_id in sorted(scores.scores):
        row: dict[str, Any] = {"clip_id": clip_id, "score": scores.scores[clip_id]}
        if scores.deranged is not None and clip_id in scores.deranged:
            row["deranged_score"] = scores.deranged[clip_id]
        rows.append(row)
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


def _parse_line(line: bytes, place: str, needed: set[str], allowed: set[str]) -> dict[str, Any]:
    try:
        row = json.loads(line, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        reason = escape_untrusted(str(error))
        raise MalformedDocument(f"{place} is not a JSON object: {reason}") from error
    if not isinstance(row, dict):
        raise MalformedDocument(f"{place} is not a JSON object")
    keys = set(row)
    if needed - keys:
        raise MalformedDocument(f"{place} lacks {', '.join(sorted(needed - keys))}")
    if keys - needed - allowed:
        unknown = escape_untrusted(", ".join(sorted(keys - needed - allowed)))
        raise MalformedDocument(f"{place} holds the unknown keys {unknown}")
    return row


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError("a key stands twice")
    return row


def _text(value: object, place: str, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise MalformedDocument(f"{place}: {key} must be a text that is not empty")
    return value


def _number(value: object, place: str, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise MalformedDocument(f"{place}: {key} must be a finite number")
    return float(value)
