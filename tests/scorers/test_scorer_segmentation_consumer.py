"""Recovery, recognition, sequence error and rejection against slow, obvious references."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jiwer
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from scorers.segmentation import (
    UNKNOWN,
    LabelledSegment,
    SegmentationLabel,
    SegmentationParameters,
    fit_rejection,
    score,
)
from scorers.segmentation.corpus import build_corpus
from scorers.segmentation.documents import Answer, FrameSpan
from scorers.segmentation.figures import trapezoid_weights
from scorers.segmentation.rejection import JOINT_GRID, RejectionLevel, fit_joint
from scorers.segmentation.sequence import word_errors

VOCABULARY = ("YOU", "OLD", "HOW")
GLOSSES = (*VOCABULARY, "HOUSE", "UNKNOWN", "TREE")
ANSWERS = (*VOCABULARY, UNKNOWN, "HOUSE")


@dataclass(frozen=True)
class Clip:
    references: list[tuple[FrameSpan, str]]
    predictions: list[tuple[FrameSpan, str, float]]
    frames: int


@st.composite
def clips(draw: st.DrawFn) -> Clip:
    step = st.tuples(st.integers(0, 5), st.integers(1, 10))
    references = spread(draw(st.lists(st.tuples(step, st.sampled_from(GLOSSES)), max_size=6)))
    answer = st.tuples(st.sampled_from(ANSWERS), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.97, 1.0]))
    predictions = spread(draw(st.lists(st.tuples(step, answer), max_size=7)))
    frames = max([1, *(span[1] for span, _ in references), *(span[1] for span, _ in predictions)])
    return Clip(references, [(span, *said) for span, said in predictions], frames)


def spread(items: list[tuple[tuple[int, int], Any]]) -> list[tuple[FrameSpan, Any]]:
    out, at = [], 0
    for (gap, length), thing in items:
        out.append(((at + gap, at + gap + length), thing))
        at += gap + length
    return out


corpora = st.lists(clips(), min_size=1, max_size=4)


def labels_of(corpus: list[Clip]) -> list[SegmentationLabel]:
    return [
        SegmentationLabel(
            f"{place:04d}",
            f"S{place % 2}",
            1.0,
            clip.frames,
            tuple(LabelledSegment(g, float(a), float(b)) for (a, b), g in clip.references),
        )
        for place, clip in enumerate(corpus)
    ]


def spans_of(corpus: list[Clip]) -> dict[str, list[FrameSpan]]:
    return {f"{i:04d}": [span for span, _, _ in clip.predictions] for i, clip in enumerate(corpus)}


def answers_of(corpus: list[Clip]) -> dict[str, list[Answer]]:
    return {
        f"{i:04d}": [(gloss, c) for _, gloss, c in clip.predictions]
        for i, clip in enumerate(corpus)
    }


def public(corpus: list[Clip], levels: tuple[RejectionLevel, ...] | None = None) -> dict[str, Any]:
    card = score(
        labels_of(corpus),
        spans_of(corpus),
        VOCABULARY,
        SegmentationParameters(resamples=2),
        consumer=answers_of(corpus),
        rejection_thresholds=levels,
    )
    return card.public_document()["public"]  # type: ignore[no-any-return]


def shared(a: FrameSpan, b: FrameSpan) -> int:
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def iou(a: FrameSpan, b: FrameSpan) -> Fraction:
    return Fraction(shared(a, b), a[1] - a[0] + b[1] - b[0] - shared(a, b))


def slow_matches(clip: Clip) -> list[tuple[FrameSpan, str, FrameSpan, str]]:
    """Match the in-vocabulary references, best pair first, by scanning."""
    inside = [(span, gloss) for span, gloss in clip.references if gloss in VOCABULARY]
    free = [
        (-iou(span, window), r, p)
        for r, (span, _) in enumerate(inside)
        for p, (window, _, _) in enumerate(clip.predictions)
        if shared(span, window)
    ]
    found = []
    while free:
        _, r, p = min(free)
        found.append((*inside[r], clip.predictions[p][0], clip.predictions[p][1]))
        free = [item for item in free if item[1] != r and item[2] != p]
    return found


def slow_is_outside(window: FrameSpan, clip: Clip) -> bool:
    inside = [shared(window, span) for span, gloss in clip.references if gloss in VOCABULARY]
    outside = [shared(window, span) for span, gloss in clip.references if gloss not in VOCABULARY]
    return max(outside, default=0) > max(inside, default=0)


def jiwer_errors(pairs: list[tuple[list[str], list[str]]]) -> dict[str, int]:
    """Count with jiwer; words that can never be right get names of their own."""
    references = [" ".join(reference) for reference, _ in pairs]
    hypotheses = [
        " ".join(w if w in VOCABULARY else "never-right" for w in hypothesis)
        for _, hypothesis in pairs
    ]
    found = jiwer.process_words(references, hypotheses)
    words = sum(len(reference) for reference, _ in pairs)
    return {
        "s": found.substitutions,
        "d": found.deletions,
        "i": found.insertions,
        "n": words,
    }


def sequences(corpus: list[Clip], *, iv: bool, threshold: float = 0.0) -> list[Any]:
    return [
        (
            [gloss for _, gloss in clip.references if gloss in VOCABULARY],
            [
                gloss
                for window, gloss, c in clip.predictions
                if not (iv and slow_is_outside(window, clip))
                and (0.0 if gloss == UNKNOWN else c) >= threshold
            ],
        )
        for clip in corpus
    ]


@given(corpora)
@settings(max_examples=200, deadline=None)
def test_recovery_and_utility_are_those_of_the_slow_definition(corpus: list[Clip]) -> None:
    found = public(corpus)
    matches = [match for clip in corpus for match in slow_matches(clip)]
    references = sum(gloss in VOCABULARY for clip in corpus for _, gloss in clip.references)
    right = [iou(span, window) for span, gloss, window, said in matches if gloss == said]
    if not references:
        assert found["coverage"] is found["auc_ru"] is found["utility"] is None
        assert found["reasons"]["auc_ru"] == "no reference is in the consumer's vocabulary"
        return
    k = [sum(value >= Fraction(tenth, 10) for value in right) for tenth in range(3, 10)]
    assert [row["k"] for row in found["utility"]] == k
    u = np.array(k) / references
    assert found["auc_ru"] == pytest.approx(np.trapezoid(u, dx=0.1) / 0.6, abs=1e-12)
    assert found["coverage"] == pytest.approx(len(matches) / references)
    assert found["all_reference_accuracy"] == pytest.approx(len(right) / references)
    if matches:
        c = [shared(s, w) / (s[1] - s[0]) for s, _, w, _ in matches]
        q = [shared(s, w) / (w[1] - w[0]) for s, _, w, _ in matches]
        assert found["retained"] == pytest.approx(np.mean(c), abs=1e-12)
        assert found["purity"] == pytest.approx(np.mean(q), abs=1e-12)
        assert found["matched_accuracy"] == pytest.approx(len(right) / len(matches))
    else:
        assert found["retained"] is found["purity"] is found["matched_accuracy"] is None


@given(corpora)
@settings(max_examples=200, deadline=None)
def test_both_word_error_rates_have_the_errors_that_jiwer_counts(corpus: list[Clip]) -> None:
    found = public(corpus)
    for name, iv in (("wer_all", False), ("wer_iv", True)):
        expected = jiwer_errors(sequences(corpus, iv=iv))
        shown = dict(found[name])
        wer = shown.pop("wer")
        assert shown == expected
        if expected["n"]:
            errors = expected["s"] + expected["d"] + expected["i"]
            assert wer == pytest.approx(errors / expected["n"])
        else:
            assert wer is None
            assert f"{name}.wer" in found["reasons"]
    predictions = [(clip, window) for clip in corpus for window, _, _ in clip.predictions]
    dropped = sum(slow_is_outside(window, clip) for clip, window in predictions)
    share = dropped / len(predictions) if predictions else None
    assert found["oov_share"] == (None if share is None else pytest.approx(share))


def test_a_clip_without_references_adds_insertions_only() -> None:
    empty = Clip([], [((0, 2), "YOU", 1.0), ((2, 4), "OLD", 1.0)], 5)
    full = Clip([((0, 4), "YOU")], [((0, 4), "YOU", 1.0)], 5)
    assert public([empty, full])["wer_all"] == {"wer": 2.0, "s": 0, "d": 0, "i": 2, "n": 1}


def test_a_prediction_that_overlaps_both_sides_alike_stays_in_wer_iv() -> None:
    def one(start: int) -> dict[str, Any]:
        references = [((0, 10), "HOUSE"), ((10, 20), "YOU")]
        return public([Clip(references, [((start, start + 8), "OLD", 1.0)], 30)])

    assert one(6)["oov_share"] == 0.0, "4 frames each: the tie stays"
    assert one(5)["oov_share"] == 1.0, "5 frames outside against 3 inside"
    assert one(6)["wer_iv"] == {"wer": 1.0, "s": 1, "d": 0, "i": 0, "n": 1}
    assert one(5)["wer_iv"] == {"wer": 1.0, "s": 0, "d": 1, "i": 0, "n": 1}
    assert one(21)["oov_share"] == 0.0, "no overlap at all: it stays"


def test_overlap_with_out_of_vocabulary_signs_is_in_frames_not_in_iou() -> None:
    references = [((0, 30), "HOUSE"), ((30, 33), "YOU")]
    clip = Clip(references, [((26, 33), "YOU", 1.0)], 40)
    assert iou((30, 33), (26, 33)) > iou((0, 30), (26, 33))
    assert public([clip])["oov_share"] == 1.0


def test_unknown_never_equals_a_reference_even_of_that_name() -> None:
    clip = Clip([((0, 5), UNKNOWN)], [((0, 5), UNKNOWN, 1.0)], 6)
    card = score(
        labels_of([clip]),
        spans_of([clip]),
        [UNKNOWN, "YOU"],
        SegmentationParameters(),
        consumer=answers_of([clip]),
    )
    assert card.public["all_reference_accuracy"] == 0.0
    assert card.public["wer_all"] == {"wer": 1.0, "s": 1, "d": 0, "i": 0, "n": 1}


glosses = st.lists(st.sampled_from(["A", "B", "C", "D"]), max_size=8)


@given(st.lists(st.tuples(glosses, glosses), min_size=1, max_size=5))
@settings(max_examples=300, deadline=None)
def test_word_errors_are_jiwers_and_their_invariants_hold(
    pairs: list[tuple[list[str], list[str]]],
) -> None:
    s, d, i, n = word_errors([r for r, _ in pairs], [h for _, h in pairs])
    found = jiwer.process_words([" ".join(r) for r, _ in pairs], [" ".join(h) for _, h in pairs])
    assert (s, d, i) == (found.substitutions, found.deletions, found.insertions)
    assert n == sum(len(r) for r, _ in pairs)
    assert i - d == sum(len(h) - len(r) for r, h in pairs)
    assert s + d + i == sum(slow_distance(r, h) for r, h in pairs)


def slow_distance(reference: list[str], hypothesis: list[str]) -> int:
    row = list(range(len(hypothesis) + 1))
    for place, word in enumerate(reference, 1):
        above, row = row, [place]
        for column, said in enumerate(hypothesis, 1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (word != said)))
    return row[-1]


def test_pairs_of_unequal_number_are_refused_not_truncated() -> None:
    with pytest.raises(ValueError, match="2 references but 1 hypotheses"):
        word_errors([["A"], ["B"]], [["A"]])
    assert word_errors([], []) == (0, 0, 0, 0)


confidences = st.lists(st.sampled_from([0.0, 0.2, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=40)


@given(confidences)
@settings(max_examples=200, deadline=None)
def test_a_threshold_is_the_largest_that_still_retains_its_share(cache: list[float]) -> None:
    for level in fit_rejection(cache):
        need = Fraction(level.retention_percent, 100)
        enough = [t for t in cache if Fraction(sum(c >= t for c in cache), len(cache)) >= need]
        assert level.threshold == max(enough)
        assert level.retained == sum(c >= level.threshold for c in cache) / len(cache)


@given(corpora, st.sampled_from([0.0, 0.1, 0.5, 1.0]))
@settings(max_examples=100, deadline=None)
def test_rejected_clips_are_not_emitted(corpus: list[Clip], threshold: float) -> None:
    found = public(corpus, (RejectionLevel(90, threshold, 0.9),))["rejection"][0]
    for name, iv in (("wer_all", False), ("wer_iv", True)):
        expected = jiwer_errors(sequences(corpus, iv=iv, threshold=threshold))
        assert {key: found[name][key] for key in "sdin"} == expected
    stated = [(gloss, c) for clip in corpus for _, gloss, c in clip.predictions]
    kept = sum((0.0 if gloss == UNKNOWN else c) >= threshold for gloss, c in stated)
    share = kept / len(stated) if stated else None
    assert found["retained"] == (None if share is None else pytest.approx(share))


@given(corpora, st.data())
@settings(max_examples=40, deadline=None)
def test_the_joint_choice_is_that_of_trying_every_pair(
    corpus: list[Clip], data: st.DataObject
) -> None:
    other = [
        Clip(clip.references, data.draw(st.permutations(clip.predictions)), clip.frames)
        for clip in corpus
    ]
    other = [
        Clip(
            clip.references,
            [
                (old[0], *new[1:])
                for old, new in zip(first.predictions, clip.predictions, strict=True)
            ],
            clip.frames,
        )
        for first, clip in zip(corpus, other, strict=True)
    ]
    tried = []
    for place, side in enumerate((corpus, other)):
        for threshold in JOINT_GRID:
            counts = jiwer_errors(sequences(side, iv=True, threshold=threshold))
            tried.append((counts["s"] + counts["d"] + counts["i"], threshold, place, counts["n"]))
    errors, threshold, place, words = min(tried)
    sides = {
        name: build_corpus(labels_of(side), spans_of(side), VOCABULARY, answers_of(side))
        for name, side in (("first", corpus), ("second", other))
    }
    found = fit_joint(sides)
    if not words:
        assert found is None
        return
    assert found is not None
    assert (found.candidate, found.threshold) == (("first", "second")[place], threshold)
    assert found.wer_iv == pytest.approx(errors / words)


def test_the_joint_grid_is_the_papers() -> None:
    assert len(JOINT_GRID) == 20
    assert list(JOINT_GRID) == sorted(JOINT_GRID)
    assert (JOINT_GRID[0], JOINT_GRID[6], JOINT_GRID[-2]) == (0.0, 0.075, 0.975)


def test_an_empty_or_absurd_validation_cache_is_refused() -> None:
    with pytest.raises(MalformedDocument, match="holds no confidence"):
        fit_rejection([])
    with pytest.raises(MalformedDocument, match=r"leaves \[0, 1\]"):
        fit_rejection([0.5, float("nan")])


@pytest.mark.parametrize("grid", [(50,), (30, 50), (30, 40, 70), tuple(range(30, 100, 10))])
def test_the_weights_of_the_utility_curve_are_those_of_the_trapezoid_rule(
    grid: tuple[int, ...],
) -> None:
    weights = trapezoid_weights(grid)
    assert weights.sum() == (2 * (grid[-1] - grid[0]) or 1)
    if len(grid) > 1:
        curve = np.array(grid) ** 2.0
        area = np.trapezoid(curve, grid) / (grid[-1] - grid[0])
        assert weights @ curve / weights.sum() == pytest.approx(area)
