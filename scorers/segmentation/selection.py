"""The selection manifest: which segmenter each objective chose on validation, and on what.

It stands between the two halves of the protocol. ``validation.select_on_validation`` writes it;
``held_out.score_selected`` takes it instead of a metric, so no code path selects on test.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from manifests.digests import Sha256Hex, sha256_hex
from manifests.encoding import canonical_json, readable_json
from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from scorers.segmentation.documents import ConsumerAnswers, SegmentationLabel
from scorers.segmentation.figures import Figure


class Objective(StrEnum):
    """What a segmenter may be selected for (seed paper, III-C)."""

    MF1S = "mf1s"
    AUC_RU = "auc_ru"
    WER_ALL = "wer_all"

    @property
    def figure(self) -> Figure:
        """Return the figure that decides."""
        return Figure(self.value)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Level(_Frozen):
    """A rejection threshold fixed on validation."""

    retention_percent: int
    threshold: float
    retained: float


class Joint(_Frozen):
    """The joint WER_IV diagnostic's candidate and threshold."""

    candidate: str
    threshold: float
    wer_iv: float


class CandidateInputs(_Frozen):
    """Which bytes a candidate was judged on, and what it reached on validation."""

    predictions_sha256: Sha256Hex
    consumer_sha256: Sha256Hex
    figures: dict[str, float | None]


class SelectionManifest(_Frozen):
    """The ids chosen on validation, with everything that the choice rests on.

    ``candidates`` keeps the declared order, which settles ties. ``rejection`` and ``joint`` are
    null when the consumer gives no confidences.
    """

    kind: Literal["piste/segmentation-selection/v1"] = "piste/segmentation-selection/v1"
    scorer: str
    labels_sha256: Sha256Hex
    vocabulary_sha256: Sha256Hex
    validation_clips: list[str]
    candidates: list[str]
    inputs: dict[str, CandidateInputs]
    selected: dict[str, str | None]
    rejection: list[Level] | None
    joint: Joint | None

    def as_bytes(self) -> bytes:
        """Return the manifest as a JSON file."""
        return readable_json(self.model_dump(mode="json"))


def parse_selection(data: bytes, *, source: str) -> SelectionManifest:
    """Parse a manifest that ``as_bytes`` wrote; raise ``MalformedDocument`` for anything else."""
    try:
        manifest = SelectionManifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = escape_untrusted(".".join(str(part) for part in first["loc"]))
        raise MalformedDocument(f"{source}: {place}: {escape_untrusted(first['msg'])}") from error
    known = set(manifest.candidates)
    if not {name for name in manifest.selected.values() if name is not None} <= known:
        raise MalformedDocument(f"{source}: it selects a candidate that it does not declare")
    return manifest


def labels_digest(labels: Sequence[SegmentationLabel]) -> str:
    """Return the SHA-256 of the labels as canonical JSON lines, by clip id."""
    ordered = sorted(labels, key=lambda label: label.clip_id)
    return sha256_hex(b"".join(canonical_json(asdict(label)) + b"\n" for label in ordered))


def vocabulary_digest(vocabulary: Collection[str]) -> str:
    """Return the SHA-256 of the sorted glosses, each with a newline."""
    return sha256_hex("".join(f"{gloss}\n" for gloss in sorted(set(vocabulary))).encode())


def answers_digest(consumer: ConsumerAnswers) -> str:
    """Return the SHA-256 of the consumer's answers as canonical JSON lines, by clip id."""
    lines = (
        canonical_json([clip_id, [list(answer) for answer in consumer[clip_id]]]) + b"\n"
        for clip_id in sorted(consumer)
    )
    return sha256_hex(b"".join(lines))
