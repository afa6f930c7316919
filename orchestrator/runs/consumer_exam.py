"""The frozen consumer's exam: the same clips, with the predicted intervals as segments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from manifests.annotations import (
    EntrantAnnotation,
    FrameSpan,
    Span,
    parse_entrant_annotation,
    render_entrant_annotation,
)
from manifests.digests import sha256_hex
from manifests.exam import VOCABULARY_FILE, Exam, render_exam
from manifests.predictions.lines import ClipExpectation
from manifests.predictions.segmentation import read_segmentation
from orchestrator.editions.open_clips import EXAM_FILE, ExamInput
from orchestrator.editions.rules.clip_archives import InputFile, annotation_name, input_bytes


def consumer_exam(
    exam: ExamInput,
    predictions: bytes,
    annotations: Mapping[str, EntrantAnnotation],
    *,
    vocabulary: bytes,
) -> ExamInput:
    """Return the recognition exam whose segments are the predicted intervals.

    The keypoints are the same files; the annotations are written anew.
    """
    document = Exam(
        edition=exam.exam.edition,
        track="recognition",
        clips=exam.exam.clips,
        vocabulary="vocabulary.txt",
    )
    exam_files = (
        InputFile(EXAM_FILE, render_exam(document)),
        InputFile(VOCABULARY_FILE, vocabulary),
    )
    spans = _predicted_annotations(predictions, annotations)
    written = {file.name: file.data for file in exam_files} | spans
    sums = dict(exam.sums) | {name: sha256_hex(data) for name, data in written.items()}
    return ExamInput(
        exam=document,
        sums=sums,
        size_bytes=exam.size_bytes + input_bytes({name: len(d) for name, d in written.items()}),
        clip_files=lambda: _with_annotations(exam, spans),
        exam_files=exam_files,
    )


def _predicted_annotations(
    predictions: bytes, annotations: Mapping[str, EntrantAnnotation]
) -> dict[str, bytes]:
    """Return the name and bytes of each clip's annotation with the predicted segments."""
    clips = {clip: ClipExpectation(n_frames=each.n_frames) for clip, each in annotations.items()}
    reading = read_segmentation(predictions, source="predictions.jsonl", clips=clips)
    return {
        annotation_name(entry.clip_id): render_entrant_annotation(
            consumer_annotation(annotations[entry.clip_id], entry.segments)
        )
        for entry in reading.valid_entries()
    }


def _with_annotations(
    exam: ExamInput, annotations: Mapping[str, bytes]
) -> Iterator[tuple[InputFile, InputFile]]:
    for keypoints, annotation in exam.clip_files():
        data = annotations[annotation.name]
        parse_entrant_annotation(data, source=annotation.name)
        yield keypoints, InputFile(annotation.name, data)


def frame_start_s(frame: int, fps: float) -> float:
    """Return the least-surprising time whose truncated frame is `frame`: `int(t * fps) == frame`.

    `frame / fps` may truncate to the frame before; then the next float up is taken.
    """
    seconds = frame / fps
    while int(seconds * fps) < frame:
        seconds = math.nextafter(seconds, math.inf)
    return seconds


def consumer_annotation(
    annotation: EntrantAnnotation, spans: tuple[FrameSpan, ...]
) -> EntrantAnnotation:
    """Return the clip's annotation with the predicted intervals as its segments, in seconds."""
    fps = annotation.fps
    segments = tuple(
        Span(start=frame_start_s(start, fps), end=frame_start_s(end, fps)) for start, end in spans
    )
    return annotation.model_copy(update={"segments": segments})
