"""What the consumer can still use: coverage, retained evidence, purity, recognised references."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scorers.segmentation.corpus import OUT_OF_VOCABULARY, Corpus
from scorers.segmentation.counts import Counts, counts_of
from scorers.segmentation.matching import Pairs, one_to_one, overlapping_pairs
from scorers.segmentation.parameters import Matcher, SegmentationParameters


def segment_counts(corpus: Corpus, pairs: Pairs, parameters: SegmentationParameters) -> Counts:
    """Count segments, and matched pairs that reach each IoU threshold, per clip (mF1S)."""
    matched = one_to_one(pairs, corpus.references.clip[pairs.reference], parameters.matcher)
    hits = _reaching(matched, parameters)
    clip = corpus.references.clip[matched.reference]
    return counts_of(
        segment_hits=np.stack([corpus.per_clip(clip, column) for column in hits.T], axis=1),
        references=corpus.per_clip(corpus.references.clip),
        predictions=corpus.per_clip(corpus.predictions.clip),
    )


def _reaching(matched: Pairs, parameters: SegmentationParameters) -> NDArray[np.bool_]:
    if parameters.matcher is not Matcher.RENZ:
        return matched.reaching(parameters.f1s_percent)
    return matched.iou[:, None] > renz_thresholds(parameters.f1s_percent)


def renz_thresholds(percents: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a regular grid as float64 steps, with the rounding that the published code has.

    For 40 to 75 by 5 it is ``arange(.4, .76, .05)``, which holds 0.6499999999999999. An
    irregular grid is divided by 100 exactly.
    """
    steps = set(np.diff(percents).tolist())
    if len(steps) != 1:
        return np.array(percents) / 100
    step = steps.pop() / 100
    return np.arange(percents[0] / 100, percents[-1] / 100 + step / 5, step)


def in_vocabulary_match(corpus: Corpus, matcher: Matcher) -> Pairs:
    """Match the in-vocabulary references with all predictions, IoU > 0, blind to labels.

    The references of the pairs are numbered among all references of the corpus.
    """
    places = np.flatnonzero(corpus.reference_token != OUT_OF_VOCABULARY)
    references = corpus.references.chosen(corpus.reference_token != OUT_OF_VOCABULARY)
    pairs = overlapping_pairs(references, corpus.predictions, corpus.n_frames)
    matched = one_to_one(pairs, references.clip[pairs.reference], matcher)
    return Pairs(places[matched.reference], matched.prediction, matched.intersection, matched.union)


def recovery_counts(corpus: Corpus, parameters: SegmentationParameters) -> Counts:
    """Count, per clip, what is recovered of the in-vocabulary references.

    C is the share of a reference that its clip retains, Q the share of the clip that is
    reference; both are summed over matched pairs (seed paper, III-A). With a consumer,
    ``recognised`` is K(0+) and ``utility_hits`` K(t) on the utility grid.
    """
    matched = in_vocabulary_match(corpus, parameters.matcher)
    clip = corpus.references.clip[matched.reference]
    retained = matched.intersection / corpus.references.length[matched.reference]
    purity = matched.intersection / corpus.predictions.length[matched.prediction]
    in_vocabulary = corpus.reference_token != OUT_OF_VOCABULARY
    counts = counts_of(
        iv_references=corpus.per_clip(corpus.references.clip[in_vocabulary]),
        matched=corpus.per_clip(clip),
        retained=corpus.per_clip(clip, retained),
        purity=corpus.per_clip(clip, purity),
    )
    if corpus.answer_token is None:
        return counts
    right = corpus.reference_token[matched.reference] == corpus.answer_token[matched.prediction]
    hits = matched.reaching(parameters.utility_percent) & right[:, None]
    return counts | counts_of(
        recognised=corpus.per_clip(clip, right),
        utility_hits=np.stack([corpus.per_clip(clip, column) for column in hits.T], axis=1),
    )
