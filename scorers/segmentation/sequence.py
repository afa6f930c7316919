"""Word error rates of the consumer's label stream, and its out-of-vocabulary predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from scorers.segmentation.corpus import OUT_OF_VOCABULARY, Corpus, Spans
from scorers.segmentation.counts import Counts, counts_of
from scorers.segmentation.matching import Pairs


def align(reference: str, hypothesis: str) -> tuple[int, int, int]:
    """Return substitutions, deletions and insertions of one shortest edit script.

    One character is one token. The split is not unique; this is rapidfuzz's alignment, and the
    scorer string says so. Only the sum and I - D are invariant.
    """
    operations = Levenshtein.editops(reference, hypothesis)
    surplus = len(hypothesis) - len(reference)
    if len(operations) == abs(surplus):
        return 0, max(-surplus, 0), max(surplus, 0)
    deletions = 0
    for tag, _, _ in operations.as_list():
        deletions += tag == "delete"
    insertions = deletions + surplus
    return len(operations) - deletions - insertions, deletions, insertions


def word_errors(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> tuple[int, int, int, int]:
    """Return pooled S, D, I and N of sequences of glosses, pair by pair.

    A pair with an empty reference adds insertions only. Raise ``ValueError`` when the two
    sides differ in length.
    """
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references but {len(hypotheses)} hypotheses")
    code_of = _CodePoints().__getitem__
    errors = [
        align("".join(map(code_of, reference)), "".join(map(code_of, hypothesis)))
        for reference, hypothesis in zip(references, hypotheses, strict=True)
    ]
    if not errors:
        return 0, 0, 0, 0
    substitutions, deletions, insertions = (sum(column) for column in zip(*errors, strict=True))
    return substitutions, deletions, insertions, sum(map(len, references))


class _CodePoints(dict[str, str]):
    """Give each new gloss the next code point, so that one character is one token."""

    def __missing__(self, gloss: str) -> str:
        self[gloss] = code = chr(len(self))
        return code


def sequence_counts(corpus: Corpus, pairs: Pairs) -> Counts:
    """Count S, D, I and N per clip, for all predictions and for the in-vocabulary ones.

    ``pairs`` are the overlapping pairs of all references and predictions. WER_IV leaves out
    what ``belongs_out_of_vocabulary`` names (seed paper, III-B). Without a consumer only those
    are counted. Predictions are in order of start, then end.
    """
    dropped = belongs_out_of_vocabulary(corpus, pairs)
    counts = counts_of(dropped=corpus.per_clip(corpus.predictions.clip[dropped]))
    if corpus.answer_token is None:
        return counts
    in_vocabulary = corpus.reference_token != OUT_OF_VOCABULARY
    references = _texts(
        corpus.references.chosen(in_vocabulary), corpus.reference_token[in_vocabulary], corpus.clips
    )
    kept = ~dropped
    every = _texts(corpus.predictions, corpus.answer_token, corpus.clips)
    inside = _texts(corpus.predictions.chosen(kept), corpus.answer_token[kept], corpus.clips)
    return counts | counts_of(
        wer_all=_clip_errors(references, every), wer_iv=_clip_errors(references, inside)
    )


def belongs_out_of_vocabulary(corpus: Corpus, pairs: Pairs) -> NDArray[np.bool_]:
    """Tell which predictions overlap an out-of-vocabulary sign more than any other sign.

    Overlap is frames of intersection; ties and predictions without overlap stay. Shape
    (predictions,).
    """
    outside = corpus.reference_token[pairs.reference] == OUT_OF_VOCABULARY
    best = np.zeros((2, corpus.predictions.clip.size), np.int64)
    np.maximum.at(best, (outside.astype(np.int64), pairs.prediction), pairs.intersection)
    return np.asarray(best[1] > best[0], np.bool_)


def _texts(spans: Spans, tokens: NDArray[np.int64], clips: int) -> list[str]:
    """Return each clip's tokens as one string, one code point a token.

    rapidfuzz compares code points natively; integers it would hash one by one.
    """
    text = tokens.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    ends = np.cumsum(np.bincount(spans.clip, minlength=clips)).tolist()
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _clip_errors(references: list[str], hypotheses: list[str]) -> NDArray[np.float64]:
    rows = [(*align(r, h), len(r)) for r, h in zip(references, hypotheses, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 4)
