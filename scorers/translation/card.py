"""Score a run of the translation exam: labels and sentences in, a card out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from manifests.text import escape_untrusted
from scorers.cards import Figure, NotComputed, ScoreCard, section
from scorers.translation.bleu import bleu_signature
from scorers.translation.bleurt_scores import SegmentScores
from scorers.translation.chrf import chrf_from_counts, chrf_signature
from scorers.translation.composite import Composite, composite
from scorers.translation.exam import SLICE_ORDER, Corpus, Slice, TranslationLabel, arrange
from scorers.translation.grounding import Grounding, grounding
from scorers.translation.measurement import CHRF_PART, Measurement, measure
from scorers.translation.parameters import GateMetric, TranslationParameters, translation_string
from scorers.translation.pose import Poses

TRACK = "translation"
PUBLIC_FIGURES = (
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
)
PRIVATE_FIGURES = ("grounding_scores", "by_clip")
NO_BLEURT = "no BLEURT checkpoint and no segment scores were given"
NO_CANARY = "the labels hold no canary clip"
NO_POSE = "no main clip has a reference pose"
ZERO_BLEURT = "the BLEURT of the main slices is 0: the generalization is 0 by rule"
INFINITE_G = "the score against deranged references is 0: G is infinite and passes any threshold"


def score(
    labels: Sequence[TranslationLabel],
    predictions: Mapping[str, str],
    parameters: TranslationParameters,
    *,
    bleurt: SegmentScores | None = None,
    poses: Poses | None = None,
) -> ScoreCard:
    """Return the score card of one run.

    ``predictions`` maps clip ids to sentences; a run that lacks a clip is incomplete and its
    figures are null, with the reason. Without ``bleurt``, S_translation and S_total are null;
    the separately named ``s_translation_partial``, of chrF and BLEU alone, never ranks.

    Raise ``MalformedDocument`` as ``measure`` does.
    """
    corpus = arrange(labels, predictions)
    if corpus.missing:
        return _incomplete(corpus, parameters)
    return card(measure(labels, predictions, parameters, bleurt=bleurt, poses=poses), parameters)


def card(measurement: Measurement, parameters: TranslationParameters) -> ScoreCard:
    """Return the score card of a complete run that is already measured."""
    figures = composite(measurement.table.sum(axis=0))
    gate = grounding(measurement, parameters)
    public: dict[str, Figure] = {
        **_main_figures(figures, gate, measurement),
        "by_slice": _by_slice(measurement),
        "grounding": _grounding(gate),
        "counts": _counts(measurement.corpus, measurement),
        "signatures": {"bleu": bleu_signature(parameters.tokenizer), "chrf": chrf_signature()},
        "bleurt_checkpoint": _checkpoint(measurement),
    }
    shown = section(public)
    if figures.bleurt == 0 and not np.isnan(figures.s_generalization):
        shown["flags"] = [ZERO_BLEURT]
    private = {"grounding_scores": _both_scores(gate), "by_clip": _by_clip(measurement)}
    digest = measurement.checkpoint[1] if measurement.checkpoint else None
    return ScoreCard(
        track=TRACK,
        scorer_name=parameters.scorer_name,
        scorer_version=parameters.version,
        scorer_string=translation_string(
            parameters, gate_metric=gate.metric, checkpoint_sha256=digest
        ),
        labels_version=parameters.labels_version,
        complete=True,
        public=shown,
        private=section(private),
    )


def gated_total(figures: Composite, gate: Grounding) -> float | None:
    """Return S_total under the gate: 0 where it failed, None where gate or figure is open."""
    total = float(figures.s_total)
    if math.isnan(total) or (gate.threshold is not None and gate.passed is None):
        return None
    return 0.0 if gate.passed is False else total


def missing_parts(measurement: Measurement) -> list[str]:
    """Name what the composite lacks; empty where S_total can be computed."""
    figures = composite(measurement.table.sum(axis=0))
    parts = (
        (figures.bleurt, NO_BLEURT),
        (figures.s_generalization, _no_generalization(measurement)),
        (figures.s_pose, NO_POSE),
    )
    return list(dict.fromkeys(reason for value, reason in parts if np.isnan(value)))


def _no_generalization(measurement: Measurement) -> str:
    return NO_BLEURT if measurement.checkpoint is None else NO_CANARY


def _main_figures(
    figures: Composite, gate: Grounding, measurement: Measurement
) -> dict[str, Figure]:
    total = gated_total(figures, gate)
    reasons = missing_parts(measurement)
    if gate.unjudged and gate.threshold is not None:
        reasons.append(gate.unjudged)
    return {
        "s_total": NotComputed("; ".join(reasons)) if total is None else total,
        "s_translation": _figure(figures.s_translation, NO_BLEURT),
        "s_translation_partial": float(figures.s_translation_partial),
        "bleurt": _figure(figures.bleurt, NO_BLEURT),
        "chrf": float(figures.chrf),
        "bleu": float(figures.bleu),
        "s_generalization": _figure(figures.s_generalization, _no_generalization(measurement)),
        "s_pose": _figure(figures.s_pose, NO_POSE),
    }


def _figure(value: np.ndarray, reason: str) -> Figure:
    return NotComputed(reason) if np.isnan(value) else float(value)


def _by_slice(measurement: Measurement) -> dict[str, Figure]:
    return {
        part.value: _slice_figures(measurement, part)
        for part in SLICE_ORDER
        if measurement.corpus.members(part).size
    }


def _slice_figures(measurement: Measurement, part: Slice) -> Figure:
    members = measurement.corpus.members(part)
    sums = measurement.table[members].sum(axis=0)
    figures = composite(sums)
    if part is Slice.CANARY:
        return {"n": members.size, "bleurt": _figure(figures.bleurt_canary, NO_BLEURT)}
    return {
        "n": members.size,
        "s_translation": _figure(figures.s_translation, NO_BLEURT),
        "bleurt": _figure(figures.bleurt, NO_BLEURT),
        "chrf": float(figures.chrf),
        "bleu": float(figures.bleu),
        "s_pose": _figure(figures.s_pose, "no clip of this slice has a reference pose"),
    }


def _grounding(gate: Grounding) -> Figure:
    return {
        "g": _ratio(gate.g),
        "m": gate.metric.value,
        "threshold": gate.threshold,
        "passed": NotComputed(gate.unjudged) if gate.unjudged else gate.passed,
        "by_component": {name: _ratio(g) for name, g in gate.by_component.items()},
    }


def _ratio(value: float | None) -> Figure:
    if value is None:
        return NotComputed("no BLEURT scores against deranged references were given")
    return NotComputed(INFINITE_G) if math.isinf(value) else value


def _both_scores(gate: Grounding) -> Figure:
    return {name: {"true": pair[0], "deranged": pair[1]} for name, pair in gate.scores.items()}


def _checkpoint(measurement: Measurement) -> Figure:
    if measurement.checkpoint is None:
        return NotComputed(NO_BLEURT)
    name, digest = measurement.checkpoint
    return {"name": escape_untrusted(name), "sha256": digest}


def _counts(corpus: Corpus, measurement: Measurement | None = None) -> dict[str, Figure]:
    counts: dict[str, Figure] = {
        "clips": len(corpus.clip_ids),
        "main_clips": int(corpus.is_main().sum()),
        "canary_clips": int((~corpus.is_main()).sum()),
        "missing_predictions": len(corpus.missing),
        "empty_hypotheses": sum(not text.strip() for text in corpus.hypotheses),
    }
    if measurement is not None:
        counts["pose_clips"] = int((~np.isnan(measurement.segment_pose)).sum())
    return counts


def _by_clip(measurement: Measurement) -> Figure:
    """List each clip's own BLEURT, chrF and pose; BLEU has no meaning for one sentence."""
    corpus = measurement.corpus
    chrf = chrf_from_counts(measurement.table[:, CHRF_PART])
    main = corpus.is_main()
    return [
        {
            "clip_id": clip_id,
            "slice": SLICE_ORDER[corpus.slice_numbers[row]].value,
            "bleurt": _known(measurement.segment_bleurt[row]),
            "chrf": float(chrf[row]) if main[row] else None,
            "s_pose": _known(measurement.segment_pose[row]),
        }
        for row, clip_id in enumerate(corpus.clip_ids)
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _incomplete(corpus: Corpus, parameters: TranslationParameters) -> ScoreCard:
    first = escape_untrusted(corpus.missing[0], 64)
    clips = f"{len(corpus.missing)} of {len(corpus.clip_ids)} clips have no prediction"
    nothing = NotComputed(f"incomplete: {clips}, the first is clip {first}")
    public: dict[str, Figure] = {**dict.fromkeys(PUBLIC_FIGURES, nothing)}
    public["counts"] = _counts(corpus)
    private: Mapping[str, Figure] = dict.fromkeys(PRIVATE_FIGURES, nothing)
    return ScoreCard(
        track=TRACK,
        scorer_name=parameters.scorer_name,
        scorer_version=parameters.version,
        scorer_string=translation_string(
            parameters, gate_metric=GateMetric(parameters.gate_metric), checkpoint_sha256=None
        ),
        labels_version=parameters.labels_version,
        complete=False,
        public=section(public),
        private=section(private),
    )
