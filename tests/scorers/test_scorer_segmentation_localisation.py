"""mF1S, mF1B and frame figures against slow, obvious references."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import f1_score

from scorers.segmentation import (
    Boundaries,
    LabelledSegment,
    Matcher,
    Pooling,
    SegmentationLabel,
    SegmentationParameters,
    renz_parameters,
    score,
)
from scorers.segmentation.corpus import build_corpus
from scorers.segmentation.documents import FrameSpan
from scorers.segmentation.matching import one_to_one, overlapping_pairs
from scorers.segmentation.recovery import renz_thresholds

Spans = list[FrameSpan]
Clip = tuple[int, Spans, Spans]
"""Frames, references, predictions."""


def laid_out(steps: list[tuple[int, int]]) -> Spans:
    spans, at = [], 0
    for gap, length in steps:
        spans.append((at + gap, at + gap + length))
        at += gap + length
    return spans


steps = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 12)), max_size=6)


@st.composite
def clips(draw: st.DrawFn) -> Clip:
    references, predictions = laid_out(draw(steps)), laid_out(draw(steps))
    last = max([1, *(end for _, end in references + predictions)])
    return last + draw(st.integers(0, 3)), references, predictions


corpora = st.lists(clips(), min_size=1, max_size=4)


def labels_of(corpus: list[Clip]) -> list[SegmentationLabel]:
    return [
        SegmentationLabel(
            f"{place:04d}",
            f"S{place % 3}",
            1.0,
            frames,
            tuple(LabelledSegment("A", float(start), float(end)) for start, end in references),
        )
        for place, (frames, references, _) in enumerate(corpus)
    ]


def predictions_of(corpus: list[Clip]) -> dict[str, Spans]:
    return {f"{place:04d}": predictions for place, (_, _, predictions) in enumerate(corpus)}


def figure(corpus: list[Clip], name: str, parameters: SegmentationParameters) -> float | None:
    value = score(labels_of(corpus), predictions_of(corpus), ["A"], parameters).public[name]
    assert value is None or isinstance(value, float)
    return value


def shared(a: FrameSpan, b: FrameSpan) -> int:
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def iou(a: FrameSpan, b: FrameSpan) -> Fraction:
    common = shared(a, b)
    return Fraction(common, a[1] - a[0] + b[1] - b[0] - common)


def greedy(references: Spans, predictions: Spans) -> list[tuple[int, int]]:
    """Take the best remaining pair again and again, by scanning all of them."""
    free = [(r, p) for r in range(len(references)) for p in range(len(predictions))]
    free = [(r, p) for r, p in free if iou(references[r], predictions[p]) > 0]
    taken = []
    while free:
        best = min(free, key=lambda pair: (-iou(references[pair[0]], predictions[pair[1]]), *pair))
        taken.append(best)
        free = [(r, p) for r, p in free if r != best[0] and p != best[1]]
    return taken


def pooled_f1(hits: int, references: int, predictions: int) -> float:
    return 2 * hits / (references + predictions) if references + predictions else 0.0


def slow_mf1s(corpus: list[Clip]) -> float | None:
    references = sum(len(r) for _, r, _ in corpus)
    predictions = sum(len(p) for _, _, p in corpus)
    if references + predictions == 0:
        return None
    found = [iou(r[i], p[j]) for _, r, p in corpus for i, j in greedy(r, p)]
    thresholds = [Fraction(percent, 100) for percent in range(40, 80, 5)]
    hits = [sum(value >= threshold for value in found) for threshold in thresholds]
    return float(np.mean([pooled_f1(h, references, predictions) for h in hits]))


@given(corpora)
@settings(max_examples=200, deadline=None)
def test_mf1s_is_that_of_a_greedy_scan_over_exact_fractions(corpus: list[Clip]) -> None:
    assert figure(corpus, "mf1s", SegmentationParameters(resamples=10)) == pytest.approx(
        slow_mf1s(corpus), abs=1e-12
    )


@pytest.mark.parametrize(
    ("reference", "prediction", "percent"),
    [((0, 5), (0, 3), 60), ((0, 20), (0, 13), 65), ((0, 20), (0, 11), 55), ((0, 2), (0, 1), 50)],
)
def test_an_iou_that_equals_a_threshold_reaches_it_exactly(
    reference: FrameSpan, prediction: FrameSpan, percent: int
) -> None:
    corpus: list[Clip] = [(30, [reference], [prediction])]
    below = SegmentationParameters(f1s_percent=(percent,), resamples=10)
    above = SegmentationParameters(f1s_percent=(percent + 1,), resamples=10)
    assert figure(corpus, "mf1s", below) == 1.0
    assert figure(corpus, "mf1s", above) == 0.0


def test_the_float_grid_of_renz_mode_is_the_published_one() -> None:
    published = np.arange(0.4, 0.76, 0.05)
    assert renz_thresholds(tuple(range(40, 80, 5))).tolist() == published.tolist()
    assert 0.65 not in published.tolist()


def label_runs(frames: list[int]) -> Spans:
    """Return the runs of 1 as half-open intervals."""
    edges = np.flatnonzero(np.diff([0, *frames, 0]))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def renz_by_the_paper(corpus: list[Clip]) -> tuple[float, float]:
    """Score as Renz et al. describe: row-wise best pair, strict comparison, rounded percents."""
    thresholds = np.arange(0.4, 0.76, 0.05)
    hits, hits_b = np.zeros(8), np.zeros(4)
    sizes, sizes_b = np.zeros(2), np.zeros(2)
    for frames, references, predictions in corpus:
        sizes += [len(references), len(predictions)]
        matrix = np.array([[float(iou(r, p)) for r in references] for p in predictions])
        matrix = matrix.reshape(len(predictions), len(references))
        for value in best_pairs(-matrix):
            hits += -value > thresholds
        rests = [outside_midpoints(side, frames) for side in (references, predictions)]
        sizes_b += [len(rest) for rest in rests]
        distance = np.abs(np.array(rests[1])[:, None] - np.array(rests[0])[None, :])
        for value in best_pairs(distance.reshape(len(rests[1]), len(rests[0]))):
            hits_b += value <= np.arange(1, 5)
    percents = [percent_f1(h, *sizes) for h in hits]
    percents_b = [percent_f1(h, *sizes_b) for h in hits_b]
    return float(np.mean([round(p, 2) for p in percents])), float(round(np.mean(percents_b), 2))


def best_pairs(cost: np.ndarray) -> list[float]:
    """Take the cheapest cell (first row, then first column) and strike out its row and column."""
    chosen = []
    while cost.size:
        row, column = np.unravel_index(int(np.argmin(cost)), cost.shape)
        chosen.append(float(cost[row, column]))
        cost = np.delete(np.delete(cost, row, 0), column, 1)
    return chosen


def outside_midpoints(signs: Spans, frames: int) -> list[float]:
    inside = np.zeros(frames, int)
    for start, end in signs:
        inside[start:end] = 1
    return [(a + b) / 2 for a, b in label_runs((1 - inside).tolist())]


def percent_f1(hits: float, references: float, predictions: float) -> np.float64:
    if not hits:
        return np.float64(0)
    precision, recall = hits / predictions, hits / references
    return np.float64(2.0 * (precision * recall) / (precision + recall) * 100)


@given(
    st.lists(
        st.integers(1, 60).flatmap(
            lambda n: st.tuples(
                st.lists(st.sampled_from([0, 1, 1]), min_size=n, max_size=n),
                st.lists(st.sampled_from([0, 1, 1]), min_size=n, max_size=n),
            )
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=200, deadline=None)
def test_renz_mode_scores_random_label_strings_as_the_paper_does(
    strings: list[tuple[list[int], list[int]]],
) -> None:
    corpus = [(len(a), label_runs(a), label_runs(b)) for a, b in strings]
    sign, boundary = renz_by_the_paper(corpus)
    found = score(
        labels_of(corpus), predictions_of(corpus), ["A"], renz_parameters(resamples=10)
    ).public
    if any(r or p for _, r, p in corpus):
        assert found["mf1s"] == pytest.approx(sign / 100, abs=1e-12)
    else:
        assert found["mf1s"] is None
    if found["mf1b"] is None:
        assert all(not outside_midpoints(side, n) for n, *sides in corpus for side in sides)
    else:
        assert found["mf1b"] == pytest.approx(boundary / 100, abs=1e-12)


def test_two_adjacent_signs_have_their_common_edge_as_renz_boundary() -> None:
    parameters = SegmentationParameters(boundaries=Boundaries.RENZ, resamples=10)
    corpus: list[Clip] = [(10, [(0, 5), (5, 10)], [(0, 6), (6, 10)])]
    assert figure(corpus, "mf1b", parameters) == 1.0
    far: list[Clip] = [(20, [(0, 5), (5, 20)], [(0, 12), (12, 20)])]
    assert figure(far, "mf1b", parameters) == 0.0


def slow_mf1b(corpus: list[Clip]) -> float | None:
    hits, sizes = np.zeros(4), np.zeros(2)
    for _, references, predictions in corpus:
        left = sorted({edge for span in references for edge in span})
        right = sorted({edge for span in predictions for edge in span})
        sizes += [len(left), len(right)]
        free = [(abs(a - b), a, b) for a in left for b in right]
        while free:
            distance, a, b = min(free)
            hits += distance <= np.arange(1, 5)
            free = [item for item in free if item[1] != a and item[2] != b]
    if not sizes.sum():
        return None
    return float(np.mean([2 * h / sizes.sum() for h in hits]))


@given(corpora)
@settings(max_examples=200, deadline=None)
def test_mf1b_is_that_of_a_scan_for_the_nearest_free_endpoints(corpus: list[Clip]) -> None:
    assert figure(corpus, "mf1b", SegmentationParameters(resamples=10)) == pytest.approx(
        slow_mf1b(corpus), abs=1e-12
    )


@given(corpora)
@settings(max_examples=100, deadline=None)
def test_hungarian_pairs_have_the_total_iou_of_a_dense_assignment(corpus: list[Clip]) -> None:
    built = build_corpus(labels_of(corpus), predictions_of(corpus), ["A"])
    pairs = overlapping_pairs(built.references, built.predictions, built.n_frames)
    clip = built.references.clip[pairs.reference]
    chosen = one_to_one(pairs, clip, Matcher.HUNGARIAN)
    assert len(set(chosen.reference.tolist())) == chosen.reference.size
    assert len(set(chosen.prediction.tolist())) == chosen.prediction.size
    dense = 0.0
    for _, references, predictions in corpus:
        matrix = np.array([[float(iou(r, p)) for p in predictions] for r in references])
        if matrix.size:
            dense += matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    assert chosen.iou.sum() == pytest.approx(dense, abs=1e-9)


def test_hungarian_gives_up_the_best_pair_for_a_larger_total() -> None:
    corpus: list[Clip] = [(20, [(0, 10), (10, 13)], [(0, 3), (3, 13)])]
    assert greedy(corpus[0][1], corpus[0][2]) == [(0, 1)]
    for matcher, hits in ((Matcher.GREEDY, 1), (Matcher.HUNGARIAN, 2)):
        parameters = SegmentationParameters(matcher=matcher, f1s_percent=(30,), resamples=10)
        assert figure(corpus, "mf1s", parameters) == hits / 2


def test_ties_go_to_the_lower_reference_then_to_the_lower_prediction() -> None:
    labels = labels_of([(12, [(0, 4), (4, 8)], [])])
    corpus = build_corpus(labels, {"0000": [(2, 6)]}, ["A"])
    pairs = overlapping_pairs(corpus.references, corpus.predictions, corpus.n_frames)
    clip = corpus.references.clip[pairs.reference]
    assert one_to_one(pairs, clip, Matcher.GREEDY).reference.tolist() == [0]
    corpus = build_corpus(labels_of([(12, [(2, 6)], [])]), {"0000": [(0, 4), (4, 8)]}, ["A"])
    pairs = overlapping_pairs(corpus.references, corpus.predictions, corpus.n_frames)
    clip = corpus.references.clip[pairs.reference]
    assert one_to_one(pairs, clip, Matcher.GREEDY).prediction.tolist() == [0]


def bio(spans: Spans, frames: int) -> list[str]:
    tags = ["O"] * frames
    for start, end in spans:
        tags[start:end] = ["B"] + ["I"] * (end - start - 1)
    return tags


@given(corpora)
@settings(max_examples=150, deadline=None)
def test_frame_macro_f1_is_scikit_learns_on_the_tags_of_all_frames(corpus: list[Clip]) -> None:
    truth = [tag for n, references, _ in corpus for tag in bio(references, n)]
    said = [tag for n, _, predictions in corpus for tag in bio(predictions, n)]
    expected = f1_score(truth, said, average="macro", labels=["B", "I", "O"], zero_division=0)
    found = score(
        labels_of(corpus), predictions_of(corpus), ["A"], SegmentationParameters(resamples=10)
    ).public
    assert found["frame_macro_f1"] == pytest.approx(expected, abs=1e-12)
    in_or_out = f1_score(
        [tag != "O" for tag in truth],
        [tag != "O" for tag in said],
        average="macro",
        labels=[False, True],
        zero_division=0,
    )
    assert found["frame_macro_f1_io"] == pytest.approx(in_or_out, abs=1e-12)


@given(corpora)
@settings(max_examples=100, deadline=None)
def test_per_video_figures_are_means_over_the_clips(corpus: list[Clip]) -> None:
    parameters = SegmentationParameters(
        frame_f1=Pooling.PER_VIDEO, foreground_iou=Pooling.PER_VIDEO, resamples=10
    )
    f1s, ious = [], []
    for n, references, predictions in corpus:
        truth, said = bio(references, n), bio(predictions, n)
        f1s.append(f1_score(truth, said, average="macro", zero_division=0))
        either = [a != "O" or b != "O" for a, b in zip(truth, said, strict=True)]
        both = [a != "O" and b != "O" for a, b in zip(truth, said, strict=True)]
        ious.append(sum(both) / sum(either) if any(either) else 1.0)
    assert figure(corpus, "frame_macro_f1", parameters) == pytest.approx(np.mean(f1s), abs=1e-12)
    assert figure(corpus, "foreground_iou", parameters) == pytest.approx(np.mean(ious), abs=1e-12)


@given(corpora)
@settings(max_examples=60, deadline=None)
def test_foreground_iou_is_that_of_the_pooled_frame_sets(corpus: list[Clip]) -> None:
    truth = {(c, f) for c, (_, r, _) in enumerate(corpus) for a, b in r for f in range(a, b)}
    said = {(c, f) for c, (_, _, p) in enumerate(corpus) for a, b in p for f in range(a, b)}
    expected = len(truth & said) / len(truth | said) if truth | said else None
    found = figure(corpus, "foreground_iou", SegmentationParameters(resamples=10))
    assert found == pytest.approx(expected, abs=1e-12)
