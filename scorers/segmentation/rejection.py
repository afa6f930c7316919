"""Confidence thresholds of a consumer that may reject clips, fixed on validation only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from scorers.segmentation.corpus import Corpus, build_corpus
from scorers.segmentation.documents import SegmentationLabel, SystemOutput
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


def pooled_confidences(
    labels: Sequence[SegmentationLabel], candidates: Iterable[SystemOutput]
) -> NDArray[np.float64]:
    """Return the confidences of every predicted segment of all candidates, as one cache.

    Raise ``MalformedDocument`` naming the candidate that has no consumer or an answer without
    confidence: a threshold over part of the answers would retain another share than it says.
    """
    caches = [np.zeros(0)]
    for candidate in candidates:
        corpus = build_corpus(labels, candidate.predictions, (), candidate.consumer)
        if corpus.confidence is None or np.isnan(corpus.confidence).any():
            shown = escape_untrusted(candidate.name)
            raise MalformedDocument(f"rejection: candidate {shown} lacks confidences")
        caches.append(corpus.confidence)
    return np.concatenate(caches)


def above(corpus: Corpus, threshold: float) -> Corpus:
    """Return the corpus without the predictions whose confidence is below the threshold.

    Raise ``MalformedDocument`` when the consumer gives no confidence for some answer.
    """
    if corpus.confidence is None or np.isnan(corpus.confidence).any():
        raise MalformedDocument("rejection: the consumer gives no confidence for some answers")
    return corpus.kept(corpus.confidence >= threshold)


def fit_joint(
    labels: Sequence[SegmentationLabel],
    candidates: Sequence[SystemOutput],
    vocabulary: Iterable[str],
) -> JointChoice | None:
    """Choose candidate and threshold with the fewest WER_IV errors on validation.

    A diagnostic: it shows whether sequence error alone prefers rejecting useful output. Ties go
    to the lowest threshold, then to the candidate declared first. None without an in-vocabulary
    reference.
    """
    known = tuple(vocabulary)
    best: tuple[int, float, int] | None = None
    words = 0
    for place, candidate in enumerate(candidates):
        corpus = build_corpus(labels, candidate.predictions, known, candidate.consumer)
        for threshold in JOINT_GRID:
            errors, words = _iv_errors(above(corpus, threshold))
            if best is None or (errors, threshold, place) < best:
                best = errors, threshold, place
    if best is None or words == 0:
        return None
    return JointChoice(candidates[best[2]].name, best[1], best[0] / words)


def _iv_errors(corpus: Corpus) -> tuple[int, int]:
    pairs = overlapping_pairs(corpus.references, corpus.predictions, corpus.n_frames)
    sums = sequence_counts(corpus, pairs)["wer_iv"].sum(axis=0)
    return int(sums[:3].sum()), int(sums[3])
