"""Leadership: a paired bootstrap of the whole composite, against a slow and obvious one."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from manifests.errors import MalformedDocument
from scorers.statistics.bootstrap import stratified_weights
from scorers.translation import (
    Measurement,
    RankedFigure,
    SegmentScores,
    Slice,
    TranslationLabel,
    TranslationParameters,
    challenge,
    compare,
    measure,
)
from scorers.translation.measurement import POSE, POSE_CLIPS

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
PARAMETERS = TranslationParameters(resamples=500)


def exam(seed: int, clips: int = 40) -> list[TranslationLabel]:
    draw = random.Random(seed)
    return [
        TranslationLabel(
            f"{i:03}",
            list(Slice)[i % 4],
            " ".join(draw.choices(WORDS, k=draw.randint(4, 9))) + f" {i}",
        )
        for i in range(clips)
    ]


def run(
    labels: list[TranslationLabel],
    right: float,
    *,
    seed: int = 1,
    parameters: TranslationParameters = PARAMETERS,
    checkpoint: str = "c" * 64,
) -> Measurement:
    """Measure a system whose words, BLEURT and poses are right to this degree."""
    draw = random.Random(seed)
    predictions = {
        label.clip_id: " ".join(
            word if draw.random() < right else draw.choice(WORDS)
            for word in label.reference.split()
        )
        for label in labels
    }
    true = {label.clip_id: min(1.0, right * draw.uniform(0.8, 1.2)) for label in labels}
    chance = {label.clip_id: 0.2 * draw.random() for label in labels}
    scores = SegmentScores("x", checkpoint, true, chance)
    measured = measure(labels, predictions, parameters, bleurt=scores)
    pose = np.where(measured.corpus.is_main(), right, np.nan)
    table = measured.table.copy()
    table[:, POSE] = np.nan_to_num(pose)
    table[:, POSE_CLIPS] = measured.corpus.is_main()
    return replace(measured, table=table, segment_pose=pose)


def obvious_total(measured: Measurement, rows: list[int]) -> float:
    """Compute S_total of a list of clips from their sentences, with sacreBLEU and means."""
    corpus = measured.corpus
    main = [row for row in rows if corpus.is_main()[row]]
    canary = [row for row in rows if not corpus.is_main()[row]]
    hypotheses = [corpus.hypotheses[row] for row in main]
    references = [[corpus.references[row] for row in main]]
    bleu = min(1.0, BLEU().corpus_score(hypotheses, references).score / 100)
    chrf = CHRF().corpus_score(hypotheses, references).score / 100
    bleurt = sum(float(measured.segment_bleurt[row]) for row in main) / len(main)
    transfer = sum(float(measured.segment_bleurt[row]) for row in canary) / len(canary)
    pose = sum(float(measured.segment_pose[row]) for row in main) / len(main)
    translation = 0.5 * bleurt + 0.3 * chrf + 0.2 * bleu
    generalization = min(1.0, (transfer / bleurt) / 0.85) if bleurt else 0.0
    return float(0.6 * translation + 0.25 * generalization + 0.15 * pose)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rights=st.tuples(st.floats(0.2, 1.0), st.floats(0.2, 1.0)),
    clips=st.sampled_from([8, 10, 12]),
)
def test_the_bootstrap_equals_scoring_every_resampled_corpus_anew(
    seed: int, rights: tuple[float, float], clips: int
) -> None:
    parameters = TranslationParameters(resamples=3, seed=seed)
    labels = exam(seed, clips)
    first = run(labels, rights[0], seed=seed, parameters=parameters)
    second = run(labels, rights[1], seed=seed + 1, parameters=parameters)
    weights = stratified_weights(first.corpus.slice_numbers, 3, seed)
    differences = []
    for row in weights:
        drawn = [clip for clip, times in enumerate(row) for _ in range(times)]
        differences.append(obvious_total(first, drawn) - obvious_total(second, drawn))
    everything = list(range(clips))
    found = compare(first, second, parameters)
    point = obvious_total(first, everything) - obvious_total(second, everything)
    assert found.delta == pytest.approx(point, abs=1e-9)
    assert (found.low, found.high) == pytest.approx(
        tuple(np.quantile(differences, [0.025, 0.975])), abs=1e-9
    )
    not_better = sum(difference <= 1e-12 for difference in differences)
    assert found.p_value == pytest.approx((1 + not_better) / 4)
    assert (found.replicates, found.units) == (3, clips)


def test_a_clearly_better_challenger_takes_the_lead() -> None:
    labels = exam(1)
    decision = challenge(run(labels, 0.5), run(labels, 0.9), PARAMETERS)
    assert decision.dethrones
    assert decision.comparison is not None
    assert decision.comparison.p_value == pytest.approx(1 / 501)
    assert "significant" in decision.reason


def test_identical_rows_have_a_p_of_one() -> None:
    same = run(exam(1), 0.7)
    decision = challenge(same, same, PARAMETERS)
    assert decision.comparison is not None
    assert decision.comparison.p_value == 1.0
    assert not decision.dethrones


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1_000), gap=st.floats(0.02, 0.5))
def test_a_worse_challenger_never_takes_the_lead_however_sure_the_difference(
    seed: int, gap: float
) -> None:
    labels = exam(seed)
    decision = challenge(run(labels, 0.9, seed=seed), run(labels, 0.9 - gap, seed=seed), PARAMETERS)
    assert decision.comparison is not None
    assert not decision.dethrones or decision.comparison.delta > 0
    if decision.comparison.delta <= 0:
        assert "not better" in decision.reason


def test_an_advantage_within_sampling_noise_changes_no_leader() -> None:
    labels = exam(3)
    champion, challenger = run(labels, 0.70, seed=1), run(labels, 0.70, seed=2)
    forward = challenge(champion, challenger, PARAMETERS)
    backward = challenge(challenger, champion, PARAMETERS)
    assert not forward.dethrones
    assert not backward.dethrones
    assert "within sampling noise" in forward.reason or "within sampling noise" in backward.reason


def test_a_challenger_whose_gate_failed_stays_where_it_is() -> None:
    labels = exam(1)
    strict = replace(PARAMETERS, gate_threshold=50.0)
    decision = challenge(run(labels, 0.3), run(labels, 0.9), strict)
    assert not decision.dethrones
    assert "grounding gate" in decision.reason


def test_a_champion_whose_gate_failed_counts_as_zero() -> None:
    labels = exam(1)
    guesses, reads = run(labels, 0.2), run(labels, 0.9)
    strict = replace(PARAMETERS, gate_threshold=2.0)
    decision = challenge(guesses, reads, strict)
    assert decision.dethrones
    assert decision.comparison is not None
    assert decision.comparison.delta > 0.7


def test_a_run_without_its_parts_cannot_rank() -> None:
    labels = exam(1)
    whole = run(labels, 0.7)
    predictions = dict.fromkeys((label.clip_id for label in labels), "where are you")
    bare = measure(labels, predictions, PARAMETERS)
    decision = challenge(whole, bare, PARAMETERS)
    assert not decision.dethrones
    assert decision.comparison is None
    assert "the challenger cannot rank: no BLEURT" in decision.reason
    del predictions["000"]
    incomplete = measure(labels, predictions, PARAMETERS)
    assert "1 clips have no prediction" in challenge(incomplete, whole, PARAMETERS).reason


def test_a_threshold_that_cannot_be_judged_makes_no_leader() -> None:
    labels = exam(1)
    strict = replace(PARAMETERS, gate_threshold=1.2)
    known = run(labels, 0.9)
    unjudged = replace(known, deranged_table=np.zeros_like(known.deranged_table))
    assert "cannot rank" in challenge(known, unjudged, strict).reason


def test_figures_can_be_compared_one_by_one_without_bleurt() -> None:
    labels = exam(1)
    predictions = {label.clip_id: label.reference for label in labels}
    right = measure(labels, predictions, PARAMETERS)
    wrong = measure(labels, dict.fromkeys(predictions, "who are you"), PARAMETERS)
    found = compare(right, wrong, PARAMETERS, RankedFigure.S_TRANSLATION_PARTIAL)
    assert found.delta > 0.5
    assert found.p_value < 0.01
    with pytest.raises(MalformedDocument, match="s_total is not defined for both runs"):
        compare(right, wrong, PARAMETERS)


def test_runs_that_were_not_measured_alike_are_refused() -> None:
    labels = exam(1)
    whole = run(labels, 0.7)
    with pytest.raises(MalformedDocument, match="different BLEURT checkpoints"):
        compare(whole, run(labels, 0.7, checkpoint="d" * 64), PARAMETERS)
    with pytest.raises(MalformedDocument, match="not measured on the same labels"):
        compare(whole, run(exam(2), 0.7), PARAMETERS)
    fewer = replace(whole, segment_pose=np.full_like(whole.segment_pose, np.nan))
    with pytest.raises(MalformedDocument, match="same reference poses"):
        compare(whole, fewer, PARAMETERS)
    incomplete = measure(labels, {"000": "x"}, PARAMETERS)
    with pytest.raises(MalformedDocument, match="incomplete"):
        compare(whole, incomplete, PARAMETERS)
