"""The private part of the card: results per sign and what was taken for what."""

from __future__ import annotations

from collections import Counter

import numpy as np

from manifests.glosses import UNKNOWN
from scorers.cards import Figure
from scorers.recognition.answers import MISSING_ID, UNKNOWN_ID, Answers
from scorers.recognition.macro_f1 import SignCounts
from scorers.statistics.f1 import f1


def by_sign(answers: Answers, counts: SignCounts) -> Figure:
    """Return F1, support and counts of every sign with support in the exam."""
    reference = answers.reference
    vocabulary = reference.vocabulary
    names = [vocabulary[sign] for sign in np.flatnonzero(reference.support)]
    figures: dict[str, Figure] = {}
    columns = (counts.hits, counts.predicted, counts.support)
    rows = zip(names, *(column.astype(int).tolist() for column in columns), strict=True)
    for name, hits, predicted, support in rows:
        fp, fn = predicted - hits, support - hits
        figures[name] = {
            "f1": f1(hits, fp, fn),
            "support": support,
            "tp": hits,
            "fp": fp,
            "fn": fn,
        }
    return figures


def confusion(answers: Answers) -> Figure:
    """Return [label, answer, count] of every pair on the scored positions, the frequent first.

    A missing answer is null; diagonal entries are the right ones.
    """
    names: dict[int, str | None] = {number: gloss for gloss, number in answers.gloss_ids.items()}
    names |= {MISSING_ID: None, UNKNOWN_ID: UNKNOWN}
    scored = answers.reference.scored
    labels, given = answers.reference.label[scored].tolist(), answers.first[scored].tolist()
    pairs = Counter((names[a], names[b]) for a, b in zip(labels, given, strict=True))
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0][0] or "", item[0][1] or ""))
    return [[label, answer, n] for (label, answer), n in ordered]
