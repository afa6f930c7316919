"""Make a sample edition in the exact Épée layout, labels for its exam included.

Everything is drawn from a seed. The baselines learn from another draw (`train_baselines`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

import numpy as np

from manifests.editions import SCORER_OF_TRACK, Edition, Track, parse_edition
from manifests.encoding import canonical_json, readable_json
from manifests.errors import MalformedDocument
from manifests.vocabulary import render_vocabulary
from orchestrator.samples.rules.sample_clips import SampleClip, draw_clips
from orchestrator.samples.rules.sample_signs import SCORED_GLOSSES

HELD_OUT_SIGNER = "ECHO"
LABELS_FILE = "labels-v1.jsonl"
METADATA_FILE = "metadata.csv"
_VERSIONS: dict[Track, str] = {"recognition": "2.1", "translation": "1.0", "segmentation": "1.0"}
_SLICES = ("studio", "broadcast", "conversational", "canary")
_METADATA = ("clip_id", "signer_id", "phrase_id", "parallel", "fps", "n_frames", "text_en")

WriteFile = Callable[[str, bytes], None]
"""Writes a new file by its name below the sample's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """Which sample to make."""

    edition: str
    opens: datetime
    closes: datetime
    track: Track = "recognition"
    clips: int = 200
    seed: int = 200
    consumer: str | None = None
    """Segmentation: the frozen recognizer, as `repo@sha256:…`."""


def make_sample_edition(write: WriteFile, request: SampleRequest) -> Edition:
    """Write `edition.yaml` and everything that it names; return the edition.

    Raises:
        MalformedDocument: the request does not make an edition.

    """
    if request.clips < 1:
        raise MalformedDocument(f"a sample of {request.clips} clips; ask for one at least")
    labels, rows = [], []
    for clip in draw_clips(request.clips, seed=request.seed):
        write(f"keypoints/{clip.clip_id}.npy", npy_file(clip))
        write(f"annotations/{clip.clip_id}.json", readable_json(annotation(clip)))
        labels.append(canonical_json(label(clip, request.track)))
        rows.append(annotation(clip))
    document = _edition_document(request, {row["signer_id"] for row in rows})
    edition = parse_edition(document, source="the sample's edition.yaml")
    write(LABELS_FILE, b"".join(line + b"\n" for line in labels))
    write(METADATA_FILE, _metadata(rows))
    if edition.vocabulary is not None:
        write(edition.vocabulary, render_vocabulary(SCORED_GLOSSES))
    write("edition.yaml", document)
    return edition


def npy_file(clip: SampleClip) -> bytes:
    """Return a clip's keypoints as an .npy file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, clip.keypoints, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def annotation(clip: SampleClip) -> dict[str, object]:
    """Return a clip's annotation as the corpus has it; times in seconds."""
    return {
        "clip_id": clip.clip_id,
        "signer_id": clip.signer_id,
        "phrase_id": clip.phrase_id,
        "parallel": True,
        "text_en": clip.text_en,
        "fps": clip.fps,
        "n_frames": len(clip.keypoints),
        "segments": _segments(clip),
    }


def _segments(clip: SampleClip) -> list[dict[str, object]]:
    # a quarter of a frame inside: seconds times frame rate truncate to the frame that is meant
    return [
        {
            "gloss": segment.gloss,
            "start": round((segment.start_frame + 0.25) / clip.fps, 4),
            "end": round((segment.end_frame + 0.25) / clip.fps, 4),
        }
        for segment in clip.segments
    ]


def label(clip: SampleClip, track: Track) -> dict[str, object]:
    """Return a clip's label for one of the three tracks."""
    match track:
        case "recognition":
            glosses = [segment.gloss for segment in clip.segments]
            return {"clip_id": clip.clip_id, "signer_id": clip.signer_id, "glosses": glosses}
        case "translation":
            part = _SLICES[clip.part]
            return {"clip_id": clip.clip_id, "slice": part, "reference": clip.text_en}
        case "segmentation":
            known = annotation(clip)
            kept = ("clip_id", "signer_id", "fps", "n_frames", "segments")
            return {key: known[key] for key in kept}
        case _:
            assert_never(track)


def _metadata(rows: Sequence[dict[str, object]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, _METADATA, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")


def _edition_document(request: SampleRequest, signers: AbstractSet[object]) -> bytes:
    return "".join(f"{line}\n" for line in _edition_lines(request, signers)).encode("utf-8")


def _edition_lines(request: SampleRequest, signers: AbstractSet[object]) -> Iterator[str]:
    yield f"edition: {request.edition}"
    yield f"title: Sample · {request.track}"
    yield f"track: {request.track}"
    yield "round: final"
    yield 'exam_version: "1.0"'
    yield "layout: clerc-128"
    yield "source: ."
    yield f"expected_clips: {request.clips}"
    if request.track != "translation":
        yield "vocabulary: vocabulary.txt"
    yield f"labels: {{version: labels-v1, path: {LABELS_FILE}, note: invented by a generator}}"
    yield "profile: certified"
    name = SCORER_OF_TRACK[request.track]
    yield f'scorer: {{name: {name}, version: "{_VERSIONS[request.track]}"}}'
    if request.track == "recognition" and HELD_OUT_SIGNER in signers:
        yield f"held_out_signer: {HELD_OUT_SIGNER}"
    yield f"opens: {request.opens:%Y-%m-%dT%H:%M:%SZ}"
    yield f"closes: {request.closes:%Y-%m-%dT%H:%M:%SZ}"
    yield "organizer: {name: Sample organizer, contact: organizers@example.org}"
    if request.consumer is not None:
        yield f"consumer: {request.consumer}"
