"""Corpus BLEU-4 as sacreBLEU computes it, from additive counts (Papineni 2002; Post 2018).

Per segment ten counts: hypothesis length, reference length, matches of orders 1-4, n-grams of
orders 1-4. Their sum over any set of segments gives that set's corpus score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scorers.translation.ngrams import IntArray, matches_by_order, words
from scorers.translation.sacrebleu_version import sacrebleu_version

Tokenizer = Literal["13a", "none"]

BLEU_COLUMNS = 10
_ORDERS = 4


@cache
def _international() -> Callable[[str], str]:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - 0.05 s, for other tracks in vain

    tokenizer: Callable[[str], str] = BLEU(tokenize="13a").tokenizer
    return tokenizer


def bleu_signature(tokenizer: Tokenizer = "13a") -> str:
    """Return sacreBLEU's signature of the corpus score computed here."""
    return f"nrefs:1|case:mixed|eff:no|tok:{tokenizer}|smooth:exp|version:{sacrebleu_version()}"


def bleu_counts(
    hypotheses: Sequence[str],
    references: Sequence[str],
    pairings: Sequence[IntArray],
    tokenizer: Tokenizer = "13a",
) -> list[IntArray]:
    """Count each segment's statistics under each pairing; arrays (segments, 10).

    ``pairings[p][i]`` is the reference that hypothesis i faces.
    """
    tokenise = partial(_tokens, tokenizer=tokenizer)
    numbers: dict[str, int] = {}
    asked = words(map(tokenise, hypotheses), numbers)
    held = words(map(tokenise, references), numbers)
    tables = [np.zeros((len(hypotheses), BLEU_COLUMNS), dtype=np.int64) for _ in pairings]
    for table, pairing in zip(tables, pairings, strict=True):
        table[:, 0] = asked.lengths
        table[:, 1] = held.lengths[pairing]
        for order in range(1, _ORDERS + 1):
            table[:, 1 + _ORDERS + order] = asked.totals(order)
    for order, matched in enumerate(matches_by_order(asked, held, _ORDERS, pairings), start=1):
        for table, column in zip(tables, matched, strict=True):
            table[:, 1 + order] = column
    return tables


def _tokens(sentence: str, tokenizer: Tokenizer) -> list[str]:
    stripped = sentence.rstrip()
    return (_international()(stripped) if tokenizer == "13a" else stripped).split()


def bleu_from_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return corpus BLEU in [0, 1] for summed counts (..., 10): one score per leading index.

    Brevity penalty, exponential smoothing of orders without a match, no effective order: an
    order without any n-gram makes the score 0, as does a corpus without any match. sacreBLEU
    may return 100.00000000000004; the fraction is clipped to 1.
    """
    lengths, reference_lengths = counts[..., 0], counts[..., 1]
    correct, total = counts[..., 2 : 2 + _ORDERS], counts[..., 2 + _ORDERS :]
    halvings = np.cumsum(correct == 0, axis=-1)
    smoothed = np.where(correct == 0, np.exp2(-halvings), correct)
    defined = (total > 0).all(axis=-1) & (correct > 0).any(axis=-1)
    precisions = np.divide(smoothed, total, out=np.ones_like(smoothed), where=total > 0)
    ratio = np.divide(reference_lengths, lengths, out=np.ones_like(lengths), where=lengths > 0)
    log_penalty = np.minimum(1.0 - ratio, 0.0)
    scores = np.exp(log_penalty + np.log(precisions).mean(axis=-1))
    return np.where(defined, np.minimum(scores, 1.0), 0.0)
