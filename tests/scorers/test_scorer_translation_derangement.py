"""The derangement of the grounding gate: of values, the same for everybody, without luck."""

from __future__ import annotations

import hashlib
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from scorers.translation.derangement import derange, normalised_reference

GOLDEN = "be1875de9b5040ff0dc151ada20f9a778749f707546a080737c6d9ad03f49804"


def multiset(seed: int) -> tuple[list[str], list[str]]:
    draw = random.Random(seed)
    n = draw.randint(2, 40)
    texts = [f"sentence {draw.randint(0, max(1, n // draw.randint(1, 4)))}" for _ in range(n)]
    return [f"{i:03}" for i in range(n)], texts


def largest_group(texts: list[str]) -> int:
    return max(Counter(map(normalised_reference, texts)).values())


def test_no_clip_of_a_thousand_random_corpora_meets_its_own_sentence() -> None:
    deranged = refused = 0
    for seed in range(1_000):
        ids, texts = multiset(seed)
        if 2 * largest_group(texts) > len(texts):
            with pytest.raises(MalformedDocument, match="no derangement exists"):
                derange(ids, texts)
            refused += 1
            continue
        faced = derange(ids, texts)
        assert sorted(faced) == list(range(len(ids)))
        assert all(texts[i] != texts[j] for i, j in enumerate(faced))
        deranged += 1
    assert min(deranged, refused) > 50


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), key=st.text(max_size=4))
def test_row_order_changes_no_pair(seed: int, key: str) -> None:
    ids, texts = multiset(seed)
    if 2 * largest_group(texts) > len(texts):
        ids, texts = [*ids, *(f"x{i}" for i in range(99))], [*texts, *map(str, range(99))]
    pairs = {ids[i]: ids[j] for i, j in enumerate(derange(ids, texts, key))}
    order = random.Random(seed).sample(range(len(ids)), len(ids))
    shuffled_ids, shuffled = [ids[i] for i in order], [texts[i] for i in order]
    again = derange(shuffled_ids, shuffled, key)
    assert pairs == {shuffled_ids[i]: shuffled_ids[j] for i, j in enumerate(again)}


def test_a_majority_sentence_cannot_be_deranged() -> None:
    with pytest.raises(MalformedDocument, match="2 of 3 clips share one sentence"):
        derange(["a", "b", "c"], ["Hello.", " hello. ", "Bye."])
    assert derange(["a", "b", "c", "d"], ["Hi", "hi", "Bye", "So"]) != [0, 1, 2, 3]


def test_a_single_clip_cannot_be_deranged() -> None:
    with pytest.raises(MalformedDocument, match="1 of 1 clips"):
        derange(["a"], ["Hello."])


def test_equal_means_equal_after_whitespace_and_case() -> None:
    assert normalised_reference("  Where\u00a0IS\tthe\nStraße ") == "where is the strasse"
    assert normalised_reference("Hello.") != normalised_reference("Hello")


def test_the_key_chooses_another_derangement() -> None:
    ids, texts = [f"{i:02}" for i in range(20)], [f"sentence {i}" for i in range(20)]
    assert derange(ids, texts, "first") != derange(ids, texts, "second")


def test_the_order_is_that_of_the_published_recipe() -> None:
    texts = {"1": "a a", "2": "b", "3": "A  a", "4": "c", "5": "b"}

    def rank(clip_id: str) -> tuple[str, str]:
        material = b"key\0" + " ".join(texts[clip_id].split()).casefold().encode()
        return hashlib.sha256(material).hexdigest(), clip_id

    order = sorted(texts, key=rank)
    expected = {clip: order[(i + 2) % 5] for i, clip in enumerate(order)}
    ids = list(texts)
    faced = derange(ids, list(texts.values()), "key")
    assert {ids[i]: ids[j] for i, j in enumerate(faced)} == expected


def test_the_derangement_of_a_fixed_corpus_never_changes() -> None:
    ids = [f"{i:04}" for i in range(200)]
    texts = [f"Sentence number {i % 61}, é\u00a0{i % 7}." for i in range(200)]
    faced = ",".join(ids[j] for j in derange(ids, texts))
    assert hashlib.sha256(faced.encode()).hexdigest() == GOLDEN


@pytest.mark.parametrize(
    ("ids", "texts", "complaint"),
    [
        (["a", "b"], ["x"], "2 clips but 1 references"),
        (["a", "a"], ["x", "y"], "distinct clip ids"),
    ],
)
def test_rows_that_do_not_fit_are_refused(ids: list[str], texts: list[str], complaint: str) -> None:
    with pytest.raises(MalformedDocument, match=complaint):
        derange(ids, texts)
