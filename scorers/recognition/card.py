"""Score a run of the recognition exam: labels and answers in, a card out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scorers.cards import Figure, NotComputed, ScoreCard, section
from scorers.recognition import accuracy
from scorers.recognition.abstention import abstention
from scorers.recognition.answers import (
    Answers,
    check_answers,
    encode_checked,
    missing_clips,
    missing_text,
)
from scorers.recognition.by_sign import by_sign, confusion
from scorers.recognition.exam import ClipLabels, Predictions, RecognitionParameters
from scorers.recognition.macro_f1 import SignCounts, clip_counts, macro_f1, macro_f1_replicates
from scorers.recognition.reference import Reference, encode_labels
from scorers.recognition.sequences import bleu, levenshtein_rate
from scorers.statistics.bootstrap import resample_weights
from scorers.statistics.intervals import noise_floor
from scorers.statistics.signature import scorer_string

TRACK = "recognition"
STEADY_SUPPORT = 3
PUBLIC_FIGURES = (
    "macro_f1",
    "macro_f1_floor",
    "macro_f1_min3",
    "top1",
    "top3",
    "top1_by_length",
    "held_out",
    "bleu1",
    "bleu2",
    "ger",
    "ger_levenshtein",
    "false_alarms",
    "abstention",
)
PRIVATE_FIGURES = ("by_sign", "confusion")


def score(
    labels: Sequence[ClipLabels],
    predictions: Predictions,
    vocabulary: Sequence[str],
    parameters: RecognitionParameters,
) -> ScoreCard:
    """Return the score card of one run.

    A run that has no entry for some clip is incomplete: its figures are null, with the reason.
    Raise ``MalformedDocument``, naming the clip, for answers that cannot be aligned or are out
    of bounds and for labels that do not follow their format.
    """
    reference = encode_labels(labels, vocabulary)
    check_answers(reference, predictions)
    absent = missing_clips(reference, predictions)
    if absent:
        nothing = NotComputed(f"incomplete: {missing_text(absent, reference)}")
        public: Mapping[str, Figure] = dict.fromkeys(PUBLIC_FIGURES, nothing)
        private: Mapping[str, Figure] = dict.fromkeys(PRIVATE_FIGURES, nothing)
    else:
        answers = encode_checked(reference, predictions)
        counts = clip_counts(answers)
        public = _public_figures(answers, counts, parameters)
        private = {"by_sign": by_sign(answers, counts.total()), "confusion": confusion(answers)}
    return ScoreCard(
        track=TRACK,
        scorer_name=parameters.scorer_name,
        scorer_version=parameters.version,
        scorer_string=recognition_string(reference, parameters),
        labels_version=parameters.labels_version,
        complete=not absent,
        public=section({**public, "counts": _counts(reference)}),
        private=section(private),
    )


def _public_figures(
    answers: Answers, clips: SignCounts, parameters: RecognitionParameters
) -> dict[str, Figure]:
    total = clips.total()
    return {
        "macro_f1": _macro(total, 1),
        "macro_f1_floor": _floor(clips, parameters),
        "macro_f1_min3": _macro(total, STEADY_SUPPORT),
        "top1": accuracy.top1(answers),
        "top3": accuracy.top3(answers),
        "top1_by_length": accuracy.top1_by_length(answers, parameters.length_tail),
        "held_out": accuracy.held_out(answers, parameters),
        "bleu1": bleu(answers, 1),
        "bleu2": bleu(answers, 2),
        "ger": accuracy.gloss_error_rate(answers),
        "ger_levenshtein": levenshtein_rate(answers),
        "false_alarms": accuracy.false_alarms(answers),
        "abstention": abstention(answers),
    }


def _macro(total: SignCounts, minimum_support: int) -> Figure:
    value = macro_f1(total, minimum_support)
    if value is None:
        return NotComputed(f"no scored sign has a support of {minimum_support} or more")
    return value


def _floor(clips: SignCounts, parameters: RecognitionParameters) -> Figure:
    if clips.support.size == 0:
        return accuracy.NO_SCORED
    weights = resample_weights(len(clips.support), parameters.resamples, parameters.seed)
    floor = noise_floor(macro_f1_replicates(clips, weights))
    return NotComputed("fewer than two resamples hold a scored sign") if floor is None else floor


def _counts(reference: Reference) -> dict[str, Figure]:
    scored = int(np.count_nonzero(reference.scored))
    return {
        "clips": len(reference.clip_ids),
        "positions": reference.label.size,
        "scored_tokens": scored,
        "scored_signs": np.count_nonzero(reference.support),
        "oov_positions": reference.label.size - scored,
    }


def recognition_string(reference: Reference, parameters: RecognitionParameters) -> str:
    """Return the scorer string: every parameter and convention that a figure depends on."""
    held_out = parameters.held_out_signer
    return scorer_string(
        parameters.scorer_name,
        parameters.version,
        {
            "resamples": parameters.resamples,
            "seed": parameters.seed,
            "rng": "pcg64",
            "unit": "clip",
            "floor": "1.96sd",
            "absent": "skipped",
            "f1": "averaged",
            "vocabulary": reference.vocabulary_digest[:12],
            "held_out": "none" if held_out is None else held_out,
            "lengths": f"exact,{parameters.length_tail}+",
            "bleu": "corpus,tok:none,smooth:none,eff:no",
            "ger": "positions",
            "ties": "shared",
            "at80": "fractional",
            "at90": "largest,whole-groups",
            "aurc": "mean-of-cumulative-means",
            "silent": "confidence-0",
        },
    )
