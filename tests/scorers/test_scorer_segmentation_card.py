"""The card as a whole: its keys, its nulls, its refusals, what never changes it."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.annotations import Span
from manifests.errors import MalformedDocument
from scorers.segmentation import (
    LabelledSegment,
    Matcher,
    SegmentationLabel,
    SegmentationParameters,
    SystemOutput,
    fit_rejection,
    renz_parameters,
    score,
    segment_frames,
)
from scorers.segmentation.corpus import build_corpus
from scorers.segmentation.measurement import clip_counts

VOCABULARY = [f"G{number}" for number in range(12)]
PARAMETERS = SegmentationParameters(resamples=200)

KEYS = {
    *("mf1b", "mf1s", "frame_macro_f1", "frame_macro_f1_io", "foreground_iou"),
    *("coverage", "retained", "purity", "matched_accuracy", "all_reference_accuracy"),
    *("auc_ru", "auc_ru_grid", "utility", "wer_all", "wer_iv", "oov_share"),
    *("count_ratio_all", "count_ratio_iv", "rejection", "intervals", "counts"),
}


def exam(
    seed: int, clips: int = 12, signers: int = 3
) -> tuple[list[SegmentationLabel], SystemOutput]:
    """Draw a small exam and a plausible system with a consumer."""
    draw = random.Random(seed)
    labels, predictions, consumer = [], {}, {}
    for number in range(clips):
        clip, at, segments = f"{number:04d}", 0, []
        spans: list[tuple[int, int]] = []
        answers: list[tuple[str, float | None]] = []
        for _ in range(draw.randint(1, 6)):
            start = at + draw.randint(0, 6)
            at = start + draw.randint(3, 15)
            gloss = f"G{draw.randint(0, 17)}"
            segments.append(LabelledSegment(gloss, float(start), float(at)))
            low = max(start + draw.randint(-2, 2), spans[-1][1] if spans else 0)
            high = max(low + 1, at + draw.randint(-2, 0))
            if draw.random() < 0.9:
                spans.append((low, high))
                said = gloss if draw.random() < 0.6 else f"G{draw.randint(0, 11)}"
                answers.append((said, round(draw.random(), 3)))
        label = SegmentationLabel(clip, f"S{number % signers}", 1.0, at + 3, tuple(segments))
        labels.append(label)
        predictions[clip], consumer[clip] = spans, answers
    return labels, SystemOutput("drawn", predictions, consumer)


def document(
    labels: list[SegmentationLabel],
    output: SystemOutput,
    vocabulary: list[str] | None = VOCABULARY,
    parameters: SegmentationParameters = PARAMETERS,
) -> dict[str, Any]:
    levels = fit_rejection([0.1, 0.4, 0.8, 0.9])
    return score(
        labels,
        output.predictions,
        vocabulary,
        parameters,
        consumer=output.consumer,
        rejection_thresholds=levels,
    ).as_document()


def test_the_card_has_its_stable_keys_and_is_plain_json() -> None:
    card = document(*exam(1))
    assert set(card["public"]) == KEYS
    assert set(card["public"]["wer_all"]) == set(card["public"]["wer_iv"]) == {"wer", *"sdin"}
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    assert card["complete"] is True
    assert card["track"] == "segmentation"
    assert [row["retention"] for row in card["public"]["rejection"]] == [0.95, 0.9, 0.8]


def test_a_signers_own_figures_are_private_and_those_of_its_clips_alone() -> None:
    labels, output = exam(2)
    card = document(labels, output)
    own = [label for label in labels if label.signer_id == "S1"]
    names = {label.clip_id for label in own}
    alone = document(
        own,
        SystemOutput(
            "own",
            {clip: spans for clip, spans in output.predictions.items() if clip in names},
            {clip: said for clip, said in (output.consumer or {}).items() if clip in names},
        ),
    )
    for name in ("mf1s", "mf1b", "auc_ru", "wer_all"):
        assert card["private"]["by_signer"]["S1"][name] == alone["public"][name]
    assert "by_signer" not in card["public"]


def test_a_perfect_system_has_perfect_figures() -> None:
    labels, _ = exam(3)
    spans = {
        label.clip_id: [segment_frames(s, label.fps) for s in label.segments] for label in labels
    }
    said = {label.clip_id: [(s.gloss, 1.0) for s in label.segments] for label in labels}
    card = document(labels, SystemOutput("gold", spans, said))["public"]
    for name in ("mf1b", "mf1s", "frame_macro_f1", "foreground_iou", "coverage", "auc_ru"):
        assert card[name] == 1.0
    assert card["wer_iv"]["wer"] == 0.0
    outside = sum(s.gloss not in VOCABULARY for label in labels for s in label.segments)
    assert card["wer_all"]["i"] == outside > 0
    assert card["retained"] == card["purity"] == card["count_ratio_all"] == 1.0


def test_without_a_consumer_only_what_it_would_say_is_null_with_a_reason() -> None:
    labels, output = exam(4)
    card = document(labels, replace(output, consumer=None))["public"]
    silent = {"matched_accuracy", "all_reference_accuracy", "auc_ru", "utility", "rejection"}
    silent |= {"wer_all", "wer_iv"}
    assert {name for name, value in card.items() if value is None} == silent
    assert set(card["reasons"]) == silent
    assert set(card["reasons"].values()) == {"no consumer answered the predicted clips"}
    full = document(labels, output)["public"]
    assert all(card[name] == full[name] for name in KEYS - silent - {"intervals"})


def test_without_a_vocabulary_only_localisation_is_left() -> None:
    labels, output = exam(5)
    card = document(labels, output, None)["public"]
    left = {name for name, value in card.items() if isinstance(value, float)}
    assert left == {
        *("mf1b", "mf1s", "frame_macro_f1", "frame_macro_f1_io", "foreground_iou"),
        "count_ratio_all",
    }
    assert card["reasons"]["coverage"] == "no consumer vocabulary was given"


def test_a_missing_clip_makes_every_figure_null() -> None:
    labels, output = exam(6)
    predictions = {k: v for k, v in output.predictions.items() if k != "0003"}
    card = document(labels, SystemOutput("short", predictions, None))
    assert card["complete"] is False
    assert all(card["public"][name] is None for name in KEYS - {"counts"})
    assert card["public"]["reasons"]["mf1s"] == (
        "incomplete: the predictions lack 1 of 12 clips, 0003 first"
    )
    assert card["private"] == {}


def test_a_clip_that_the_consumer_left_out_makes_the_run_incomplete() -> None:
    labels, output = exam(7)
    consumer = {k: v for k, v in (output.consumer or {}).items() if k != "0000"}
    assert output.predictions["0000"]
    card = document(labels, replace(output, consumer=consumer))
    assert card["complete"] is False
    assert "the consumer does not answer 1 of 12 clips" in card["public"]["reasons"]["auc_ru"]


def test_answers_missing_at_the_end_of_a_clip_are_unknown_and_least_confident() -> None:
    labels, output = exam(8)
    assert output.consumer is not None
    short = {clip: said[:-1] for clip, said in output.consumer.items()}
    padded = {
        clip: [*said, *[("UNKNOWN", 0.0)] * (len(output.predictions[clip]) - len(said))]
        for clip, said in short.items()
    }
    assert document(labels, replace(output, consumer=short)) == document(
        labels, replace(output, consumer=padded)
    )


def test_answers_without_confidence_leave_only_rejection_null() -> None:
    labels, output = exam(9)
    assert output.consumer is not None
    silent = {clip: [(gloss, None) for gloss, _ in said] for clip, said in output.consumer.items()}
    card = document(labels, replace(output, consumer=silent))["public"]
    assert card["rejection"] is None
    assert card["reasons"] == {"rejection": "the consumer gives no confidence for some answers"}
    assert card["auc_ru"] == document(labels, output)["public"]["auc_ru"]


def test_nothing_annotated_and_nothing_predicted_is_null_not_zero() -> None:
    labels = [SegmentationLabel("0000", "S", 25.0, 10, ())]
    card = document(labels, SystemOutput("empty", {"0000": []}, {"0000": []}))["public"]
    assert card["mf1s"] is card["mf1b"] is card["foreground_iou"] is card["coverage"] is None
    assert card["reasons"]["mf1s"] == "nothing is annotated and nothing is predicted"
    assert card["wer_all"] == {"wer": None, "s": 0, "d": 0, "i": 0, "n": 0}
    assert card["intervals"] is None


def test_predictions_where_nothing_is_annotated_score_zero() -> None:
    labels = [SegmentationLabel("0000", "S", 25.0, 10, ())]
    card = document(labels, SystemOutput("eager", {"0000": [(0, 4)]}, {"0000": [("G1", 1.0)]}))
    assert card["public"]["mf1s"] == card["public"]["mf1b"] == 0.0
    assert card["public"]["count_ratio_all"] is None


@pytest.mark.parametrize(
    ("spans", "fact"),
    [
        ([(0, 4), (3, 6)], r"segment 1 \[3, 6\): it starts before frame 4"),
        ([(5, 8), (0, 3)], r"segment 1 \[0, 3\): it starts before frame 8"),
        ([(2, 2)], r"segment 0 \[2, 2\): it holds no frame"),
        ([(4, 2)], r"segment 0 \[4, 2\): it holds no frame"),
        ([(-1, 2)], r"segment 0 \[-1, 2\): it leaves the clip of 20 frames"),
        ([(0, 2), (18, 21)], r"segment 1 \[18, 21\): it leaves the clip of 20 frames"),
    ],
)
def test_a_segment_that_cannot_be_is_refused_by_clip_and_index(
    spans: list[tuple[int, int]], fact: str
) -> None:
    labels = [SegmentationLabel("0000", "S", 1.0, 20, ())]
    with pytest.raises(MalformedDocument, match=f"predictions, clip 0000, {fact}"):
        score(labels, {"0000": spans}, VOCABULARY, PARAMETERS)
    wrong = tuple(LabelledSegment("A", float(start), float(end)) for start, end in spans)
    with pytest.raises(MalformedDocument, match=f"labels, clip 0000, {fact}"):
        score([replace(labels[0], segments=wrong)], {"0000": []}, VOCABULARY, PARAMETERS)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"fps": 0.0}, "fps is 0.0"),
        ({"fps": math.nan}, "fps is nan"),
        ({"n_frames": 0}, "n_frames is 0"),
        ({"n_frames": 2**24}, "n_frames is 16777216"),
        ({"segments": (LabelledSegment("A", 0.0, math.inf),)}, "segment 0: a time is not finite"),
        ({"fps": 60.0, "segments": (LabelledSegment("A", 0.0, 1e308),)}, "a time is not finite"),
    ],
)
def test_a_label_that_cannot_be_is_refused(change: dict[str, Any], fact: str) -> None:
    label = replace(SegmentationLabel("0000", "S", 1.0, 20, ()), **change)
    with pytest.raises(MalformedDocument, match=f"labels, clip 0000.*{fact}"):
        score([label], {"0000": []}, VOCABULARY, PARAMETERS)


def test_unknown_and_repeated_clips_and_surplus_answers_are_refused() -> None:
    labels, output = exam(10)
    with pytest.raises(MalformedDocument, match="labels: clip 0000 stands twice"):
        document([*labels, labels[0]], output)
    with pytest.raises(MalformedDocument, match="predictions: clip 9999 is not in this exam"):
        document(labels, replace(output, predictions={**output.predictions, "9999": []}))
    with pytest.raises(MalformedDocument, match="consumer: clip 9999 is not in this exam"):
        document(labels, replace(output, consumer={**(output.consumer or {}), "9999": []}))
    many = {**(output.consumer or {}), "0000": [("G1", 1.0)] * 9}
    with pytest.raises(MalformedDocument, match="consumer, clip 0000: 9 answers for"):
        document(labels, replace(output, consumer=many))
    with pytest.raises(MalformedDocument, match="they hold no clip"):
        document([], SystemOutput("none", {}, {}))


@pytest.mark.parametrize("confidence", [-0.1, 1.5, math.nan, math.inf])
def test_a_confidence_out_of_bounds_is_refused(confidence: float) -> None:
    labels, output = exam(11)
    wrong = {**(output.consumer or {}), "0000": [("G1", confidence)]}
    with pytest.raises(MalformedDocument, match=r"consumer, clip 0000, answer 0: confidence"):
        document(labels, replace(output, consumer=wrong))


def test_an_untrusted_clip_id_is_escaped_in_the_message() -> None:
    labels, output = exam(12)
    with pytest.raises(MalformedDocument) as caught:
        document(labels, replace(output, predictions={**output.predictions, "\x1b[31m": []}))
    assert "\x1b" not in str(caught.value)


def test_frames_are_truncated_as_the_loader_truncates_them() -> None:
    assert segment_frames(LabelledSegment("A", 0.29, 0.58), 100.0) == (28, 57)
    assert segment_frames(LabelledSegment("A", 1.0, 2.04), 25.0) == (25, 51)


@given(st.integers(0, 10**7), st.integers(1, 10**5), st.sampled_from([23.976, 25.0, 29.97, 60.0]))
@settings(max_examples=100, deadline=None)
def test_labels_and_annotations_agree_on_the_frames_of_a_sign(
    start_ms: int, length_ms: int, fps: float
) -> None:
    start, end = start_ms / 1000, (start_ms + length_ms) / 1000
    assert segment_frames(LabelledSegment("A", start, end), fps) == Span(
        start=start, end=end
    ).frames(fps)


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_clips_changes_nothing(seed: int, shuffle: random.Random) -> None:
    labels, output = exam(seed, clips=6)
    order = list(labels)
    shuffle.shuffle(order)
    turned = SystemOutput(
        "turned",
        dict(reversed(list(output.predictions.items()))),
        dict(reversed(list((output.consumer or {}).items()))),
    )
    assert document(order, turned) == document(labels, output)


@given(st.integers(0, 10_000), st.permutations(range(12)))
@settings(max_examples=40, deadline=None)
def test_renaming_the_glosses_changes_nothing(seed: int, order: list[int]) -> None:
    names = {f"G{old}": f"SIGN_{new}" for old, new in enumerate(order)}
    labels, output = exam(seed, clips=6)
    renamed = [
        replace(
            label,
            segments=tuple(replace(s, gloss=names.get(s.gloss, s.gloss)) for s in label.segments),
        )
        for label in labels
    ]
    said = {
        clip: [(names.get(gloss, gloss), c) for gloss, c in answers]
        for clip, answers in (output.consumer or {}).items()
    }
    assert document(renamed, replace(output, consumer=said), sorted(names.values())) == document(
        labels, output
    )


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_the_counts_of_two_halves_add_up_to_those_of_the_whole(seed: int, cut: int) -> None:
    labels, output = exam(seed, clips=6)
    parts = [labels[:cut], labels[cut:]]

    def total(part: list[SegmentationLabel]) -> Any:
        names = {label.clip_id for label in part}
        corpus = build_corpus(
            part,
            {clip: spans for clip, spans in output.predictions.items() if clip in names},
            VOCABULARY,
            {clip: said for clip, said in (output.consumer or {}).items() if clip in names},
        )
        return clip_counts(corpus, PARAMETERS).total()

    added, whole = total(parts[0]) + total(parts[1]), total(labels)
    assert set(added.columns) == set(whole.columns)
    for name, block in whole.columns.items():
        np.testing.assert_allclose(added[name], block, rtol=1e-12)


def test_the_scorer_string_names_every_parameter() -> None:
    changes: list[dict[str, Any]] = [
        {"matcher": Matcher.HUNGARIAN},
        {"matcher": Matcher.RENZ},
        {"f1s_percent": (50,)},
        {"tolerances_frames": (1, 2)},
        {"utility_percent": (40, 50, 60)},
        {"resamples": 7},
        {"seed": 3},
    ]
    strings = {SegmentationParameters(**change).scorer_string for change in [{}, *changes]}
    strings.add(renz_parameters().scorer_string)
    assert len(strings) == len(changes) + 2
    renz = renz_parameters().scorer_string
    assert "|match:renz|cmp:gt|" in renz
    assert "|mf1b:renz|" in renz


@pytest.mark.parametrize(
    "change",
    [
        {"f1s_percent": ()},
        {"f1s_percent": (50, 40)},
        {"utility_percent": (0, 50)},
        {"utility_percent": (50, 101)},
        {"tolerances_frames": (2, 2)},
        {"resamples": 0},
        {"seed": -1},
    ],
)
def test_absurd_parameters_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedDocument):
        SegmentationParameters(**change)


def test_importing_the_scorer_loads_neither_scipy_nor_pydantic() -> None:
    probe = (
        "import sys, scorers.segmentation; "
        "print(sorted({'scipy', 'pydantic', 'sklearn', 'sacrebleu'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True)
    assert found.stdout.decode().strip() == "[]"
