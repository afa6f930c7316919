"""Each rule of the exam on the smallest case that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from scorers.cards import ScoreCard
from scorers.recognition import (
    UNKNOWN,
    ClipLabels,
    Position,
    RecognitionParameters,
    score,
)
from scorers.recognition.abstention import CURVE_STEPS
from scorers.recognition.card import PUBLIC_FIGURES

VOCABULARY = ("YOU", "I", "OLD", "A", "B", "C", "D", "E", "POINTER_RIGHT")
FEW = RecognitionParameters(resamples=50)


def said(*glosses: str, confidence: float | None = None) -> tuple[Position, ...]:
    return tuple(Position((gloss,), confidence) for gloss in glosses)


def one_clip(
    glosses: str,
    answers: tuple[Position, ...],
    parameters: RecognitionParameters = FEW,
) -> ScoreCard:
    labels = [ClipLabels("0001", "ALPHA", tuple(glosses.split()))]
    return score(labels, {"0001": answers}, VOCABULARY, parameters)


def public(card: ScoreCard) -> dict[str, Any]:
    return dict(card.as_document()["public"])


def test_ger_compares_positions_and_forgives_no_shift() -> None:
    found = public(one_clip("A B C D E", said(*"XABCD")))
    assert found["ger"] == 1.0
    assert found["ger_levenshtein"] == 0.4


def test_a_gloss_with_an_underscore_is_one_bleu_token() -> None:
    assert public(one_clip("POINTER_RIGHT", said("POINTER_RIGHT")))["bleu1"] == 1.0
    found = public(one_clip("POINTER_RIGHT YOU", said("POINTER_RIGHT", "I")))
    assert found["bleu1"] == 0.5  # three of four tokens would match if "_" split the gloss


def test_a_gloss_said_more_often_than_it_stands_in_the_clip_matches_only_so_often() -> None:
    assert public(one_clip("YOU I OLD A", said(*["YOU"] * 4)))["bleu1"] == 0.25


def test_an_answer_outside_the_vocabulary_adds_no_class_and_no_false_positive() -> None:
    card = one_clip("YOU I", said("YOU", "TREE"))
    assert public(card)["macro_f1"] == 0.5
    assert set(card.as_document()["private"]["by_sign"]) == {"YOU", "I"}


def test_an_answer_outside_the_scored_tokens_is_no_false_positive_of_a_sign() -> None:
    card = one_clip("YOU TREE", said("YOU", "YOU"))
    assert public(card)["macro_f1"] == 1.0
    assert public(card)["false_alarms"] == 1.0


def test_a_missing_position_is_wrong_and_shortens_the_bleu_sequence() -> None:
    found = public(one_clip("YOU I OLD YOU", said("YOU", "I")))
    assert found["top1"] == found["ger"] == 0.5
    assert found["bleu1"] == pytest.approx(0.36787944117144233)  # exp(1 - 4/2), all matched


def test_unknown_is_wrong_and_never_matches_but_keeps_the_length() -> None:
    found = public(one_clip("YOU I", said("YOU", UNKNOWN)))
    assert found["top1"] == 0.5
    assert found["bleu1"] == 0.5
    outside = public(one_clip("YOU TREE", said("YOU", UNKNOWN)))
    assert outside["false_alarms"] == 0.0


def test_unknown_first_is_wrong_for_top_three_as_well() -> None:
    assert public(one_clip("YOU", (Position((UNKNOWN, "YOU")),)))["top3"] == 0.0


def test_top_three_looks_at_every_candidate_and_top_one_at_the_first() -> None:
    answers = (Position(("I", "I", "YOU")), Position(("OLD", "I")))
    found = public(one_clip("YOU I", answers))
    assert (found["top1"], found["top3"]) == (0.0, 1.0)


def test_unknown_with_full_confidence_still_ranks_last() -> None:
    answers = (Position((UNKNOWN,), 1.0), *said("I", "OLD", "YOU", "YOU", confidence=0.1))
    found = public(one_clip("YOU I OLD YOU YOU", answers))["abstention"]
    assert found["accuracy_at_80"] == 1.0
    assert found["coverage_at_90"] == 0.8
    assert found["auroc_right_wrong"] == 1.0


def test_a_missing_position_ranks_last_too() -> None:
    found = public(one_clip("I OLD YOU YOU A", said("I", "OLD", "YOU", "YOU", confidence=0.0)))
    assert found["abstention"]["accuracy_at_80"] == 1.0


@pytest.mark.parametrize("confidence", [None, 0.0, 0.7, 1.0])
def test_a_flat_confidence_earns_nothing(confidence: float | None) -> None:
    answers = said("YOU", "I", "A", "B", "OLD", confidence=confidence)
    found = public(one_clip("YOU I OLD OLD OLD", answers))["abstention"]
    assert found["aurc"] == pytest.approx(0.4)
    assert found["accuracy_at_80"] == pytest.approx(0.6)
    assert found["coverage_at_90"] == 0.0
    assert found["auroc_right_wrong"] == 0.5


def test_an_answer_without_confidence_ranks_below_the_others_and_above_unknown() -> None:
    answers = (*said("YOU", "I", confidence=0.2), *said("OLD"), *said(UNKNOWN, confidence=1))
    found = public(one_clip("A I OLD YOU", answers))["abstention"]
    assert [point["risk"] for point in found["curve"][4::5]] == pytest.approx(
        [1 / 2, 1 / 2, 1 / 3, 1 / 2]
    )


def test_coverage_at_90_takes_the_largest_share_of_a_curve_that_rises_again() -> None:
    # Risk: right x 9, wrong x 2 (9/11 < .9), right x 9 (18/20 = .9 exactly), wrong.
    truth = [True] * 9 + [False] * 2 + [True] * 9 + [False]
    answers = tuple(
        Position(("YOU" if right else "I",), 1 - k / 100) for k, right in enumerate(truth)
    )
    found = public(one_clip(" ".join(["YOU"] * 21), answers))["abstention"]
    assert found["coverage_at_90"] == pytest.approx(20 / 21)


def test_false_alarms_at_the_threshold_count_with_the_fraction_of_the_cut_group() -> None:
    # 5 scored positions, so 80% is 4: two at .9 and 2/3 of the three at .5.
    answers = (
        *said("YOU", "YOU", confidence=0.9),
        *said("YOU", "YOU", "YOU", confidence=0.5),
        *said("I", confidence=0.95),
        *said("I", confidence=0.5),
        *said("I", confidence=0.4),
        *said("SHRUB", confidence=1.0),
    )
    found = public(one_clip("YOU YOU YOU YOU YOU TREE TREE TREE TREE", answers))
    assert found["abstention"]["false_alarms_at_80"] == pytest.approx((1 + 2 / 3) / 4)
    assert found["false_alarms"] == 0.75


def test_the_published_curve_is_too_coarse_to_read_labels_out_of_it() -> None:
    answers = tuple(Position(("YOU",), k / 100) for k in range(100))
    found = public(one_clip(" ".join(["YOU", "I"] * 50), answers))["abstention"]["curve"]
    assert len(found) == CURVE_STEPS == 20
    assert set(found[0]) == {"coverage", "risk"}
    assert (found[-1]["coverage"], found[-1]["risk"]) == (1.0, 0.5)


def test_long_sentences_share_one_bin() -> None:
    labels = [
        ClipLabels("a", "ALPHA", ("YOU",) * 12),
        ClipLabels("b", "ALPHA", ("YOU",) * 10),
        ClipLabels("c", "ALPHA", ("YOU", "TREE", "TREE")),
        ClipLabels("d", "ALPHA", ("TREE",)),
    ]
    answers = {"a": said(*["YOU"] * 12), "b": said(*["I"] * 10), "c": said("YOU"), "d": said("I")}
    assert public(score(labels, answers, VOCABULARY, FEW))["top1_by_length"] == {
        "3": {"n": 1, "top1": 1.0},
        "10+": {"n": 22, "top1": 12 / 22},
    }


def test_the_held_out_signer_is_scored_apart() -> None:
    labels = [ClipLabels("a", "ALPHA", ("YOU",)), ClipLabels("b", "ECHO", ("YOU", "I", "TREE"))]
    answers = {"a": said("I"), "b": said("YOU", "YOU", "TREE")}
    named = RecognitionParameters(resamples=10, held_out_signer="ECHO")
    found = public(score(labels, answers, VOCABULARY, named))["held_out"]
    assert (found["n"], found["top1"]) == (2, 0.5)
    assert found["half_width"] == pytest.approx(1.96 * (0.25 / 2) ** 0.5)
    assert found["wilson"][0] < 0.5 < found["wilson"][1]


def test_an_exam_without_a_held_out_signer_says_so() -> None:
    found = public(one_clip("YOU", said("YOU")))
    assert found["held_out"] is None
    assert found["reasons"]["held_out"] == "the exam names no held-out signer"


def test_an_incomplete_run_is_not_scored_and_says_which_clips_are_absent() -> None:
    labels = [ClipLabels(name, "ALPHA", ("YOU",)) for name in ("0001", "0002", "0003")]
    card = score(labels, {"0002": said("YOU")}, VOCABULARY, FEW)
    found = public(card)
    assert card.complete is False
    assert all(found[name] is None for name in PUBLIC_FIGURES)
    assert "2 of 3 clips have no entry (0001, 0003)" in found["reasons"]["macro_f1"]
    assert found["counts"]["clips"] == 3
    assert card.as_document()["private"]["confusion"] is None


def test_an_exam_without_scored_signs_has_null_figures_with_reasons() -> None:
    found = public(one_clip("TREE SHRUB", said("TREE", "SHRUB")))
    for name in ("macro_f1", "macro_f1_floor", "macro_f1_min3", "top1", "top3", "abstention"):
        assert found[name] is None
        assert found["reasons"][name]
    assert (found["ger"], found["false_alarms"]) == (0.0, 0.0)


def test_a_corpus_of_single_signs_has_no_bleu2() -> None:
    found = public(one_clip("YOU", said("YOU")))
    assert (found["bleu1"], found["bleu2"]) == (1.0, None)
    assert found["reasons"]["bleu2"] == "no clip has 2 positions or more"


def test_the_public_card_names_no_sign() -> None:
    card = one_clip("POINTER_RIGHT OLD", said("OLD", "OLD"))
    assert "POINTER_RIGHT" not in str(card.public_document())
    assert card.as_document()["private"] == {
        "by_sign": {
            "OLD": {"f1": 2 / 3, "support": 1, "tp": 1, "fp": 1, "fn": 0},
            "POINTER_RIGHT": {"f1": 0.0, "support": 1, "tp": 0, "fp": 0, "fn": 1},
        },
        "confusion": [["OLD", "OLD", 1], ["POINTER_RIGHT", "OLD", 1]],
    }


def test_the_confusion_tells_missing_from_unknown() -> None:
    card = one_clip("YOU I", said(UNKNOWN))
    assert card.as_document()["private"]["confusion"] == [["I", None, 1], ["YOU", UNKNOWN, 1]]


def test_the_scorer_string_holds_every_parameter() -> None:
    base = one_clip("YOU", said("YOU")).scorer_string
    assert base.startswith("epee200|version:2.1|resamples:50|seed:200|")
    changed = [
        RecognitionParameters(resamples=51),
        RecognitionParameters(resamples=50, seed=1),
        RecognitionParameters(resamples=50, version="2.2"),
        RecognitionParameters(resamples=50, length_tail=8),
        RecognitionParameters(resamples=50, held_out_signer="ALPHA"),
    ]
    strings = {one_clip("YOU", said("YOU"), parameters).scorer_string for parameters in changed}
    assert len(strings | {base}) == 6


def test_the_scorer_string_changes_with_the_scored_vocabulary() -> None:
    labels, answers = [ClipLabels("a", "ALPHA", ("YOU",))], {"a": said("YOU")}
    strings = {
        score(labels, answers, vocabulary, FEW).scorer_string
        for vocabulary in (["YOU"], ["YOU", "I"], ["I", "YOU"])
    }
    assert len(strings) == 2
