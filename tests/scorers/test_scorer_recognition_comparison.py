"""Two runs side by side: paired interval, tie and gap flag."""

from __future__ import annotations

import pytest

from scorers.recognition import (
    Position,
    RecognitionParameters,
    compare,
    gap_flag,
    gap_limit,
    score,
    within_noise,
)
from scorers.recognition.synthetic import synthetic_answers, synthetic_exam

EXAM = synthetic_exam(3)
ANSWERS = synthetic_answers(EXAM, 3)
PARAMETERS = RecognitionParameters(resamples=400)


def worsened(every: int) -> dict[str, tuple[Position, ...]]:
    """Answer every n-th clip with nothing but UNKNOWN."""
    return {
        clip_id: tuple(Position(("UNKNOWN",)) for _ in signs) if number % every == 0 else signs
        for number, (clip_id, signs) in enumerate(ANSWERS.items())
    }


def test_a_floor_of_38_flags_gaps_above_54() -> None:
    assert round(100 * gap_limit(0.038), 1) == 5.4
    assert gap_flag(0.80, 0.745, 0.038)
    assert not gap_flag(0.80, 0.747, 0.038)


def test_the_published_rounds_are_not_flagged_and_a_better_final_can_be() -> None:
    assert not gap_flag(0.779, 0.775, 0.038)
    assert not gap_flag(0.179, 0.198, 0.038)
    assert gap_flag(0.70, 0.76, 0.038)


def test_rows_tie_within_the_larger_of_their_floors() -> None:
    assert within_noise(0.70, 0.735, floors=(0.02, 0.038))
    assert within_noise(0.735, 0.70, floors=(0.038, 0.02))
    assert not within_noise(0.70, 0.74, floors=(0.02, 0.038))


def test_identical_runs_have_no_difference_and_a_p_value_of_one() -> None:
    found = compare(EXAM.labels, ANSWERS, dict(ANSWERS), EXAM.vocabulary, PARAMETERS)
    assert (found.delta, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert (found.replicates, found.units) == (400, 200)


def test_a_clearly_better_run_wins_and_a_worse_challenger_never_does() -> None:
    ahead = compare(EXAM.labels, ANSWERS, worsened(4), EXAM.vocabulary, PARAMETERS)
    behind = compare(EXAM.labels, worsened(4), ANSWERS, EXAM.vocabulary, PARAMETERS)
    assert ahead.p_value == 1 / 401
    assert ahead.low > 0
    assert behind.p_value == 1.0
    assert (behind.delta, behind.low, behind.high) == pytest.approx(
        (-ahead.delta, -ahead.high, -ahead.low), abs=1e-12
    )


def test_the_difference_is_the_one_of_the_two_cards() -> None:
    other = worsened(10)
    found = compare(EXAM.labels, ANSWERS, other, EXAM.vocabulary, PARAMETERS)
    cards = [score(EXAM.labels, run, EXAM.vocabulary, PARAMETERS) for run in (ANSWERS, other)]
    values = [card.as_document()["public"]["macro_f1"] for card in cards]
    assert found.delta == pytest.approx(values[0] - values[1], abs=1e-12)


def test_pairing_sees_a_difference_that_the_floors_would_call_a_tie() -> None:
    other = worsened(40)
    found = compare(EXAM.labels, ANSWERS, other, EXAM.vocabulary, PARAMETERS)
    cards = [score(EXAM.labels, run, EXAM.vocabulary, PARAMETERS) for run in (ANSWERS, other)]
    first, second = (card.as_document()["public"] for card in cards)
    assert within_noise(
        first["macro_f1"],
        second["macro_f1"],
        floors=(first["macro_f1_floor"], second["macro_f1_floor"]),
    )
    assert (found.high - found.low) / 2 < first["macro_f1_floor"]
    assert found.low > 0
