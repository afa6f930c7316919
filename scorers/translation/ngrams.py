"""Clipped n-gram matches between sentences, counted exactly for a whole corpus at once.

An n-gram is packed into one integer (no hashing, so no collisions): code(n) = code(n - 1) x
alphabet + symbol. Where the next product could leave 63 bits, codes are first replaced by their
ranks. The key sentence x bound + code then makes "n-grams of one sentence" one sorted array, and
pairing hypotheses with permuted references is a second look-up in the same array: the references'
counts are permuted, never recomputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

_KEY_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Ragged:
    """Sentences of symbols, one after the other: ``symbols`` (sum of lengths,), ``lengths``."""

    symbols: IntArray
    lengths: IntArray

    def joined(self, other: Ragged) -> Ragged:
        """Append the sentences of another."""
        return Ragged(
            np.concatenate([self.symbols, other.symbols]),
            np.concatenate([self.lengths, other.lengths]),
        )

    def totals(self, order: int) -> IntArray:
        """Return how many n-grams of this order each sentence has."""
        return np.maximum(self.lengths - order + 1, 0)


def characters(sentences: Sequence[str]) -> Ragged:
    """Read sentences as code points, whitespace left out as chrF does."""
    bare = ["".join(sentence.split()) for sentence in sentences]
    encoded = "".join(bare).encode("utf-32-le", "surrogatepass")
    symbols = np.frombuffer(encoded, dtype="<u4").astype(np.int64)
    return Ragged(symbols, np.array([len(sentence) for sentence in bare], dtype=np.int64))


def words(sentences: Iterable[Sequence[str]], numbers: dict[str, int]) -> Ragged:
    """Read tokenised sentences as word numbers, adding new words to ``numbers``."""
    listed = [[numbers.setdefault(word, len(numbers)) for word in words] for words in sentences]
    symbols = np.array([number for sentence in listed for number in sentence], dtype=np.int64)
    return Ragged(symbols, np.array([len(sentence) for sentence in listed], dtype=np.int64))


def matches_by_order(
    hypotheses: Ragged, references: Ragged, max_order: int, pairings: Sequence[IntArray]
) -> Iterator[list[IntArray]]:
    """Count clipped matches for each order 1 … ``max_order``, under each pairing.

    ``pairings[p][i]`` is the reference that hypothesis i faces. Yields per order one array
    (hypotheses,) per pairing. Raise ``ValueError`` where a pairing does not give every
    hypothesis a reference: silent truncation would score a part of the corpus.
    """
    for pairing in pairings:
        if pairing.shape != hypotheses.lengths.shape:
            raise ValueError(f"{hypotheses.lengths.size} hypotheses, {pairing.size} references")
    sentences = max(hypotheses.lengths.size, references.lengths.size)
    for owners, codes, bound in _packed(hypotheses.joined(references), max_order, sentences):
        split = np.searchsorted(owners, hypotheses.lengths.size)
        asked = np.unique(owners[:split] * bound + codes[:split], return_counts=True)
        inside = owners[split:] - hypotheses.lengths.size
        held = np.unique(inside * bound + codes[split:], return_counts=True)
        yield [_matched(asked, held, pairing, bound) for pairing in pairings]


def _packed(
    sentences: Ragged, max_order: int, owners_bound: int
) -> Iterator[tuple[IntArray, IntArray, int]]:
    symbols, alphabet = _dense(sentences.symbols)
    owner_of = np.repeat(np.arange(sentences.lengths.size), sentences.lengths)
    codes, bound = symbols, alphabet
    for order in range(1, max_order + 1):
        if order > 1:
            if bound * alphabet * max(owners_bound, 1) > _KEY_LIMIT:
                codes, bound = _ranks(codes)
            codes = codes[:-1] * alphabet + symbols[order - 1 :] if codes.size else codes
            bound *= alphabet
        whole = owner_of[: codes.size] == owner_of[owner_of.size - codes.size :]
        yield owner_of[: codes.size][whole], codes[whole], bound


def _dense(symbols: IntArray) -> tuple[IntArray, int]:
    """Renumber symbols without gaps: a small alphabet keeps the codes small."""
    present = np.zeros(int(symbols.max(initial=0)) + 1, dtype=np.bool_)
    present[symbols] = True
    return (np.cumsum(present) - 1)[symbols], max(int(present.sum()), 1)


def _ranks(codes: IntArray) -> tuple[IntArray, int]:
    distinct, inverse = np.unique(codes, return_inverse=True)
    return inverse.astype(np.int64), max(int(distinct.size), 1)


def _matched(
    asked: tuple[IntArray, IntArray],
    held: tuple[IntArray, IntArray],
    pairing: IntArray,
    bound: int,
) -> IntArray:
    """Sum min(count in hypothesis, count in the faced reference) for each hypothesis."""
    keys, counts = asked
    held_keys, held_counts = held
    owners = keys // bound
    if held_keys.size == 0 or keys.size == 0:
        return np.zeros(pairing.size, dtype=np.int64)
    wanted = pairing[owners] * bound + (keys - owners * bound)
    places = np.minimum(np.searchsorted(held_keys, wanted), held_keys.size - 1)
    clipped = np.where(held_keys[places] == wanted, np.minimum(counts, held_counts[places]), 0)
    return np.bincount(owners, weights=clipped, minlength=pairing.size).astype(np.int64)
