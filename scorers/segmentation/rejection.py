"""Confidence thresholds of a consumer that may reject clips, fixed on validation only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from scorers.segmentation.corpus import Corpus
from scorers.segmentation.documents import Answer, FrameSpan, SystemOutput, checked_answers
from scorers.segmentation.matching import overlapping_pairs
from scorers.segmentation.sequence import sequence_counts

RETENTIONS_PERCENT = (95, 90, 80)

JOINT_GRID = (
    *(0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.10, 0.15, 0.20),
    *(0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.90, 0.95, 0.975, 0.99),
)
"""The 20 thresholds of the joint diagnostic (seed paper, III-B)."""


@dataclass(frozen=True, slots=True)
class RejectionLevel:
    """The threshold that retains at least ``retention_percent`` of the validation answers.

    ``retained`` is the share that it really retains there.
    """

    retention_percent: int
    threshold: float
    retained: float


@dataclass(frozen=True, slots=True)
class JointChoice:
    """The candidate and threshold with the lowest validation WER_IV."""

    candidate: str
    threshold: float
    wer_iv: float


def fit_rejection(
    confidences: Sequence[float] | NDArray[np.float64],
    *,
    retentions_percent: tuple[int, ...] = RETENTIONS_PERCENT,
) -> tuple[RejectionLevel, ...]:
    """Fix one threshold a retention from the pooled validation confidences of all candidates.

    The threshold is the largest confidence t of the cache with share(confidence >= t) >= r,
    without interpolation, so that ties are retained together. Raise ``MalformedDocument`` for
    an empty cache or a confidence outside [0, 1].
    """
    cache = np.sort(np.asarray(confidences, np.float64))
    if cache.size == 0:
        raise MalformedDocument("rejection: the validation cache holds no confidence")
    if not ((cache >= 0) & (cache <= 1)).all():
        raise MalformedDocument("rejection: the validation cache leaves [0, 1] or lacks values")
    return tuple(_level(cache, percent) for percent in retentions_percent)


def _level(cache: NDArray[np.float64], percent: int) -> RejectionLevel:
    if not 0 < percent <= 100:
        raise MalformedDocument(f"rejection: retention {percent}% is outside 1 to 100")
    needed = -(-percent * cache.size // 100)
    threshold = float(cache[cache.size - needed])
    kept = cache.size - int(np.searchsorted(cache, threshold, side="left"))
    return RejectionLevel(percent, threshold, kept / cache.size)


def above(corpus: Corpus, threshold: float) -> Corpus:
    """Return the corpus without the predictions whose confidence is below the threshold.

    Raise ``MalformedDocument`` when the consumer gives no confidence for some answer.
    """
    if corpus.confidence is None or np.isnan(corpus.confidence).any():
        raise MalformedDocument("rejection: the consumer gives no confidence for some answers")
    return corpus.kept(corpus.confidence >= threshold)


def without_rejected(output: SystemOutput, threshold: float) -> SystemOutput:
    """Return a system's output without the segments that the consumer rejects.

    Raise ``MalformedDocument`` without a consumer or for an answer without confidence.
    """
    predictions: dict[str, list[FrameSpan]] = {}
    consumer: dict[str, list[Answer]] = {}
    if output.consumer is None:
        raise MalformedDocument(f"rejection: {escape_untrusted(output.name)} has no consumer")
    for clip_id, spans in output.predictions.items():
        answers = checked_answers(output.consumer.get(clip_id, ()), len(spans), clip_id)
        kept = [_is_kept(answer, threshold, clip_id) for answer in answers]
        predictions[clip_id] = list(compress(spans, kept))
        consumer[clip_id] = list(compress(answers, kept))
    return SystemOutput(output.name, predictions, consumer)


def _is_kept(answer: Answer, threshold: float, clip_id: str) -> bool:
    confidence = answer[1]
    if confidence is None:
        raise MalformedDocument(f"rejection, clip {escape_untrusted(clip_id)}: no confidence")
    return confidence >= threshold


def fit_joint(candidates: Mapping[str, Corpus]) -> JointChoice | None:
    """Choose candidate and threshold with the fewest WER_IV errors on validation.

    ``candidates`` stand in their declared order, all on the same labels. A diagnostic: it shows
    whether sequence error alone prefers rejecting useful output. Ties go to the lowest
    threshold, then to the candidate declared first. None without an in-vocabulary reference.
    """
    tried = [
        (*_iv_errors(above(corpus, threshold)), threshold, place, name)
        for place, (name, corpus) in enumerate(candidates.items())
        for threshold in JOINT_GRID
    ]
    if not tried or tried[0][1] == 0:
        return None
    errors, words, threshold, _, name = min(tried)
    return JointChoice(name, threshold, errors / words)


def _iv_errors(corpus: Corpus) -> tuple[int, int]:
    pairs = overlapping_pairs(corpus.references, corpus.predictions, corpus.n_frames)
    sums = sequence_counts(corpus, pairs)["wer_iv"].sum(axis=0)
    return int(sums[:3].sum()), int(sums[3])
