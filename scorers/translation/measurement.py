"""Measure a run once, clip by clip: everything that any figure needs is a sum over clips.

One row per clip, in the order of the corpus. Sums of rows over the exam give the score card, sums
over a slice its slice figures, and weighted sums the bootstrap replicates (scoring notes, 1.5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from scorers.translation.bleu import BLEU_COLUMNS, bleu_counts
from scorers.translation.bleurt_scores import SegmentScores
from scorers.translation.chrf import CHRF_COLUMNS, chrf_counts
from scorers.translation.derangement import derange_main_slices
from scorers.translation.exam import Corpus, TranslationLabel, arrange
from scorers.translation.parameters import TranslationParameters
from scorers.translation.pose import Poses, clip_pose_score

FloatArray = NDArray[np.float64]

BLEU_PART = slice(0, BLEU_COLUMNS)
CHRF_PART = slice(BLEU_COLUMNS, BLEU_COLUMNS + CHRF_COLUMNS)
(MAIN_BLEURT, MAIN_CLIPS, CANARY_BLEURT, CANARY_CLIPS, POSE, POSE_CLIPS) = range(28, 34)
COLUMNS = 34
"""10 BLEU and 18 chrF counts, then sum and number of main BLEURT, canary BLEURT and pose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A run's additive statistics, each (clips, 34), against true and deranged references.

    ``segment_bleurt`` and ``segment_pose`` (clips,) are NaN where there is none;
    ``checkpoint`` holds name and digest of the BLEURT checkpoint.
    """

    corpus: Corpus
    table: FloatArray
    deranged_table: FloatArray
    segment_bleurt: FloatArray
    segment_pose: FloatArray
    checkpoint: tuple[str, str] | None


def measure(
    labels: Sequence[TranslationLabel],
    predictions: Mapping[str, str],
    parameters: TranslationParameters,
    *,
    bleurt: SegmentScores | None = None,
    poses: Poses | None = None,
) -> Measurement:
    """Measure a run against its labels.

    Raise ``MalformedDocument``, naming clip or slice, for labels, predictions, BLEURT scores or
    poses that do not fit each other and for a slice that cannot be deranged.
    """
    corpus = arrange(labels, predictions)
    _check_bleurt(corpus, bleurt)
    faced = derange_main_slices(corpus, parameters.derangement_key)
    true, deranged = _text_tables(corpus, faced, parameters)
    segment_bleurt = _segment_bleurt(corpus, bleurt.scores if bleurt else None)
    deranged_scores = _segment_bleurt(corpus, bleurt.deranged if bleurt else None)
    segment_pose = _segment_pose(corpus, poses, parameters)
    _add_bleurt(true, corpus, segment_bleurt)
    _add_bleurt(deranged, corpus, deranged_scores)
    _add_sums(true, segment_pose, (POSE, POSE_CLIPS))
    return Measurement(
        corpus=corpus,
        table=true,
        deranged_table=deranged,
        segment_bleurt=segment_bleurt,
        segment_pose=segment_pose,
        checkpoint=(bleurt.checkpoint_name, bleurt.checkpoint_sha256) if bleurt else None,
    )


def _text_tables(
    corpus: Corpus, faced: NDArray[np.int64], parameters: TranslationParameters
) -> tuple[FloatArray, FloatArray]:
    """Count n-grams against true and deranged references; canary rows stay zero."""
    pairings = [np.arange(faced.size), faced]
    hypotheses, references = corpus.hypotheses, corpus.references
    words = bleu_counts(hypotheses, references, pairings, parameters.tokenizer)
    letters = chrf_counts(hypotheses, references, pairings)
    tables = np.zeros((2, faced.size, COLUMNS))
    for table, bleu, chrf in zip(tables, words, letters, strict=True):
        table[:, BLEU_PART] = bleu
        table[:, CHRF_PART] = chrf
    tables[:, ~corpus.is_main()] = 0.0
    return tables[0], tables[1]


def _segment_bleurt(corpus: Corpus, scores: Mapping[str, float] | None) -> FloatArray:
    """Return (clips,) scores clipped to [0, 1]; an empty hypothesis is 0 whatever a model says."""
    if scores is None:
        return np.full(len(corpus.clip_ids), np.nan)
    listed = np.array([scores.get(clip_id, np.nan) for clip_id in corpus.clip_ids])
    empty = np.array([not hypothesis.strip() for hypothesis in corpus.hypotheses])
    return np.where(empty & ~np.isnan(listed), 0.0, np.clip(listed, 0.0, 1.0))


def _segment_pose(
    corpus: Corpus, poses: Poses | None, parameters: TranslationParameters
) -> FloatArray:
    """Return (clips,) pose scores of the main clips; NaN without a reference pose."""
    scores = np.full(len(corpus.clip_ids), np.nan)
    if poses is None:
        return scores
    _check_pose_clips(corpus, poses)
    for row in np.flatnonzero(corpus.is_main()):
        score = clip_pose_score(corpus.clip_ids[row], poses, parameters.pose)
        scores[row] = np.nan if score is None else score
    return scores


def _add_bleurt(table: FloatArray, corpus: Corpus, scores: FloatArray) -> None:
    main = corpus.is_main()
    _add_sums(table, np.where(main, scores, np.nan), (MAIN_BLEURT, MAIN_CLIPS))
    _add_sums(table, np.where(main, np.nan, scores), (CANARY_BLEURT, CANARY_CLIPS))


def _add_sums(table: FloatArray, values: FloatArray, columns: tuple[int, int]) -> None:
    known = ~np.isnan(values)
    table[known, columns[0]] = values[known]
    table[known, columns[1]] = 1.0


def _check_bleurt(corpus: Corpus, bleurt: SegmentScores | None) -> None:
    """Every clip has a true score; every main clip a deranged one, or none has."""
    if bleurt is None:
        return
    _check_coverage(bleurt.scores, corpus.clip_ids, set(corpus.clip_ids), "BLEURT score")
    if bleurt.deranged is not None:
        main = [c for c, is_main in zip(corpus.clip_ids, corpus.is_main(), strict=True) if is_main]
        _check_coverage(bleurt.deranged, main, set(corpus.clip_ids), "deranged BLEURT score")


def _check_coverage(
    given: Mapping[str, float], needed: Sequence[str], known: set[str], what: str
) -> None:
    for clip_id in needed:
        if clip_id not in given:
            raise MalformedDocument(f"clip {escape_untrusted(clip_id, 64)} has no {what}")
    for clip_id in given:
        if clip_id not in known:
            shown = escape_untrusted(clip_id, 64)
            raise MalformedDocument(f"clip {shown} has a {what} but is not in the exam")


def _check_pose_clips(corpus: Corpus, poses: Poses) -> None:
    known = set(corpus.clip_ids)
    for given, what in ((poses.hypothesis, "pose"), (poses.reference, "reference pose")):
        for clip_id in given:
            if clip_id not in known:
                shown = escape_untrusted(clip_id, 64)
                raise MalformedDocument(f"clip {shown} has a {what} but is not in the exam")
