"""BLEU and chrF from additive counts, with sacreBLEU as the oracle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from scorers.translation.bleu import Tokenizer, bleu_counts, bleu_from_counts, bleu_signature
from scorers.translation.chrf import chrf_counts, chrf_from_counts, chrf_signature
from scorers.translation.ngrams import IntArray, characters, matches_by_order, words

Count = Callable[[list[str], list[str], list[IntArray]], list[IntArray]]

WORDS = [
    "How",
    "old",
    "are",
    "you",
    "?",
    "you.",
    "3,5",
    "1.",
    "POINTER_RIGHT",
    "it's",
    "-",
    "&amp;",
]
SENTENCES = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    st.text(max_size=12),
    st.text(alphabet="ab c\u00a0\u0301é\U0001f600", max_size=14),
)
REFERENCES = SENTENCES.filter(lambda text: bool(text.split()))
CORPORA = st.lists(st.tuples(SENTENCES, REFERENCES), min_size=1, max_size=7)
SHORT = ["", "a", "ab", "abc def", "abcdef ghi"]


def straight(size: int) -> list[IntArray]:
    return [np.arange(size)]


def ours(hypotheses: list[str], references: list[str]) -> tuple[float, float]:
    pairing = straight(len(hypotheses))
    (bleu,), (chrf,) = (
        bleu_counts(hypotheses, references, pairing),
        chrf_counts(hypotheses, references, pairing),
    )
    return (
        float(bleu_from_counts(bleu.sum(axis=0).astype(np.float64))),
        float(chrf_from_counts(chrf.sum(axis=0).astype(np.float64))),
    )


def theirs(hypotheses: list[str], references: list[str]) -> tuple[float, float]:
    bleu = BLEU().corpus_score(hypotheses, [references]).score
    chrf = CHRF().corpus_score(hypotheses, [references]).score
    return min(bleu / 100, 1.0), chrf / 100


@settings(max_examples=300, deadline=None)
@given(corpus=CORPORA)
def test_summed_counts_give_sacrebleus_corpus_scores(corpus: list[tuple[str, str]]) -> None:
    hypotheses, references = [row[0] for row in corpus], [row[1] for row in corpus]
    assert ours(hypotheses, references) == pytest.approx(theirs(hypotheses, references), abs=1e-11)


@pytest.mark.parametrize("hypothesis", SHORT)
@pytest.mark.parametrize("reference", SHORT[1:])
def test_sentences_too_short_for_an_order_count_as_in_sacrebleu(
    hypothesis: str, reference: str
) -> None:
    hypotheses, references = [hypothesis, "b c d e f"], [reference, "b c d e g"]
    assert ours(hypotheses, references) == pytest.approx(theirs(hypotheses, references), abs=1e-12)


def test_a_perfect_corpus_scores_exactly_one() -> None:
    sentences = ["the cat sat on the mat today", "one two three four five six seven"]
    assert ours(sentences, sentences) == (1.0, 1.0)


def test_an_empty_system_scores_zero() -> None:
    assert ours(["", " "], ["one two three four five", "six"]) == (0.0, 0.0)


def test_signatures_are_sacrebleus_own() -> None:
    bleu, chrf = BLEU(), CHRF()
    bleu.corpus_score(["a"], [["a"]])
    chrf.corpus_score(["a"], [["a"]])
    assert bleu_signature() == str(bleu.get_signature())
    assert chrf_signature() == str(chrf.get_signature())
    assert bleu_signature("none") == bleu_signature().replace("tok:13a", "tok:none")


@settings(max_examples=60, deadline=None)
@given(corpus=CORPORA, seed=st.integers(0, 1000))
def test_row_order_changes_no_score(corpus: list[tuple[str, str]], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(corpus))
    rows = [corpus[i] for i in order]
    assert ours([h for h, _ in corpus], [r for _, r in corpus]) == ours(
        [h for h, _ in rows], [r for _, r in rows]
    )


@pytest.mark.parametrize("count", [bleu_counts, chrf_counts])
@settings(max_examples=60, deadline=None)
@given(corpus=CORPORA, cut=st.integers(0, 7))
def test_splitting_a_corpus_and_adding_its_counts_changes_nothing(
    count: Count, corpus: list[tuple[str, str]], cut: int
) -> None:
    def counted(rows: list[tuple[str, str]]) -> IntArray:
        return count([h for h, _ in rows], [r for _, r in rows], straight(len(rows)))[0]

    whole = counted(corpus)
    parts = np.concatenate([counted(corpus[:cut]), counted(corpus[cut:])])
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("count", [bleu_counts, chrf_counts])
@settings(max_examples=60, deadline=None)
@given(corpus=CORPORA, seed=st.integers(0, 1000))
def test_permuting_the_references_counts_is_counting_the_permuted_references(
    count: Count, corpus: list[tuple[str, str]], seed: int
) -> None:
    hypotheses, references = [row[0] for row in corpus], [row[1] for row in corpus]
    order = np.random.default_rng(seed).permutation(len(corpus))
    permuted = count(hypotheses, references, [order])[0]
    direct = count(hypotheses, [references[i] for i in order], straight(len(corpus)))[0]
    assert np.array_equal(permuted, direct)


def test_a_huge_alphabet_is_counted_without_collisions() -> None:
    random = np.random.default_rng(0)
    letters = [chr(0x4E00 + i) for i in range(20_000)]
    references = ["".join(random.choice(letters, 40)) for _ in range(250)]
    hypotheses = [text[:25] + "".join(random.choice(letters, 15)) for text in references]
    assert ours(hypotheses, references) == pytest.approx(theirs(hypotheses, references), abs=1e-12)


@pytest.mark.parametrize("tokenizer", ["13a", "none"])
def test_a_directional_gloss_is_one_token_only_without_the_english_tokenizer(
    tokenizer: Tokenizer,
) -> None:
    (counts,) = bleu_counts(["POINTER_RIGHT"], ["POINTER_RIGHT"], straight(1), tokenizer)
    assert counts[0, 0] == (1 if tokenizer == "none" else 3)


def test_a_pairing_that_leaves_hypotheses_out_is_refused() -> None:
    two, one = characters(["ab", "cd"]), characters(["ab"])
    with pytest.raises(ValueError, match="2 hypotheses, 1 references"):
        list(matches_by_order(two, one, 2, [np.arange(1)]))


def test_words_are_numbered_alike_on_both_sides() -> None:
    numbers: dict[str, int] = {}
    first, second = words([["a", "b"]], numbers), words([["b", "c"], []], numbers)
    assert first.symbols.tolist() == [0, 1]
    assert second.symbols.tolist() == [1, 2]
    assert second.lengths.tolist() == [2, 0]
