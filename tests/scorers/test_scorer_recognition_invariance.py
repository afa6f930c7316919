"""What must not change a recognition card: orders, names of glosses, how a corpus is cut."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.recognition import (
    UNKNOWN,
    ClipLabels,
    Position,
    Predictions,
    RecognitionParameters,
    score,
)
from scorers.recognition.answers import encode_answers
from scorers.recognition.macro_f1 import SignCounts, clip_counts
from scorers.recognition.reference import encode_labels
from scorers.recognition.synthetic import synthetic_answers, synthetic_exam

EXAM = synthetic_exam(7)
ANSWERS = synthetic_answers(EXAM, 7)
PARAMETERS = RecognitionParameters(resamples=100, held_out_signer=EXAM.held_out_signer)
CARD = score(EXAM.labels, ANSWERS, EXAM.vocabulary, PARAMETERS).as_document()


def assert_close(found: Any, expected: Any) -> None:
    """Compare two documents, floats to 1e-12."""
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for key in expected:
            assert_close(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-12)
    else:
        assert found == expected


@given(st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_the_order_of_rows_and_of_the_vocabulary_never_reaches_the_card(seed: int) -> None:
    shuffle = random.Random(seed)
    labels = shuffle.sample(EXAM.labels, len(EXAM.labels))
    vocabulary = shuffle.sample(EXAM.vocabulary, len(EXAM.vocabulary))
    answers = dict(shuffle.sample(list(ANSWERS.items()), len(ANSWERS)))
    assert score(labels, answers, vocabulary, PARAMETERS).as_document() == CARD


@given(st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_renaming_every_gloss_leaves_every_public_figure(seed: int) -> None:
    known = {g for clip in EXAM.labels for g in clip.glosses} | set(EXAM.vocabulary)
    said = {c for sign in ANSWERS.values() for p in sign for c in p.candidates}
    glosses = sorted(known | said)
    numbers = random.Random(seed).sample(range(len(glosses)), len(glosses))
    renamed = {g: f"G{n:05}" for g, n in zip(glosses, numbers, strict=True)} | {UNKNOWN: UNKNOWN}
    labels = [
        ClipLabels(c.clip_id, c.signer_id, tuple(renamed[g] for g in c.glosses))
        for c in EXAM.labels
    ]
    answers: Predictions = {
        clip_id: [Position(tuple(renamed[g] for g in p.candidates), p.confidence) for p in signs]
        for clip_id, signs in ANSWERS.items()
    }
    vocabulary = [renamed[g] for g in EXAM.vocabulary]
    found = score(labels, answers, vocabulary, PARAMETERS).as_document()
    assert_close(found["public"], CARD["public"])
    assert {renamed[sign] for sign in CARD["private"]["by_sign"]} == set(
        found["private"]["by_sign"]
    )


@given(st.floats(0.1, 5))
@settings(max_examples=20, deadline=None)
def test_only_the_order_of_confidences_counts(power: float) -> None:
    # Two-decimal confidences stay apart under these powers, so ties stay ties.
    answers: Predictions = {
        clip_id: [Position(p.candidates, (p.confidence or 0.0) ** power) for p in signs]
        for clip_id, signs in ANSWERS.items()
    }
    found = score(EXAM.labels, answers, EXAM.vocabulary, PARAMETERS).as_document()
    assert found["public"] == CARD["public"]


def test_the_order_of_tied_positions_never_matters() -> None:
    # The same clips under reversed ids: another order of rows, the same set of positions.
    labels = [
        ClipLabels(f"{9999 - int(c.clip_id):04}", c.signer_id, c.glosses) for c in EXAM.labels
    ]
    answers = {f"{9999 - int(clip_id):04}": signs for clip_id, signs in ANSWERS.items()}
    found = score(labels, answers, EXAM.vocabulary, PARAMETERS).as_document()["public"]
    for name in set(CARD["public"]) - {"macro_f1_floor"}:  # other clips are drawn
        assert_close(found[name], CARD["public"][name])
    assert found["macro_f1_floor"] == pytest.approx(CARD["public"]["macro_f1_floor"], rel=0.5)


@given(st.sets(st.integers(0, 199)))
@settings(max_examples=20, deadline=None)
def test_the_counts_of_two_halves_add_up_to_those_of_the_corpus(half: set[int]) -> None:
    reference = encode_labels(EXAM.labels, EXAM.vocabulary)
    clips = clip_counts(encode_answers(reference, ANSWERS))
    total = clips.total()
    inside = np.isin(np.arange(200), sorted(half))
    parts = [
        SignCounts(clips.hits[kept], clips.predicted[kept], clips.support[kept]).total()
        for kept in (inside, ~inside)
    ]
    assert (parts[0].hits + parts[1].hits == total.hits).all()
    assert (parts[0].predicted + parts[1].predicted == total.predicted).all()
    assert (parts[0].support + parts[1].support == total.support).all()


def test_scoring_twice_gives_the_same_document() -> None:
    assert score(EXAM.labels, ANSWERS, EXAM.vocabulary, PARAMETERS).as_document() == CARD
