"""Figures on whole gloss sequences: BLEU-1, BLEU-2 and the Levenshtein diagnostic.

Every position counts, in any vocabulary. A gloss is one token, whatever characters it holds. A
missing position is absent from the sequence; UNKNOWN is a token that never matches.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scorers.cards import Figure, NotComputed
from scorers.recognition.answers import MISSING_ID, UNKNOWN_ID, Answers

_GLOSS_BITS = 22


def bleu(answers: Answers, order: int) -> Figure:
    """Return corpus BLEU of cumulative n-grams up to ``order`` with the brevity penalty.

    Equals sacreBLEU with ``tokenize="none"``, ``smooth_method="none"``,
    ``max_ngram_order=order`` and no effective order, divided by 100 (Papineni et al. 2002).
    """
    reference = answers.reference
    if reference.lengths.max() < order:
        return NotComputed(f"no clip has {order} positions or more")
    answered = answers.first != MISSING_ID
    said, said_clip = answers.first[answered], reference.clip[answered]
    logs: list[float] = []
    for n in range(1, order + 1):
        wanted = _ngrams(reference.label, reference.clip, n)
        given = _ngrams(said, said_clip, n)
        matched = _clipped_matches(given, wanted)
        if matched == 0:
            return 0.0
        logs.append(math.log(matched / given.size))
    brevity = min(0.0, 1 - reference.label.size / said.size)
    return min(1.0, math.exp(brevity + sum(logs) / order))


def _ngrams(tokens: NDArray[np.int64], clip: NDArray[np.int64], order: int) -> NDArray[np.int64]:
    """Return one number for each n-gram inside a clip, equal for equal n-grams of one clip.

    Clip and tokens are the digits; 2**16 clips, and 2**22 glosses as bigrams, fit into int64.
    """
    count = max(0, tokens.size - order + 1)
    inside = clip[:count] == clip[order - 1 :][:count]
    number = clip[:count].copy()
    for k in range(order):
        number = (number << _GLOSS_BITS) + tokens[k : k + count] - UNKNOWN_ID
    numbers: NDArray[np.int64] = number[inside]
    return numbers


def _clipped_matches(given: NDArray[np.int64], wanted: NDArray[np.int64]) -> int:
    """Sum, over the distinct n-grams of each clip, the smaller of the two counts."""
    distinct, meant = np.unique(wanted, return_counts=True)
    place = np.minimum(np.searchsorted(distinct, given), distinct.size - 1)
    said = np.bincount(place[distinct[place] == given], minlength=distinct.size)
    return int(np.minimum(said, meant).sum())


def levenshtein_rate(answers: Answers) -> Figure:
    """Return edits between the gloss sequences over the reference's positions, a diagnostic.

    It can shift a sequence and so forgive what the position-wise rate does not.
    """
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - keeps the package quick to import

    reference = answers.reference
    if not reference.label.size:
        return NotComputed("the labels have no position")
    cuts = np.cumsum(reference.lengths)[:-1]
    labels = np.split(reference.label, cuts)
    said = np.split(answers.first, cuts)
    edits = sum(
        Levenshtein.distance(meant.tolist(), given[given != MISSING_ID].tolist())
        for meant, given in zip(labels, said, strict=True)
    )
    return float(edits / reference.label.size)
