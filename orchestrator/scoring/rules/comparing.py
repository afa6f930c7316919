"""Compare two scored runs by their track's main figure, on the same clips resampled together."""

from __future__ import annotations

from typing import assert_never

from manifests.errors import MalformedDocument
from orchestrator.scoring.rules.scoring import (
    ScoringTask,
    bleurt_scores,
    recognition_answers,
    recognition_labels,
    scored_vocabulary,
    segmentation_labels,
    segmentation_output,
    translation_labels,
    translation_texts,
)
from scorers import recognition, segmentation, translation
from scorers.recognition import RecognitionParameters
from scorers.segmentation import SegmentationParameters
from scorers.statistics.paired import PairedComparison
from scorers.translation import Measurement, TranslationParameters


def compare_runs(first: ScoringTask, second: ScoringTask) -> PairedComparison:
    """Compare recognition or segmentation runs; delta is first - second.

    Translation runs are measured once and compared by `scorers.translation.compare`.

    Raises:
        MalformedDocument: a run is incomplete, or the figure is not defined for both.

    """
    match first.parameters:
        case RecognitionParameters():
            return recognition.compare(
                recognition_labels(first),
                recognition_answers(first),
                recognition_answers(second),
                scored_vocabulary(first),
                first.parameters,
            )
        case SegmentationParameters():
            return segmentation.compare(
                segmentation_labels(first),
                segmentation_output(first),
                segmentation_output(second),
                scored_vocabulary(first),
                first.parameters,
            )
        case TranslationParameters():
            return translation.compare(
                measure_translation(first), measure_translation(second), first.parameters
            )
        case _:
            assert_never(first.parameters)


def measure_translation(task: ScoringTask) -> Measurement:
    """Measure a translation run: all that its card, intervals and a challenge need.

    Raises:
        MalformedDocument: labels, predictions, scores or poses do not fit each other, or the
            task is of another track.

    """
    if not isinstance(task.parameters, TranslationParameters):
        raise MalformedDocument(f"{task.source}: only translation runs are measured")
    labels, texts = translation_labels(task), translation_texts(task)
    bleurt = bleurt_scores(task, labels, texts)
    return translation.measure(labels, texts, task.parameters, bleurt=bleurt, poses=task.poses)
