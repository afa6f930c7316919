"""The translation card: composite, gate, slices, and what it says where a part is missing."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from manifests.errors import MalformedDocument
from scorers.translation import (
    GateMetric,
    PoseParameters,
    Poses,
    SegmentScores,
    Slice,
    TranslationLabel,
    TranslationParameters,
    score,
)
from scorers.translation.grounding import ratio
from scorers.translation.pose import PoseArray

PARAMETERS = TranslationParameters()
WORDS = [
    "who",
    "where",
    "old",
    "young",
    "train",
    "station",
    "how",
    "is",
    "are",
    "you",
    "rain",
    "today",
    "tomorrow",
    "friend",
    "sign",
]
KEYS = {
    "s_total",
    "s_translation",
    "s_translation_partial",
    "bleurt",
    "chrf",
    "bleu",
    "by_slice",
    "grounding",
    "s_generalization",
    "s_pose",
    "counts",
}


def exam(seed: int = 0, clips: int = 24) -> list[TranslationLabel]:
    draw = random.Random(seed)
    return [
        TranslationLabel(
            f"{i:03}",
            list(Slice)[i % 4],
            " ".join(draw.choices(WORDS, k=draw.randint(4, 9))) + f" {i}",
        )
        for i in range(clips)
    ]


def answers(labels: list[TranslationLabel], right: float, seed: int = 1) -> dict[str, str]:
    draw = random.Random(seed)
    return {
        label.clip_id: " ".join(
            word if draw.random() < right else draw.choice(WORDS)
            for word in label.reference.split()
        )
        for label in labels
    }


def bleurt(
    labels: list[TranslationLabel], main: float, canary: float, by_chance: float = 0.2
) -> SegmentScores:
    true = {x.clip_id: canary if x.slice is Slice.CANARY else main for x in labels}
    chance = {x.clip_id: by_chance for x in labels if x.slice is not Slice.CANARY}
    return SegmentScores("BLEURT-20", "c" * 64, true, chance)


def poses(labels: list[TranslationLabel], noise: float = 0.05) -> Poses:
    draw = np.random.default_rng(5)
    reference: dict[str, PoseArray] = {
        label.clip_id: draw.random((4, 128, 3)).astype(np.float32) for label in labels
    }
    hypothesis: dict[str, PoseArray] = {
        clip_id: (clip + noise * draw.normal(size=clip.shape)).astype(np.float32)
        for clip_id, clip in reference.items()
    }
    return Poses(hypothesis=hypothesis, reference=reference)


def public(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return dict(score(*args, **kwargs).as_document()["public"])


def test_a_complete_card_follows_the_published_formulas() -> None:
    labels = exam()
    given_answers = answers(labels, 0.8)
    main = [label for label in labels if label.slice is not Slice.CANARY]
    hypotheses = [given_answers[label.clip_id] for label in main]
    references = [[label.reference for label in main]]
    bleu = BLEU().corpus_score(hypotheses, references).score / 100
    chrf = CHRF().corpus_score(hypotheses, references).score / 100
    card = public(
        labels, given_answers, PARAMETERS, bleurt=bleurt(labels, 0.8, 0.5), poses=poses(labels)
    )
    translation = 0.5 * 0.8 + 0.3 * chrf + 0.2 * bleu
    generalization = (0.5 / 0.8) / 0.85
    assert set(card) >= KEYS
    assert card["bleu"] == pytest.approx(bleu, abs=1e-12)
    assert card["chrf"] == pytest.approx(chrf, abs=1e-12)
    assert card["bleurt"] == pytest.approx(0.8)
    assert card["s_translation"] == pytest.approx(translation)
    assert card["s_translation_partial"] == pytest.approx((0.3 * chrf + 0.2 * bleu) / 0.5)
    assert card["s_generalization"] == pytest.approx(generalization)
    assert 0 < card["s_pose"] < 1
    assert card["s_total"] == pytest.approx(
        0.6 * translation + 0.25 * generalization + 0.15 * card["s_pose"]
    )
    assert card["counts"] == {
        "clips": 24,
        "main_clips": 18,
        "canary_clips": 6,
        "missing_predictions": 0,
        "empty_hypotheses": 0,
        "pose_clips": 18,
    }


def test_the_canary_never_enters_the_translation_score() -> None:
    labels = exam()
    good = answers(labels, 0.9)
    worse = {x.clip_id: "" if x.slice is Slice.CANARY else good[x.clip_id] for x in labels}
    ours, theirs = public(labels, good, PARAMETERS), public(labels, worse, PARAMETERS)
    for figure in ("bleu", "chrf", "s_translation_partial", "grounding"):
        assert ours[figure] == theirs[figure]


def test_slices_are_reported_apart_and_pooled_in_the_whole() -> None:
    labels = exam()
    card = public(labels, answers(labels, 0.8), PARAMETERS, bleurt=bleurt(labels, 0.8, 0.5))
    assert set(card["by_slice"]) == {"studio", "broadcast", "conversational", "canary"}
    assert set(card["by_slice"]["canary"]) == {"n", "bleurt"}
    studio = [label for label in labels if label.slice is Slice.STUDIO]
    hypotheses = [answers(labels, 0.8)[label.clip_id] for label in studio]
    expected = CHRF().corpus_score(hypotheses, [[label.reference for label in studio]]).score
    assert card["by_slice"]["studio"]["chrf"] == pytest.approx(expected / 100, abs=1e-12)
    mean = np.mean([card["by_slice"][name]["chrf"] for name in ("studio", "broadcast")])
    assert card["chrf"] != pytest.approx(mean, abs=1e-6), "pooled, not a mean of slices"


def test_without_bleurt_the_totals_are_null_with_reasons_and_the_partial_stands_alone() -> None:
    labels = exam()
    card = public(labels, answers(labels, 0.8), PARAMETERS, poses=poses(labels))
    assert card["s_total"] is card["s_translation"] is card["bleurt"] is None
    assert card["s_generalization"] is None
    assert card["s_translation_partial"] == pytest.approx(
        (0.3 * card["chrf"] + 0.2 * card["bleu"]) / 0.5
    )
    assert card["grounding"]["m"] == "chrf"
    assert "no BLEURT" in card["reasons"]["s_total"]
    assert "gate" not in card["reasons"]["s_total"]


def test_a_card_is_plain_json_without_numbers_that_json_lacks() -> None:
    labels = exam()
    for scores in (None, bleurt(labels, 0.0, 0.5)):
        card = score(labels, answers(labels, 0.8), PARAMETERS, bleurt=scores)
        assert json.loads(json.dumps(card.as_document(), allow_nan=False)) == card.as_document()


def test_a_constant_hypothesis_has_a_g_of_exactly_one() -> None:
    for seed in range(30):
        labels = exam(seed)
        constant = dict.fromkeys((label.clip_id for label in labels), "where are you today")
        grounding = public(labels, constant, PARAMETERS)["grounding"]
        assert grounding["g"] == 1.0
        assert grounding["by_component"]["chrf"] == 1.0
        assert grounding["by_component"]["bleu"] == 1.0


def test_a_system_that_reads_the_video_is_told_from_one_that_does_not() -> None:
    labels = exam()
    reads = public(labels, answers(labels, 0.8), PARAMETERS)["grounding"]["g"]
    guesses = public(labels, answers(labels, 0.0), PARAMETERS)["grounding"]["g"]
    assert reads > 1.5 > guesses


@pytest.mark.parametrize(
    ("true", "deranged", "expected"),
    [(0.6, 0.3, 2.0), (0.6, 0.0, float("inf")), (0.0, 0.0, 1.0), (0.0, 0.5, 0.0)],
)
def test_g_of_nothing_is_one_and_of_something_over_nothing_is_infinite(
    true: float, deranged: float, expected: float
) -> None:
    assert ratio(true, deranged) == expected


def gated(threshold: float | None, metric: GateMetric = GateMetric.CHRF) -> TranslationParameters:
    return TranslationParameters(gate_threshold=threshold, gate_metric=metric)


def test_the_gate_is_judged_on_the_unrounded_ratio_and_its_failure_costs_everything() -> None:
    labels = exam()
    given_answers, scores = answers(labels, 0.8), bleurt(labels, 0.8, 0.5)
    inputs = {"bleurt": scores, "poses": poses(labels)}
    free = public(labels, given_answers, gated(None), **inputs)
    g = free["grounding"]["g"]
    met = public(labels, given_answers, gated(g), **inputs)
    missed = public(labels, given_answers, gated(float(np.nextafter(g, 9))), **inputs)
    assert free["grounding"]["passed"] is None
    assert "not enforced" in free["reasons"]["grounding.passed"]
    assert met["grounding"]["passed"] is True
    assert met["s_total"] == free["s_total"] > 0
    assert missed["grounding"]["passed"] is False
    assert missed["s_total"] == 0.0
    assert missed["s_translation"] == free["s_translation"], "components are still shown"


def test_an_infinite_g_passes_and_is_not_written_as_a_number() -> None:
    labels = [
        TranslationLabel("a", Slice.STUDIO, "abc def"),
        TranslationLabel("b", Slice.STUDIO, "xyz uvw"),
    ]
    right = {"a": "abc def", "b": "xyz uvw"}
    grounding = public(labels, right, gated(2.0))["grounding"]
    assert grounding["g"] is None
    assert grounding["passed"] is True


def test_a_threshold_holds_for_its_own_metric_only() -> None:
    labels = exam()
    true_only = SegmentScores("x", "c" * 64, bleurt(labels, 0.8, 0.5).scores)
    parameters = gated(1.2, GateMetric.S_TRANSLATION)
    card = public(labels, answers(labels, 0.8), parameters, bleurt=true_only, poses=poses(labels))
    assert card["s_translation"] is not None
    assert card["grounding"]["passed"] is None
    assert card["s_total"] is None
    assert "valid for M = s_translation" in card["reasons"]["s_total"]


def test_g_of_the_translation_score_uses_deranged_bleurt_scores() -> None:
    labels = exam()
    scores = bleurt(labels, 0.8, 0.5, by_chance=0.4)
    grounding = public(labels, answers(labels, 0.8), PARAMETERS, bleurt=scores)["grounding"]
    assert grounding["m"] == "s_translation"
    assert grounding["by_component"]["bleurt"] == pytest.approx(2.0)


def test_a_slice_that_cannot_be_deranged_is_refused_by_name() -> None:
    labels = [*exam(), TranslationLabel("x1", Slice.STUDIO, "same")]
    crowded = [*labels, *(TranslationLabel(f"x{i}", Slice.STUDIO, "Same") for i in range(2, 12))]
    everything = dict.fromkeys((label.clip_id for label in crowded), "x")
    with pytest.raises(MalformedDocument, match="slice studio: no derangement exists"):
        score(crowded, everything, PARAMETERS)


@pytest.mark.parametrize(
    ("main", "canary", "expected"), [(0.8, 0.8, 1.0), (0.8, 0.34, 0.5), (0.0, 0.5, 0.0)]
)
def test_generalization_is_the_canarys_share_up_to_one_and_zero_over_zero_is_flagged(
    main: float, canary: float, expected: float
) -> None:
    labels = exam()
    card = public(labels, answers(labels, 0.8), PARAMETERS, bleurt=bleurt(labels, main, canary))
    assert card["s_generalization"] == pytest.approx(expected)
    assert ("flags" in card) is (main == 0.0)


def test_without_canary_or_pose_their_figures_and_the_total_are_null() -> None:
    labels = [label for label in exam() if label.slice is not Slice.CANARY]
    card = public(labels, answers(labels, 0.8), PARAMETERS, bleurt=bleurt(labels, 0.8, 0.5))
    assert card["s_translation"] is not None
    assert card["s_generalization"] is card["s_pose"] is card["s_total"] is None
    assert "canary" in card["reasons"]["s_total"]
    assert "pose" in card["reasons"]["s_total"]


def test_a_missing_pose_file_is_zero_and_a_missing_reference_pose_is_left_out() -> None:
    labels = exam()
    full = poses(labels)
    some = {clip: pose for clip, pose in full.reference.items() if clip < "012"}
    none_written = public(
        labels, answers(labels, 0.8), PARAMETERS, poses=Poses(hypothesis={}, reference=some)
    )
    perfect = public(
        labels, answers(labels, 0.8), PARAMETERS, poses=Poses(hypothesis=some, reference=some)
    )
    assert none_written["s_pose"] == 0.0
    assert perfect["s_pose"] == pytest.approx(1.0)
    assert perfect["counts"]["pose_clips"] == 9


def test_an_incomplete_run_is_not_scored() -> None:
    labels = exam()
    partial = answers(labels, 0.8)
    del partial["004"]
    card = score(labels, partial, PARAMETERS).as_document()
    assert card["complete"] is False
    assert card["public"]["chrf"] is None
    assert (
        "1 of 24 clips have no prediction, the first is clip 004"
        in card["public"]["reasons"]["chrf"]
    )
    assert set(card["public"]) >= KEYS


def test_an_empty_hypothesis_is_kept_and_lowers_the_score() -> None:
    labels = exam()
    full = answers(labels, 1.0)
    card = public(labels, {**full, "001": ""}, PARAMETERS)
    assert card["chrf"] < 1.0
    assert card["counts"]["empty_hypotheses"] == 1


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1_000))
def test_row_order_of_labels_and_predictions_changes_no_card(seed: int) -> None:
    labels = exam(seed)
    given_answers = answers(labels, 0.7, seed)
    draw = random.Random(seed)
    shuffled = draw.sample(labels, len(labels))
    reordered = {x.clip_id: given_answers[x.clip_id] for x in draw.sample(labels, len(labels))}
    scores = bleurt(labels, 0.6, 0.5)
    ours = score(labels, given_answers, PARAMETERS, bleurt=scores)
    assert ours.as_document() == score(shuffled, reordered, PARAMETERS, bleurt=scores).as_document()


@pytest.mark.parametrize(
    ("labels", "predictions", "complaint"),
    [
        ([TranslationLabel("a", Slice.STUDIO, " \t")], {}, "clip a: the reference holds no text"),
        ([TranslationLabel("a", Slice.CANARY, "x")], {}, "no clip of studio"),
        ([], {}, "no clip of studio"),
        ([TranslationLabel("a", "lab", "x")], {}, "clip a: slice 'lab'"),  # type: ignore[arg-type]
        (2 * [TranslationLabel("a", Slice.STUDIO, "x")], {}, "clip a has two labels"),
        ([TranslationLabel("a", Slice.STUDIO, "x")], {"b\x1b": ""}, r"clip b\\x1b is not one of"),
        (
            [TranslationLabel("a", Slice.STUDIO, "x")],
            {"a": 7},
            "clip a: the prediction is not text",
        ),
    ],
)
def test_malformed_labels_and_predictions_are_refused_with_the_clip(
    labels: list[TranslationLabel], predictions: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(MalformedDocument, match=complaint):
        score(labels, predictions, PARAMETERS)


@pytest.mark.parametrize("side", ["hypothesis", "reference"])
def test_a_pose_for_an_unknown_clip_is_refused(side: str) -> None:
    labels = exam()
    full = poses(labels)
    stray = {"zzz": full.reference["000"]}
    with pytest.raises(MalformedDocument, match=r"clip zzz has a (reference )?pose but"):
        score(
            labels,
            answers(labels, 0.8),
            PARAMETERS,
            poses=Poses(**{"hypothesis": {}, "reference": {}, side: stray}),  # type: ignore[arg-type]
        )


@pytest.mark.parametrize(
    "values",
    [
        {"tokenizer": "intl"},
        {"gate_threshold": 0.0},
        {"gate_threshold": float("nan")},
        {"resamples": 0},
    ],
)
def test_parameters_out_of_their_bounds_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(MalformedDocument):
        TranslationParameters(**values)


def test_the_scorer_string_tells_every_parameter_apart() -> None:
    labels = exam()
    variants = [
        PARAMETERS,
        TranslationParameters(version="1.1"),
        TranslationParameters(tokenizer="none"),
        TranslationParameters(gate_metric=GateMetric.BLEU),
        TranslationParameters(gate_threshold=1.25),
        TranslationParameters(derangement_key="a key | with\nspace"),
        TranslationParameters(resamples=999),
        TranslationParameters(seed=7),
        TranslationParameters(pose=PoseParameters(dimensions="xyz")),
        TranslationParameters(pose=PoseParameters(reference_error=0.4)),
    ]
    scores = bleurt(labels, 0.8, 0.5)
    strings = [
        score(labels, answers(labels, 0.8), each, bleurt=scores).scorer_string for each in variants
    ]
    strings.append(score(labels, answers(labels, 0.8), PARAMETERS).scorer_string)
    assert len(set(strings)) == len(variants) + 1
    assert all(string.startswith("signet|version:1.") for string in strings)
    assert (
        strings[0] == score(labels, answers(labels, 0.1), PARAMETERS, bleurt=scores).scorer_string
    )
