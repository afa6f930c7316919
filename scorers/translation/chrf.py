"""Corpus chrF2 as sacreBLEU computes it, from additive counts (Popović 2015).

Per segment 18 counts: for character orders 1-6 the hypothesis's n-grams, the reference's and the
matches. Precisions and recalls are averaged over the orders, then combined with beta = 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scorers.translation.ngrams import IntArray, characters, matches_by_order
from scorers.translation.sacrebleu_version import sacrebleu_version

CHRF_COLUMNS = 18
_ORDERS = 6
_BETA_SQUARED = 4


def chrf_signature() -> str:
    """Return sacreBLEU's signature of the corpus score computed here."""
    return f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu_version()}"


def chrf_counts(
    hypotheses: Sequence[str], references: Sequence[str], pairings: Sequence[IntArray]
) -> list[IntArray]:
    """Count each segment's statistics under each pairing; arrays (segments, 18).

    Where a reference is too short for an order, the hypothesis's n-grams of that order do not
    count either, as in sacreBLEU.
    """
    asked, held = characters(hypotheses), characters(references)
    tables = [np.zeros((len(hypotheses), _ORDERS, 3), dtype=np.int64) for _ in pairings]
    for order, matched in enumerate(matches_by_order(asked, held, _ORDERS, pairings), start=1):
        for table, pairing, column in zip(tables, pairings, matched, strict=True):
            available = held.totals(order)[pairing]
            table[:, order - 1, 0] = np.where(available > 0, asked.totals(order), 0)
            table[:, order - 1, 1] = available
            table[:, order - 1, 2] = column
    return [table.reshape(len(hypotheses), CHRF_COLUMNS) for table in tables]


def chrf_from_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return corpus chrF2 in [0, 1] for summed counts (..., 18): one score per leading index."""
    by_order = counts.reshape(*counts.shape[:-1], _ORDERS, 3)
    asked, held, matched = by_order[..., 0], by_order[..., 1], by_order[..., 2]
    effective = (asked > 0) & (held > 0)
    orders = np.maximum(effective.sum(axis=-1), 1)
    zeros = np.zeros_like(matched)
    precision = np.divide(matched, asked, out=zeros.copy(), where=effective).sum(-1) / orders
    recall = np.divide(matched, held, out=zeros, where=effective).sum(-1) / orders
    denominator = _BETA_SQUARED * precision + recall
    score: NDArray[np.float64] = np.divide(
        (1 + _BETA_SQUARED) * precision * recall,
        denominator,
        out=np.zeros_like(denominator),
        where=denominator > 0,
    )
    return score
