"""Labels: the reference answers of an edition, one JSON object per clip (design, section 6)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from manifests.annotations import Fps, FrameCount, GlossSegment, SignerId, spans_fault
from manifests.digests import sha256_hex
from manifests.editions import Track
from manifests.encoding import canonical_json, parse_json_object
from manifests.errors import MalformedDocument
from manifests.glosses import label_gloss_fault
from manifests.names import ClipId
from manifests.statements import LabelsCommitment
from manifests.text import escape_untrusted
from manifests.validation import Listed, StrictDocument, validate_document

Slice = Literal["studio", "broadcast", "conversational", "canary"]

_SALT = re.compile(r"[0-9a-f]{64}", re.ASCII)


def _checked_gloss(gloss: str) -> str:
    fault = label_gloss_fault(gloss)
    if fault is not None:
        raise ValueError(fault)
    return gloss


Gloss = Annotated[str, AfterValidator(_checked_gloss)]


class RecognitionLabel(StrictDocument):
    """The glosses of one clip, in the order of its segments."""

    clip_id: ClipId
    signer_id: SignerId
    glosses: Annotated[tuple[Gloss, ...], Listed, Field(min_length=1)]


class TranslationLabel(StrictDocument):
    """The reference translation of one clip, and the slice of the exam it belongs to."""

    clip_id: ClipId
    slice: Slice
    reference: str = Field(max_length=10_000)

    @model_validator(mode="after")
    def _check_reference(self) -> TranslationLabel:
        if not self.reference.split():
            raise ValueError("the reference holds no text; every clip needs one")
        if not unicodedata.is_normalized("NFC", self.reference):
            raise ValueError("the reference is not in Unicode form NFC; normalise the file")
        return self


class SegmentationLabel(StrictDocument):
    """The annotated signs of one clip, in seconds."""

    clip_id: ClipId
    signer_id: SignerId
    fps: Fps
    n_frames: FrameCount
    segments: Annotated[tuple[GlossSegment, ...], Listed]

    @model_validator(mode="after")
    def _check_segments(self) -> SegmentationLabel:
        fault = spans_fault([s.frames(self.fps) for s in self.segments], self.n_frames)
        if fault is not None:
            raise ValueError(f"in frames at {self.fps} a second, {fault}")
        return self


Label = RecognitionLabel | TranslationLabel | SegmentationLabel

MODEL_OF_TRACK: dict[Track, type[Label]] = {
    "recognition": RecognitionLabel,
    "translation": TranslationLabel,
    "segmentation": SegmentationLabel,
}


@dataclass(frozen=True, slots=True)
class Labels:
    """One label version, in the order of its file; `salt` (64 hex digits) once it is sealed."""

    track: Track
    entries: tuple[Label, ...]
    salt: str | None = None

    def by_clip(self) -> dict[str, Label]:
        """Return the labels by clip id."""
        return {label.clip_id: label for label in self.entries}


@dataclass(frozen=True, slots=True)
class LabelledClip:
    """What a clip's annotation says that its label must agree with."""

    n_segments: int
    n_frames: int
    fps: float


def parse_labels(data: bytes, *, track: Track, source: str) -> Labels:
    """Parse the labels as an organizer writes them: one JSON object per line, no blank line.

    Raises:
        MalformedDocument: with source, line, clip, fact and bound.

    """
    return Labels(track, _entries(data.splitlines(), track, source, first=1))


def parse_salted_labels(data: bytes, *, track: Track, source: str) -> Labels:
    """Parse labels whose first line is `{"salt": "<64 hex digits>"}`, as they are sealed.

    Raises:
        MalformedDocument: as `parse_labels`, or when the salt is missing or malformed.

    """
    salt_line, _, rest = data.partition(b"\n")
    values = parse_json_object(salt_line, source=f"{source}:1")
    salt = values.get("salt")
    if values.keys() != {"salt"} or not isinstance(salt, str) or not _SALT.fullmatch(salt):
        raise MalformedDocument(f'{source}:1: expected {{"salt":"<64 hex digits>"}}')
    return Labels(track, _entries(rest.splitlines(), track, source, first=2), salt)


def _entries(lines: Sequence[bytes], track: Track, source: str, first: int) -> tuple[Label, ...]:
    entries: dict[str, Label] = {}
    for number, line in enumerate(lines, start=first):
        place = f"{source}:{number}"
        label = _entry(line, track, place)
        if label.clip_id in entries:
            raise MalformedDocument(f"{place}: clip {label.clip_id} is labelled twice; keep one")
        entries[label.clip_id] = label
    if not entries:
        raise MalformedDocument(f"{source}: no clip is labelled; write one line for each clip")
    return tuple(entries.values())


def _entry(line: bytes, track: Track, place: str) -> Label:
    if not line.strip():
        raise MalformedDocument(f"{place}: a blank line; remove it")
    values = parse_json_object(line, source=place)
    clip_id = values.get("clip_id")
    named = f", clip {escape_untrusted(clip_id, 64)}" if isinstance(clip_id, str) else ""
    return validate_document(MODEL_OF_TRACK[track], values, prefix=lambda _: f"{place}{named}")


def check_labels_fit(labels: Labels, clips: Mapping[str, LabelledClip], *, source: str) -> None:
    """Check that every clip is labelled once and that label and annotation agree.

    Recognition: as many glosses as segments. Segmentation: the annotation's frames and rate.

    Raises:
        MalformedDocument: with source, line, clip and both numbers.

    """
    first = 1 if labels.salt is None else 2
    for number, label in enumerate(labels.entries, start=first):
        place = f"{source}:{number}, clip {label.clip_id}"
        clip = clips.get(label.clip_id)
        if clip is None:
            raise MalformedDocument(
                f"{place}: no such clip among {len(clips)}; remove the line or add the clip"
            )
        _check_agreement(label, clip, place)
    unlabelled = sorted(clips.keys() - labels.by_clip().keys())
    if unlabelled:
        raise MalformedDocument(
            f"{source}: {len(unlabelled)} of {len(clips)} clips have no label, the first is "
            f"{unlabelled[0]}; write one line for each clip"
        )


def _check_agreement(label: Label, clip: LabelledClip, place: str) -> None:
    if isinstance(label, RecognitionLabel) and len(label.glosses) != clip.n_segments:
        raise MalformedDocument(
            f"{place}: {len(label.glosses)} glosses for {clip.n_segments} segments; "
            "label each segment once"
        )
    if not isinstance(label, SegmentationLabel):
        return
    if (label.n_frames, label.fps) != (clip.n_frames, clip.fps):
        raise MalformedDocument(
            f"{place}: {label.n_frames} frames at {label.fps} a second, but the annotation says "
            f"{clip.n_frames} at {clip.fps}"
        )


def renamed_labels(labels: Labels, new_ids: Mapping[str, str]) -> Labels:
    """Return `labels` under the clips' opaque names, sorted by these, without a salt.

    Raises:
        MalformedDocument: for a clip that has no new name.

    """
    unknown = [label.clip_id for label in labels.entries if label.clip_id not in new_ids]
    if unknown:
        raise MalformedDocument(f"labels: clip {unknown[0]} has no opaque name; seal it first")
    entries = [
        label.model_copy(update={"clip_id": new_ids[label.clip_id]}) for label in labels.entries
    ]
    return Labels(labels.track, tuple(sorted(entries, key=lambda label: label.clip_id)))


def render_salted_labels(labels: Labels, *, salt: str) -> bytes:
    """Return the file that is sealed: the salt, then canonical JSON per clip, in order of clip id.

    The salt is 32 random bytes in hex: without it, the digest of labels from a small vocabulary
    can be guessed in milliseconds (sandbox notes, 4.5).

    Raises:
        MalformedDocument: when the salt is not 64 hex digits.

    """
    if not _SALT.fullmatch(salt):
        raise MalformedDocument("labels: the salt is not 64 hex digits")
    lines = [canonical_json({"salt": salt})]
    ordered = sorted(labels.entries, key=lambda label: label.clip_id)
    lines.extend(canonical_json(label.model_dump(mode="json")) for label in ordered)
    return b"".join(line + b"\n" for line in lines)


def labels_commitment(salted: bytes, *, version: str, note: str = "") -> LabelsCommitment:
    """Return the public commitment to the bytes of a salted label file."""
    return LabelsCommitment(version=version, sha256=sha256_hex(salted), note=note)
