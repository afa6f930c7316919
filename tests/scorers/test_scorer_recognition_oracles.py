"""The recognition figures equal foreign tools and slow, obvious forms on random exams."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sklearn.metrics import f1_score, roc_auc_score

from scorers.recognition import (
    UNKNOWN,
    ClipLabels,
    Position,
    Predictions,
    RecognitionParameters,
    score,
)
from scorers.recognition.abstention import (
    accuracy_at,
    area_under_risk_coverage,
    group_confidences,
)
from scorers.recognition.answers import encode_answers
from scorers.recognition.macro_f1 import clip_counts, macro_f1_replicates
from scorers.recognition.reference import encode_labels
from scorers.statistics.bootstrap import resample_weights

VOCABULARY = ("YOU", "I", "OLD", "POINTER_RIGHT")
OUTSIDE = ("FS:JOHN", "#CAR", "TREE")
FEW = RecognitionParameters(resamples=2)


@dataclass(frozen=True)
class Exam:
    labels: list[ClipLabels]
    answers: Predictions


@dataclass(frozen=True)
class Row:
    """One position, as a person would tabulate it."""

    label: str
    answer: str | None
    confidence: float

    @property
    def scored(self) -> bool:
        return self.label in VOCABULARY

    @property
    def right(self) -> bool:
        return self.label == self.answer


@st.composite
def exams(draw: st.DrawFn) -> Exam:
    glosses = st.sampled_from(VOCABULARY + OUTSIDE)
    confidence = st.sampled_from([None, 0.0, 0.25, 0.5, 0.5, 0.9, 1.0])
    candidates = st.lists(
        st.sampled_from((*VOCABULARY, *OUTSIDE, UNKNOWN, "NEW")), min_size=1, max_size=3
    ).map(tuple)
    labels, answers = [], {}
    for number in range(draw(st.integers(1, 6))):
        reference = tuple(draw(st.lists(glosses, min_size=1, max_size=6)))
        given_signs = draw(
            st.lists(st.builds(Position, candidates, confidence), max_size=len(reference))
        )
        # Random answers are nearly all wrong; copy some of the labels.
        copied = draw(st.lists(st.booleans(), min_size=6, max_size=6))
        answers[str(number)] = [
            Position((label,), sign.confidence) if copy else sign
            for label, sign, copy in zip(reference, given_signs, copied, strict=False)
        ]
        labels.append(ClipLabels(str(number), "ALPHA", reference))
    return Exam(labels, answers)


def tabulated(exam: Exam) -> list[Row]:
    rows = []
    for clip in exam.labels:
        for label, sign in itertools.zip_longest(clip.glosses, exam.answers[clip.clip_id]):
            answer = sign.candidates[0] if sign else None
            answered = sign and answer != UNKNOWN
            rows.append(Row(label, answer, (sign.confidence or 0.0) if answered else -1.0))
    return rows


def figures(exam: Exam) -> dict:  # type: ignore[type-arg] # a JSON document
    return score(exam.labels, exam.answers, VOCABULARY, FEW).as_document()["public"]  # type: ignore[no-any-return]


@given(exams())
@settings(max_examples=100, deadline=None)
def test_macro_f1_is_scikit_learns_over_the_signs_with_support(exam: Exam) -> None:
    rows = [row for row in tabulated(exam) if row.scored]
    card = figures(exam)
    for minimum, name in ((1, "macro_f1"), (3, "macro_f1_min3")):
        labels = [r.label for r in rows]
        present = [sign for sign in VOCABULARY if labels.count(sign) >= minimum]
        if not present:
            assert card[name] is None
            continue
        answers = [r.answer or "" for r in rows]
        expected = f1_score(labels, answers, labels=present, average="macro", zero_division=0)
        assert card[name] == pytest.approx(expected, abs=1e-12)


@given(exams())
@settings(max_examples=30, deadline=None)
def test_every_replicate_is_scikit_learns_macro_f1_of_the_repeated_clips(exam: Exam) -> None:
    reference = encode_labels(exam.labels, VOCABULARY)
    weights = resample_weights(len(exam.labels), 10, 1)
    replicates = macro_f1_replicates(clip_counts(encode_answers(reference, exam.answers)), weights)
    for row, replicate in zip(weights, replicates, strict=True):
        drawn = [clip for clip, n in zip(exam.labels, row, strict=True) for _ in range(n)]
        rows = [r for clip in drawn for r in tabulated(Exam([clip], exam.answers)) if r.scored]
        if not rows:
            assert math.isnan(replicate)
            continue
        labels, answers = [r.label for r in rows], [r.answer or "" for r in rows]
        present = sorted(set(labels))
        expected = f1_score(labels, answers, labels=present, average="macro", zero_division=0)
        assert replicate == pytest.approx(expected, abs=1e-12)


@given(exams())
@settings(max_examples=150, deadline=None)
def test_bleu_is_sacrebleus_on_whole_glosses(exam: Exam) -> None:
    references = [" ".join(clip.glosses) for clip in exam.labels]
    said = [" ".join(p.candidates[0] for p in exam.answers[c.clip_id]) for c in exam.labels]
    card = figures(exam)
    for order in (1, 2):
        metric = BLEU(tokenize="none", force=True, max_ngram_order=order, smooth_method="none")
        expected = metric.corpus_score(said, [references]).score / 100
        found = card[f"bleu{order}"]
        if all(len(clip.glosses) < order for clip in exam.labels):
            assert found is None
            assert expected == 0
        else:
            assert found == pytest.approx(expected, abs=1e-12)


def slow_aurc(rows: list[Row]) -> Fraction:
    """Average the naive AURC over every order of the ties."""
    areas: list[Fraction] = []
    for order in itertools.permutations(rows):
        ranked = sorted(order, key=lambda r: -r.confidence)  # stable: ties stay as permuted
        risks = [
            Fraction(sum(not r.right for r in ranked[:k]), k) for k in range(1, len(ranked) + 1)
        ]
        areas.append(sum(risks, Fraction(0)) / len(risks))
    return sum(areas, Fraction(0)) / len(areas)


@given(
    st.lists(
        st.builds(Row, st.just("YOU"), st.sampled_from(["YOU", "I"]), st.sampled_from([0, 0.5, 1])),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=150, deadline=None)
def test_aurc_is_the_mean_over_every_order_of_ties(rows: list[Row]) -> None:
    groups = group_confidences(
        np.array([r.confidence for r in rows]), np.array([r.right for r in rows])
    )
    assert area_under_risk_coverage(groups) == pytest.approx(float(slow_aurc(rows)), abs=1e-12)
    if len(rows) == 5:  # 80% of five positions are four whole ones
        hits = [
            sum(r.right for r in sorted(order, key=lambda r: -r.confidence)[:4])
            for order in itertools.permutations(rows)
        ]
        expected = Fraction(sum(hits), 4 * len(hits))
        assert accuracy_at(groups, 8, 10) == pytest.approx(float(expected), abs=1e-12)


def shared_right(rows: list[Row]) -> list[tuple[float, Fraction]]:
    """Rank the positions and give each the accuracy of its ties."""
    ranked = sorted(rows, key=lambda r: -r.confidence)
    return [
        (r.confidence, Fraction(sum(t.right for t in ties), len(ties)))
        for r in ranked
        if (ties := [t for t in rows if t.confidence == r.confidence])
    ]


def slow_abstention(rows: list[Row]) -> dict[str, Fraction]:
    scored = [r for r in rows if r.scored]
    outside = [r for r in rows if not r.scored]
    ranked = shared_right(scored)
    n = len(ranked)
    wanted = Fraction(8 * n, 10)
    kept, alarms_kept = Fraction(0), Fraction(0)
    for k, (_, accuracy) in enumerate(ranked):
        kept += accuracy * min(Fraction(1), max(Fraction(0), wanted - k))
    threshold = ranked[math.ceil(wanted) - 1][0]
    above = sum(r.confidence > threshold for r in scored)
    level = sum(r.confidence == threshold for r in scored)
    for row in outside:
        if row.answer in VOCABULARY and row.confidence >= threshold:
            whole = row.confidence > threshold
            alarms_kept += 1 if whole else Fraction(wanted - above, level)
    coverages = [Fraction(0)]
    for t in {r.confidence for r in scored}:
        answered = [r for r in scored if r.confidence >= t]
        if Fraction(sum(r.right for r in answered), len(answered)) >= Fraction(9, 10):
            coverages.append(Fraction(len(answered), n))
    risks = [1 - sum(a for _, a in ranked[:k]) / Fraction(k) for k in range(1, n + 1)]
    found = {
        "accuracy_at_80": kept / wanted,
        "coverage_at_90": max(coverages),
        "aurc": sum(risks, Fraction(0)) / n,
    }
    return found | ({"false_alarms_at_80": alarms_kept / len(outside)} if outside else {})


@given(exams())
@settings(max_examples=200, deadline=None)
def test_abstention_is_that_of_the_obvious_form_in_fractions(exam: Exam) -> None:
    rows = tabulated(exam)
    found = figures(exam)["abstention"]
    if not any(r.scored for r in rows):
        assert found is None
        return
    for name, expected in slow_abstention(rows).items():
        assert found[name] == pytest.approx(float(expected), abs=1e-12), name


@given(exams())
@settings(max_examples=100, deadline=None)
def test_both_aurocs_are_scikit_learns(exam: Exam) -> None:
    rows = tabulated(exam)
    good = [r.confidence for r in rows if r.scored and r.right]
    wrong = [r.confidence for r in rows if r.scored and not r.right]
    outside = [r.confidence for r in rows if not r.scored]
    found = figures(exam)["abstention"]
    if found is None:
        assert not good
        assert not wrong
        return
    for name, other in (("auroc_right_wrong", wrong), ("auroc_right_oov", outside)):
        if good and other:
            truth = [1] * len(good) + [0] * len(other)
            assert found[name] == pytest.approx(roc_auc_score(truth, good + other), abs=1e-12)
        else:
            assert found[name] is None


@given(exams())
@settings(max_examples=100, deadline=None)
def test_shares_are_those_of_a_plain_count(exam: Exam) -> None:
    rows = tabulated(exam)
    scored = [r for r in rows if r.scored]
    outside = [r for r in rows if not r.scored]
    found = figures(exam)
    assert found["ger"] == pytest.approx(sum(not r.right for r in rows) / len(rows))
    assert found["counts"] == {
        "clips": len(exam.labels),
        "positions": len(rows),
        "scored_tokens": len(scored),
        "scored_signs": len({r.label for r in scored}),
        "oov_positions": len(outside),
    }
    if scored:
        assert found["top1"] == pytest.approx(sum(r.right for r in scored) / len(scored))
        assert found["top3"] >= found["top1"]
    if outside:
        alarms = sum(r.answer in VOCABULARY for r in outside)
        assert found["false_alarms"] == pytest.approx(alarms / len(outside))
