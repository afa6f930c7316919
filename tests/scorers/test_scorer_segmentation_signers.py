"""Signer-clustered intervals, paired comparisons, and selection without test leakage."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from manifests.digests import sha256_hex
from manifests.errors import MalformedDocument, RefusedByPolicy
from scorers.segmentation import (
    Figure,
    LabelledSegment,
    SegmentationLabel,
    SegmentationParameters,
    SystemOutput,
    compare,
    score,
)
from scorers.segmentation.corpus import build_corpus
from scorers.segmentation.counts import counts_of
from scorers.segmentation.edit_pairs import render_predictions
from scorers.segmentation.figures import figure_values
from scorers.segmentation.held_out import CHANGES, score_selected
from scorers.segmentation.intervals import SignerResamples, signer_intervals, signer_resamples
from scorers.segmentation.measurement import clip_counts, signer_counts
from scorers.segmentation.rejection import above, fit_rejection, without_rejected
from scorers.segmentation.selection import Objective, SelectionManifest, parse_selection
from scorers.segmentation.validation import select_on_validation
from scorers.statistics.bootstrap import resample_weights

VOCABULARY = [f"G{number}" for number in range(8)]
PARAMETERS = SegmentationParameters(resamples=500)


def exam(*, clips: int = 24, signers: int = 6, prefix: str = "") -> list[SegmentationLabel]:
    draw = random.Random(clips * signers)
    labels = []
    for number in range(clips):
        at, segments = 0, []
        for _ in range(draw.randint(2, 6)):
            start = at + draw.randint(1, 5)
            at = start + draw.randint(6, 14)
            segments.append(LabelledSegment(f"G{draw.randint(0, 9)}", float(start), float(at)))
        labels.append(
            SegmentationLabel(
                f"{prefix}{number:04d}", f"S{number % signers}", 1.0, at + 6, tuple(segments)
            )
        )
    return labels


def system(
    name: str, labels: list[SegmentationLabel], *, off: int, right: float, seed: int
) -> SystemOutput:
    """Predict each sign within `off` frames; the consumer is right with a chance of `right`."""
    draw = random.Random(seed)
    predictions, consumer = {}, {}
    for label in labels:
        spans: list[tuple[int, int]] = []
        said: list[tuple[str, float | None]] = []
        for sign in label.segments:
            start = max(int(sign.start_s) + draw.randint(0, off), spans[-1][1] if spans else 0)
            spans.append((start, max(start + 1, int(sign.end_s) - draw.randint(0, off))))
            hit = draw.random() < right
            said.append((sign.gloss if hit else f"G{draw.randint(0, 7)}", round(draw.random(), 2)))
        predictions[label.clip_id], consumer[label.clip_id] = spans, said
    return SystemOutput(name, predictions, consumer)


def rows(labels: list[SegmentationLabel], output: SystemOutput) -> Any:
    corpus = build_corpus(labels, output.predictions, VOCABULARY, output.consumer)
    return signer_counts(clip_counts(corpus, PARAMETERS), corpus)


def test_six_signers_are_enumerated_and_nine_are_drawn() -> None:
    six = signer_resamples(6, PARAMETERS)
    assert six.weights.shape == (462, 6)
    assert six.probabilities is not None
    assert six.probabilities.sum() == pytest.approx(1.0)
    nine = signer_resamples(9, PARAMETERS)
    assert nine.weights.shape == (500, 9)
    assert nine.probabilities is None
    assert signer_resamples(8, PARAMETERS).method == "exact"


def test_the_exact_interval_of_six_signers_is_the_limit_of_drawing_them() -> None:
    labels = exam()
    counts = rows(labels, system("a", labels, off=4, right=0.6, seed=1))
    figures = [Figure.MF1S, Figure.AUC_RU, Figure.WER_ALL, Figure.RETAINED]
    exact = signer_intervals(counts, signer_resamples(6, PARAMETERS), figures, PARAMETERS)
    drawn = SignerResamples(resample_weights(6, 60_000, 7), None)
    near = signer_intervals(counts, drawn, figures, PARAMETERS)
    for figure in figures:
        values = figure_values(figure, counts.weighted(drawn.weights), PARAMETERS)
        spread = float(np.std(values))
        assert exact[figure] == pytest.approx(near[figure], abs=0.05 * spread)
        assert exact[figure][0] < exact[figure][1]


def test_the_exact_interval_is_the_percentile_of_all_ordered_samples() -> None:
    values = np.array([1.0, 2.0, 4.0])
    counts = counts_of(matched=values, iv_references=np.full(3, 4.0))
    found = signer_intervals(counts, signer_resamples(3, PARAMETERS), [Figure.COVERAGE], PARAMETERS)
    every = sorted(
        (values[i] + values[j] + values[k]) / 12
        for i in range(3)
        for j in range(3)
        for k in range(3)
    )
    smallest = [
        next(v for n, v in enumerate(every, 1) if n / 27 >= tail) for tail in (0.025, 0.975)
    ]
    assert found[Figure.COVERAGE] == pytest.approx(tuple(smallest))


def test_the_card_prints_clusters_and_method_and_its_intervals_hold_the_figures() -> None:
    labels = exam()
    output = system("a", labels, off=4, right=0.6, seed=1)
    card = score(labels, output.predictions, VOCABULARY, PARAMETERS, consumer=output.consumer)
    public = card.public_document()["public"]
    found = public["intervals"]
    assert (found["clusters"], found["method"], found["replicates"]) == (6, "exact", 462)
    for name, (low, high) in found["figures"].items():
        value = public[name]["wer"] if name.startswith("wer") else public[name]
        assert low <= value <= high, name


def test_more_signers_are_drawn_by_the_seed_and_the_seed_alone() -> None:
    labels = exam(clips=36, signers=12)
    output = system("a", labels, off=4, right=0.6, seed=1)

    def intervals(seed: int) -> Any:
        parameters = SegmentationParameters(resamples=500, seed=seed)
        card = score(labels, output.predictions, VOCABULARY, parameters, consumer=output.consumer)
        return card.public_document()["public"]["intervals"]

    assert intervals(1)["method"] == "monte-carlo"
    assert intervals(1) == intervals(1)
    assert intervals(1) != intervals(2)


def test_replicates_without_a_defined_figure_are_left_out_of_its_interval() -> None:
    counts = counts_of(matched=np.array([1.0, 0.0]), iv_references=np.array([2.0, 0.0]))
    found = signer_intervals(counts, signer_resamples(2, PARAMETERS), [Figure.COVERAGE], PARAMETERS)
    assert found[Figure.COVERAGE] == (0.5, 0.5)
    nowhere = counts_of(matched=np.zeros(2), iv_references=np.zeros(2))
    assert (
        signer_intervals(nowhere, signer_resamples(2, PARAMETERS), [Figure.COVERAGE], PARAMETERS)
        == {}
    )


@pytest.mark.parametrize("signers", [6, 12])
def test_a_better_system_is_better_in_either_direction_of_the_figure(signers: int) -> None:
    labels = exam(clips=36, signers=signers)
    good = system("good", labels, off=1, right=0.9, seed=1)
    poor = system("poor", labels, off=6, right=0.3, seed=2)
    for figure in (Figure.MF1S, Figure.AUC_RU, Figure.WER_ALL, Figure.WER_IV):
        won = compare(labels, good, poor, VOCABULARY, PARAMETERS, figure=figure)
        lost = compare(labels, poor, good, VOCABULARY, PARAMETERS, figure=figure)
        assert won.units == signers
        assert won.low <= won.delta <= won.high
        assert (won.delta < 0) == figure.value.startswith("wer")
        assert won.p_value < 0.05 < lost.p_value
        assert lost.delta == pytest.approx(-won.delta)
        if signers == 12:
            assert (lost.low, lost.high) == pytest.approx((-won.high, -won.low))


@pytest.mark.parametrize("figure", [Figure.MF1S, Figure.WER_ALL])
def test_identical_systems_have_no_difference_and_p_one(figure: Figure) -> None:
    labels = exam()
    one = system("one", labels, off=3, right=0.5, seed=3)
    found = compare(labels, one, replace(one, name="two"), VOCABULARY, PARAMETERS, figure=figure)
    assert (found.delta, found.low, found.high) == (0.0, 0.0, 0.0)
    assert found.p_value == pytest.approx(1.0)


def test_an_incomplete_or_silent_system_is_not_compared() -> None:
    labels = exam()
    one = system("one", labels, off=3, right=0.5, seed=3)
    short = replace(one, name="short", predictions={"0000": []}, consumer=None)
    with pytest.raises(MalformedDocument, match="system short: no predictions for clip 0001"):
        compare(labels, one, short, VOCABULARY, PARAMETERS)
    silent = replace(one, consumer=None)
    with pytest.raises(MalformedDocument, match="wer_all needs a consumer"):
        compare(labels, one, silent, VOCABULARY, PARAMETERS, figure=Figure.WER_ALL)
    with pytest.raises(MalformedDocument, match="auc_ru is undefined here"):
        compare(labels, one, one, ["NOWHERE"], PARAMETERS, figure=Figure.AUC_RU)


def selected() -> tuple[list[SegmentationLabel], list[SystemOutput], SelectionManifest]:
    labels = exam(prefix="v")
    candidates = [
        system("sharp", labels, off=0, right=0.2, seed=1),
        system("useful", labels, off=4, right=0.95, seed=2),
        system("useful-again", labels, off=4, right=0.95, seed=2),
    ]
    return labels, candidates, select_on_validation(labels, candidates, VOCABULARY, PARAMETERS)


def test_each_objective_selects_its_best_and_ties_go_to_the_first_declared() -> None:
    labels, candidates, manifest = selected()
    assert manifest.selected == {"mf1s": "sharp", "auc_ru": "useful", "wer_all": "useful"}
    turned = select_on_validation(labels, candidates[::-1], VOCABULARY, PARAMETERS)
    assert turned.selected["auc_ru"] == "useful-again"
    for candidate in candidates:
        card = score(
            labels, candidate.predictions, VOCABULARY, PARAMETERS, consumer=candidate.consumer
        )
        assert manifest.inputs[candidate.name].figures["mf1s"] == card.public["mf1s"]


def test_the_manifest_records_the_digests_of_what_it_judged() -> None:
    labels, candidates, manifest = selected()
    rendered = render_predictions(candidates[0].predictions)
    assert manifest.inputs["sharp"].predictions_sha256 == sha256_hex(rendered)
    assert manifest.vocabulary_sha256 == sha256_hex("".join(f"{g}\n" for g in VOCABULARY).encode())
    assert manifest.scorer == PARAMETERS.scorer_string
    other = [replace(labels[0], signer_id="ELSE"), *labels[1:]]
    again = select_on_validation(other, candidates, VOCABULARY, PARAMETERS)
    assert again.labels_sha256 != manifest.labels_sha256
    assert manifest.validation_clips == [label.clip_id for label in labels]


def test_the_manifest_survives_its_file_and_nothing_else_does() -> None:
    _, _, manifest = selected()
    assert parse_selection(manifest.as_bytes(), source="selection.json") == manifest
    altered = json.loads(manifest.as_bytes())
    for change in ({"extra": 1}, {"selected": {"mf1s": "ghost"}}, {"labels_sha256": "00"}):
        with pytest.raises(MalformedDocument, match=r"selection\.json: "):
            parse_selection(json.dumps({**altered, **change}).encode(), source="selection.json")


def test_rejection_and_the_joint_choice_are_fixed_on_the_pooled_validation_cache() -> None:
    _, candidates, manifest = selected()
    cache = [c for s in candidates for said in (s.consumer or {}).values() for _, c in said]
    assert manifest.rejection is not None
    assert [level.retention_percent for level in manifest.rejection] == [95, 90, 80]
    for level in manifest.rejection:
        kept = sum(c is not None and c >= level.threshold for c in cache)
        assert kept / len(cache) == level.retained >= level.retention_percent / 100
    assert manifest.joint is not None
    assert manifest.joint.candidate == "useful"


def test_without_confidences_there_is_a_selection_but_no_rejection() -> None:
    labels, candidates, _ = selected()
    silent = [
        replace(c, consumer={k: [(g, None) for g, _ in v] for k, v in (c.consumer or {}).items()})
        for c in candidates
    ]
    manifest = select_on_validation(labels, silent, VOCABULARY, PARAMETERS)
    assert manifest.selected["mf1s"] == "sharp"
    assert manifest.rejection is None
    assert manifest.joint is None


def test_an_incomplete_repeated_or_silent_candidate_is_refused() -> None:
    labels, candidates, _ = selected()
    with pytest.raises(MalformedDocument, match="distinct names"):
        select_on_validation(labels, [candidates[0]] * 2, VOCABULARY, PARAMETERS)
    with pytest.raises(MalformedDocument, match="distinct names"):
        select_on_validation(labels, [], VOCABULARY, PARAMETERS)
    short = replace(candidates[0], predictions={})
    with pytest.raises(MalformedDocument, match="no predictions for clip v0000"):
        select_on_validation(labels, [short], VOCABULARY, PARAMETERS)
    with pytest.raises(MalformedDocument, match="frozen consumer"):
        select_on_validation(
            labels, [replace(candidates[0], consumer=None)], VOCABULARY, PARAMETERS
        )


def test_a_figure_that_no_candidate_has_selects_none_and_test_leaves_it_out() -> None:
    labels, candidates, _ = selected()
    manifest = select_on_validation(labels, candidates, ["NOWHERE"], PARAMETERS)
    assert manifest.selected == {"mf1s": "sharp", "auc_ru": None, "wer_all": None}
    assert manifest.joint is None
    test_labels, outputs = held_out()
    report = score_selected(manifest, test_labels, outputs, ["NOWHERE"], PARAMETERS)
    assert set(report.cards) == {Objective.MF1S}
    assert report.changes == {}
    assert report.joint is None


def test_nothing_is_rejected_without_confidences() -> None:
    labels, candidates, _ = selected()
    silent = replace(candidates[0], consumer=None)
    unsure = replace(silent, consumer={clip: [("G1", None)] for clip in candidates[0].predictions})
    with pytest.raises(MalformedDocument, match="sharp has no consumer"):
        without_rejected(silent, 0.5)
    with pytest.raises(MalformedDocument, match="clip v0000: no confidence"):
        without_rejected(unsure, 0.5)
    corpus = build_corpus(labels, unsure.predictions, VOCABULARY, unsure.consumer)
    with pytest.raises(MalformedDocument, match="no confidence for some answers"):
        above(corpus, 0.5)
    with pytest.raises(MalformedDocument, match="retention 0% is outside"):
        fit_rejection([0.5], retentions_percent=(0,))


def held_out() -> tuple[list[SegmentationLabel], dict[str, SystemOutput]]:
    labels = exam(prefix="t", clips=30)
    return labels, {
        "sharp": system("sharp", labels, off=5, right=0.9, seed=4),
        "useful": system("useful", labels, off=0, right=0.95, seed=5),
    }


def test_test_scores_what_the_manifest_names_even_where_another_would_win_there() -> None:
    _, _, manifest = selected()
    labels, outputs = held_out()
    report = score_selected(manifest, labels, outputs, VOCABULARY, PARAMETERS)
    sharp, useful = (report.cards[o].public["mf1s"] for o in (Objective.MF1S, Objective.AUC_RU))
    assert isinstance(sharp, float)
    assert isinstance(useful, float)
    assert sharp < useful, "on test the other one is better, and still it is not chosen"
    assert set(report.changes) == {Objective.AUC_RU, Objective.WER_ALL}
    change = report.changes[Objective.AUC_RU]
    assert set(change) == set(CHANGES)
    expected = compare(
        labels, outputs["useful"], outputs["sharp"], VOCABULARY, PARAMETERS, figure=Figure.COVERAGE
    )
    assert change[Figure.COVERAGE] == expected


def test_test_applies_the_thresholds_of_the_manifest_unchanged() -> None:
    _, _, manifest = selected()
    labels, outputs = held_out()
    report = score_selected(manifest, labels, outputs, VOCABULARY, PARAMETERS)
    rows = report.cards[Objective.MF1S].public_document()["public"]["rejection"]
    assert [row["threshold"] for row in rows] == [lvl.threshold for lvl in manifest.rejection or []]
    assert manifest.joint is not None
    assert report.joint is not None
    high = manifest.model_copy(
        update={"joint": manifest.joint.model_copy(update={"threshold": 1.0})}
    )
    few = score_selected(high, labels, outputs, VOCABULARY, PARAMETERS).joint
    assert few is not None
    counts = few.public_document()["public"]["counts"]
    stated = [c for said in (outputs["useful"].consumer or {}).values() for _, c in said]
    assert counts["predictions"] == sum(c is not None and c >= 1.0 for c in stated)


def test_test_refuses_clips_of_validation_and_whatever_was_not_frozen() -> None:
    validation, candidates, manifest = selected()
    labels, outputs = held_out()
    with pytest.raises(RefusedByPolicy, match="24 test clips, v0000 first, were in validation"):
        score_selected(
            manifest, validation, {c.name: c for c in candidates}, VOCABULARY, PARAMETERS
        )
    with pytest.raises(RefusedByPolicy, match="same parameters"):
        score_selected(manifest, labels, outputs, VOCABULARY, SegmentationParameters(seed=9))
    with pytest.raises(RefusedByPolicy, match="vocabulary"):
        score_selected(manifest, labels, outputs, VOCABULARY[:-1], PARAMETERS)
    with pytest.raises(MalformedDocument, match="no test output of sharp"):
        score_selected(manifest, labels, {}, VOCABULARY, PARAMETERS)
