"""From documents to a score card: the one way from retained bytes to figures.

`certify`, `rescore`, `submit`, `score` and `verify --labels` all come through here, so the same
bytes give the same card everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from manifests.editions import Edition, Track
from manifests.errors import RefusedByPolicy
from manifests.labels import Label, Labels, RecognitionLabel, SegmentationLabel, TranslationLabel
from manifests.predictions.lines import ClipExpectation
from manifests.predictions.recognition import RecognitionPrediction, read_recognition
from manifests.predictions.segmentation import read_segmentation
from manifests.predictions.translation import read_translation
from scorers.cards import ScoreCard
from scorers.recognition import ClipLabels, Position, RecognitionParameters
from scorers.recognition import score as score_recognition
from scorers.segmentation import (
    ConsumerAnswers,
    LabelledSegment,
    RejectionLevel,
    SegmentationParameters,
    SystemOutput,
)
from scorers.segmentation import SegmentationLabel as SegmentationReference
from scorers.segmentation import score as score_segmentation
from scorers.segmentation.parameters import SCORER_VERSION as SEGMENTATION_VERSION
from scorers.translation import Poses, SegmentScores, Slice, TranslationParameters
from scorers.translation import TranslationLabel as TranslationReference
from scorers.translation import score as score_translation

GlossMap = Mapping[str, str]

MAIN_FIGURE: dict[Track, str] = {
    "recognition": "macro_f1",
    "translation": "s_total",
    "segmentation": "mf1s",
}
"""The figure by which each track's board ranks."""

ScoreBleurt = Callable[
    [Sequence[TranslationReference], Mapping[str, str], TranslationParameters], SegmentScores
]
"""Runs a BLEURT checkpoint on labels and sentences."""

Parameters = RecognitionParameters | TranslationParameters | SegmentationParameters

_DEFAULTS: dict[Track, Parameters] = {
    "recognition": RecognitionParameters(),
    "translation": TranslationParameters(),
    "segmentation": SegmentationParameters(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringTask:
    """What is scored, on what, and how; predictions and consumer are predictions.jsonl bytes."""

    labels: Labels
    parameters: Parameters
    predictions: bytes
    source: str = "predictions.jsonl"
    vocabulary: tuple[str, ...] | None = None
    gloss_map: GlossMap = field(default_factory=dict)
    bleurt: SegmentScores | None = None
    score_bleurt: ScoreBleurt | None = None
    """Used where no precomputed `bleurt` scores are given."""
    poses: Poses | None = None
    consumer: bytes | None = None
    consumer_source: str = "consumer.jsonl"
    rejection: tuple[RejectionLevel, ...] | None = None


def default_parameters(track: Track) -> Parameters:
    """Return the scorer's own parameters for `track`."""
    return _DEFAULTS[track]


def edition_parameters(edition: Edition, labels_version: str) -> Parameters:
    """Return the scorer's parameters that an edition pins.

    Raises:
        RefusedByPolicy: the edition pins a scorer version that this piste does not hold.

    """
    rule = edition.scorer
    defaults = _DEFAULTS[edition.track]
    _refuse_other_version(edition)
    resamples = defaults.resamples if rule.resamples is None else rule.resamples
    common = replace(defaults, labels_version=labels_version, seed=rule.seed, resamples=resamples)
    match common:
        case RecognitionParameters():
            return replace(common, held_out_signer=edition.held_out_signer)
        case TranslationParameters():
            return replace(
                common,
                gate_threshold=rule.gate_threshold,
                derangement_key=rule.derangement_key,
            )
        case SegmentationParameters():
            return common
        case _:
            assert_never(common)


def scorer_version(track: Track) -> str:
    """Return the version of the scorer that this piste holds for `track`."""
    defaults = _DEFAULTS[track]
    return (
        SEGMENTATION_VERSION if isinstance(defaults, SegmentationParameters) else defaults.version
    )


def _refuse_other_version(edition: Edition) -> None:
    held = scorer_version(edition.track)
    if edition.scorer.version != held:
        raise RefusedByPolicy(
            f"edition {edition.edition} pins scorer {edition.scorer.name} "
            f"{edition.scorer.version}, but this piste holds {held}; use the piste release that "
            f"holds {edition.scorer.version}, or pin {held}"
        )


def expectation(label: Label) -> ClipExpectation:
    """Return what a clip's label tells about its predictions."""
    match label:
        case RecognitionLabel():
            return ClipExpectation(n_segments=len(label.glosses))
        case TranslationLabel():
            return ClipExpectation()
        case SegmentationLabel():
            return ClipExpectation(n_frames=label.n_frames)
        case _:
            assert_never(label)


def score(task: ScoringTask) -> ScoreCard:
    """Read the predictions strictly and score them.

    Raises:
        MalformedDocument: with file, clip and line for predictions that break the format.

    """
    match task.labels.track:
        case "recognition":
            return _recognition(task)
        case "translation":
            return _translation(task)
        case "segmentation":
            return _segmentation(task)
        case _:
            assert_never(task.labels.track)


def _clips(labels: Labels) -> dict[str, ClipExpectation]:
    return {label.clip_id: expectation(label) for label in labels.entries}


def _mapped(task: ScoringTask) -> Callable[[str], str]:
    return lambda gloss: task.gloss_map.get(gloss, gloss)


def _positions(prediction: RecognitionPrediction, mapped: Callable[[str], str]) -> list[Position]:
    return [
        Position(tuple(dict.fromkeys(map(mapped, sign.candidates))), sign.confidence)
        for sign in prediction.signs
    ]


def recognition_labels(task: ScoringTask) -> list[ClipLabels]:
    """Return the recognition labels as the scorer takes them, variants mapped."""
    mapped = _mapped(task)
    return [
        ClipLabels(label.clip_id, label.signer_id, tuple(map(mapped, label.glosses)))
        for label in task.labels.entries
        if isinstance(label, RecognitionLabel)
    ]


def recognition_answers(task: ScoringTask) -> dict[str, list[Position]]:
    """Read the answers by clip. Raises MalformedDocument."""
    mapped = _mapped(task)
    reading = read_recognition(task.predictions, source=task.source, clips=_clips(task.labels))
    return {entry.clip_id: _positions(entry, mapped) for entry in reading.valid_entries()}


def scored_vocabulary(task: ScoringTask) -> tuple[str, ...]:
    """Return the scored signs, variants mapped, each once."""
    return tuple(dict.fromkeys(map(_mapped(task), task.vocabulary or ())))


def _recognition(task: ScoringTask) -> ScoreCard:
    assert isinstance(task.parameters, RecognitionParameters)
    labels, answers = recognition_labels(task), recognition_answers(task)
    return score_recognition(labels, answers, scored_vocabulary(task), task.parameters)


def translation_labels(task: ScoringTask) -> list[TranslationReference]:
    """Return the translation labels as the scorer takes them."""
    return [
        TranslationReference(label.clip_id, Slice(label.slice), label.reference)
        for label in task.labels.entries
        if isinstance(label, TranslationLabel)
    ]


def translation_texts(task: ScoringTask) -> dict[str, str]:
    """Read the sentences by clip. Raises MalformedDocument."""
    reading = read_translation(task.predictions, source=task.source, clips=_clips(task.labels))
    return {entry.clip_id: entry.text for entry in reading.valid_entries()}


def bleurt_scores(
    task: ScoringTask, labels: Sequence[TranslationReference], texts: Mapping[str, str]
) -> SegmentScores | None:
    """Return the precomputed BLEURT scores, or those that the task's checkpoint gives, or None."""
    if task.bleurt is not None or task.score_bleurt is None:
        return task.bleurt
    assert isinstance(task.parameters, TranslationParameters)
    return task.score_bleurt(labels, texts, task.parameters)


def _translation(task: ScoringTask) -> ScoreCard:
    assert isinstance(task.parameters, TranslationParameters)
    labels, texts = translation_labels(task), translation_texts(task)
    bleurt = bleurt_scores(task, labels, texts)
    return score_translation(labels, texts, task.parameters, bleurt=bleurt, poses=task.poses)


def segmentation_labels(task: ScoringTask) -> list[SegmentationReference]:
    """Return the segmentation labels as the scorer takes them, variants mapped."""
    mapped = _mapped(task)
    return [
        _reference(label, mapped)
        for label in task.labels.entries
        if isinstance(label, SegmentationLabel)
    ]


def segmentation_output(task: ScoringTask) -> SystemOutput:
    """Read the segments, and the consumer's answers if there are any. Raises MalformedDocument."""
    reading = read_segmentation(task.predictions, source=task.source, clips=_clips(task.labels))
    segments = {entry.clip_id: entry.segments for entry in reading.valid_entries()}
    consumer = _consumer_answers(task, {clip: len(found) for clip, found in segments.items()})
    return SystemOutput(task.source, segments, consumer)


def _segmentation(task: ScoringTask) -> ScoreCard:
    assert isinstance(task.parameters, SegmentationParameters)
    output = segmentation_output(task)
    return score_segmentation(
        segmentation_labels(task),
        output.predictions,
        None if task.vocabulary is None else tuple(map(_mapped(task), task.vocabulary)),
        task.parameters,
        consumer=output.consumer,
        rejection_thresholds=task.rejection,
    )


def _reference(label: SegmentationLabel, mapped: Callable[[str], str]) -> SegmentationReference:
    signs = tuple(LabelledSegment(mapped(s.gloss), s.start, s.end) for s in label.segments)
    return SegmentationReference(label.clip_id, label.signer_id, label.fps, label.n_frames, signs)


def _consumer_answers(task: ScoringTask, segments: Mapping[str, int]) -> ConsumerAnswers | None:
    """Read the frozen consumer's answers, aligned with the predicted segments of each clip.

    Where a clip has no prediction, nothing is scored: answers have nothing to be aligned with.
    """
    if task.consumer is None or len(segments) < len(task.labels.entries):
        return None
    mapped = _mapped(task)
    clips = {clip: ClipExpectation(n_segments=count) for clip, count in segments.items()}
    reading = read_recognition(task.consumer, source=task.consumer_source, clips=clips)
    return {
        entry.clip_id: [(mapped(sign.candidates[0]), sign.confidence) for sign in entry.signs]
        for entry in reading.valid_entries()
    }
