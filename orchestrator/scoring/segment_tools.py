"""Controlled boundary edits, selection on validation, and its one application to test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from manifests.errors import MalformedDocument
from manifests.labels import Labels, parse_labels, parse_salted_labels
from manifests.text import escape_untrusted
from manifests.vocabulary import parse_vocabulary
from orchestrator.scoring.rules.scoring import (
    ScoringTask,
    default_parameters,
    segmentation_labels,
    segmentation_output,
)
from orchestrator.scoring.score_files import InputFile
from scorers.segmentation import SegmentationLabel, SegmentationParameters, SystemOutput
from scorers.segmentation.edit_pairs import (
    equal_frame_pair,
    layers,
    matched_iou_pair,
    predictions_of,
    render_predictions,
)
from scorers.segmentation.edits import (
    EditedClip,
    deletion,
    dilation,
    erosion,
    jitter,
    merge,
    split,
)
from scorers.segmentation.held_out import HeldOutReport, score_selected
from scorers.segmentation.selection import SelectionManifest, parse_selection
from scorers.segmentation.validation import select_on_validation


class Edit(StrEnum):
    """The controlled edits; the last four are the two halves of the two kinds of pairs."""

    EROSION = "erosion"
    DILATION = "dilation"
    JITTER = "jitter"
    DELETION = "deletion"
    MERGE = "merge"
    SPLIT = "split"
    IOU_INNER = "iou-inner"
    IOU_OUTER = "iou-outer"
    FRAMES_INNER = "frames-inner"
    FRAMES_OUTER = "frames-outer"


UNIT_OF_EDIT = {
    edit: "percent"
    if edit in {Edit.DELETION, Edit.MERGE, Edit.SPLIT, Edit.IOU_INNER, Edit.IOU_OUTER}
    else "frames"
    for edit in Edit
}
"""What the size of each edit counts."""


@dataclass(frozen=True, slots=True)
class EditedFile:
    """One predictions file of edited gold, and how many of its segments are exactly as asked.

    Outer windows may overlap; then the edit comes in several files, each a segmentation.
    """

    data: bytes
    segments: int
    exact: int


@dataclass(frozen=True, slots=True)
class CandidateFiles:
    """One segmenter's predictions, and the frozen consumer's answers to them."""

    name: str
    predictions: InputFile
    consumer: InputFile


def edit_labels(labels: InputFile, edit: Edit, size: int, *, seed: int) -> tuple[EditedFile, ...]:
    """Edit the gold segments of a label file; the same seed gives the same bytes.

    Raises:
        MalformedDocument: for labels that are none, or a size out of the edit's bounds.

    """
    clips = {label.clip_id: _edited(label, edit, size, seed) for label in _references(labels)}
    split_up = {clip_id: layers(clip) for clip_id, clip in clips.items()}
    count = max((len(rows) for rows in split_up.values()), default=0)
    return tuple(_layer_file(split_up, clips, number) for number in range(max(count, 1)))


def _layer_file(
    split_up: Mapping[str, Sequence[EditedClip]], clips: Mapping[str, EditedClip], number: int
) -> EditedFile:
    chosen = {
        clip_id: rows[number]
        if number < len(rows)
        else EditedClip(clip_id, clips[clip_id].n_frames, clips[clip_id].edit, ())
        for clip_id, rows in split_up.items()
    }
    segments = [segment for clip in chosen.values() for segment in clip.segments]
    return EditedFile(
        data=render_predictions(predictions_of(chosen)),
        segments=len(segments),
        exact=sum(segment.exact for segment in segments),
    )


def _edited(label: SegmentationLabel, edit: Edit, size: int, seed: int) -> EditedClip:
    plain: dict[Edit, Callable[[SegmentationLabel, int], EditedClip]] = {
        Edit.EROSION: erosion,
        Edit.DILATION: dilation,
        Edit.IOU_INNER: lambda label, size: matched_iou_pair(label, size).inner,
        Edit.IOU_OUTER: lambda label, size: matched_iou_pair(label, size).outer,
        Edit.FRAMES_INNER: lambda label, size: equal_frame_pair(label, size).inner,
        Edit.FRAMES_OUTER: lambda label, size: equal_frame_pair(label, size).outer,
    }
    match edit:
        case Edit.JITTER:
            return jitter(label, size, seed=seed)
        case Edit.DELETION:
            return deletion(label, size, seed=seed)
        case Edit.MERGE:
            return merge(label, size, seed=seed)
        case Edit.SPLIT:
            return split(label, size, seed=seed)
        case (
            Edit.EROSION
            | Edit.DILATION
            | Edit.IOU_INNER
            | Edit.IOU_OUTER
            | Edit.FRAMES_INNER
            | Edit.FRAMES_OUTER
        ):
            return plain[edit](label, size)
        case _:
            assert_never(edit)


def select(
    labels: InputFile, vocabulary: InputFile, candidates: Sequence[CandidateFiles]
) -> SelectionManifest:
    """Choose segmenters on validation clips. Raises MalformedDocument with file, clip and line."""
    return select_on_validation(
        _references(labels),
        [_output(labels, each) for each in candidates],
        _glosses(vocabulary),
        _parameters(),
    )


def apply_selection(
    manifest: InputFile,
    labels: InputFile,
    vocabulary: InputFile,
    candidates: Sequence[CandidateFiles],
) -> HeldOutReport:
    """Score on test what a manifest selected; nothing here looks at a figure to choose.

    Raises:
        RefusedByPolicy: test clips were in validation, or parameters or vocabulary differ.
        MalformedDocument: a selected candidate's output is missing or malformed.

    """
    selection = parse_selection(manifest.data, source=manifest.source)
    wanted = {*selection.selected.values(), selection.joint and selection.joint.candidate}
    outputs = {each.name: _output(labels, each) for each in candidates if each.name in wanted}
    return score_selected(
        selection, _references(labels), outputs, _glosses(vocabulary), _parameters()
    )


def parse_candidate(text: str) -> tuple[str, str, str]:
    """Split `NAME=PREDICTIONS,CONSUMER` into its parts.

    Raises:
        MalformedDocument: with what was given and how it is written.

    """
    name, equals, files = text.partition("=")
    predictions, comma, consumer = files.partition(",")
    if not (name and equals and predictions and comma and consumer):
        raise MalformedDocument(
            f"--candidate {escape_untrusted(text)}: write NAME=PREDICTIONS.jsonl,CONSUMER.jsonl"
        )
    return name, predictions, consumer


def _parameters() -> SegmentationParameters:
    parameters = default_parameters("segmentation")
    assert isinstance(parameters, SegmentationParameters)
    return parameters


def _labels(file: InputFile) -> Labels:
    parse = parse_salted_labels if file.data.startswith(b'{"salt"') else parse_labels
    return parse(file.data, track="segmentation", source=file.source)


def _references(file: InputFile) -> list[SegmentationLabel]:
    return segmentation_labels(
        ScoringTask(labels=_labels(file), parameters=_parameters(), predictions=b"")
    )


def _output(labels: InputFile, candidate: CandidateFiles) -> SystemOutput:
    task = ScoringTask(
        labels=_labels(labels),
        parameters=_parameters(),
        predictions=candidate.predictions.data,
        source=candidate.predictions.source,
        consumer=candidate.consumer.data,
        consumer_source=candidate.consumer.source,
    )
    output = segmentation_output(task)
    return SystemOutput(candidate.name, output.predictions, output.consumer)


def _glosses(file: InputFile) -> tuple[str, ...]:
    return parse_vocabulary(file.data, source=file.source)
