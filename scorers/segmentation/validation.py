"""Choose segmenters on validation, and fix the consumer's rejection thresholds there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from manifests.digests import sha256_hex
from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from scorers.segmentation.corpus import Corpus, build_corpus, missing_clips
from scorers.segmentation.documents import SegmentationLabel, SystemOutput
from scorers.segmentation.edit_pairs import render_predictions
from scorers.segmentation.figures import LOWER_IS_BETTER, Figure, figure_values
from scorers.segmentation.measurement import clip_counts
from scorers.segmentation.parameters import SegmentationParameters
from scorers.segmentation.rejection import fit_joint, fit_rejection
from scorers.segmentation.selection import (
    CandidateInputs,
    Joint,
    Level,
    Objective,
    SelectionManifest,
    answers_digest,
    labels_digest,
    vocabulary_digest,
)


def select_on_validation(
    labels: Sequence[SegmentationLabel],
    candidates: Sequence[SystemOutput],
    vocabulary: Collection[str],
    parameters: SegmentationParameters,
) -> SelectionManifest:
    """Judge every candidate on the validation clips and write down the choices.

    mF1S and AUC-RU choose the largest value, WER_all the smallest; ties go to the candidate
    declared first. A figure that is undefined for a candidate never chooses it. Raise
    ``MalformedDocument`` for repeated names, an incomplete candidate or one without a consumer.
    """
    names = [candidate.name for candidate in candidates]
    if not names or len(set(names)) != len(names):
        raise MalformedDocument("selection: candidates need distinct names, at least one")
    corpora = [_complete(labels, candidate, vocabulary) for candidate in candidates]
    inputs = {
        candidate.name: _judged(candidate, corpus, parameters)
        for candidate, corpus in zip(candidates, corpora, strict=True)
    }
    levels, joint = _rejection(dict(zip(names, corpora, strict=True)))
    return SelectionManifest(
        scorer=parameters.scorer_string,
        labels_sha256=labels_digest(labels),
        vocabulary_sha256=vocabulary_digest(vocabulary),
        validation_clips=sorted(label.clip_id for label in labels),
        candidates=names,
        inputs=inputs,
        selected={objective.value: _best(objective.figure, inputs) for objective in Objective},
        rejection=levels,
        joint=joint,
    )


def _complete(
    labels: Sequence[SegmentationLabel], candidate: SystemOutput, vocabulary: Collection[str]
) -> Corpus:
    place = f"selection, candidate {escape_untrusted(candidate.name)}"
    absent = missing_clips(labels, candidate.predictions)
    if absent:
        raise MalformedDocument(f"{place}: no predictions for clip {escape_untrusted(absent[0])}")
    if candidate.consumer is None:
        raise MalformedDocument(f"{place}: it needs the answers of the frozen consumer")
    return build_corpus(labels, candidate.predictions, vocabulary, candidate.consumer)


def _judged(
    candidate: SystemOutput, corpus: Corpus, parameters: SegmentationParameters
) -> CandidateInputs:
    total = clip_counts(corpus, parameters).total()
    values = {f.value: float(figure_values(f, total, parameters)[0]) for f in Figure}
    return CandidateInputs(
        predictions_sha256=sha256_hex(render_predictions(candidate.predictions)),
        consumer_sha256=answers_digest(candidate.consumer or {}),
        figures={name: None if np.isnan(value) else value for name, value in values.items()},
    )


def _best(figure: Figure, inputs: Mapping[str, CandidateInputs]) -> str | None:
    """Return the best candidate; ``max`` and ``min`` keep the first of equals."""
    values = {
        name: value
        for name, judged in inputs.items()
        if (value := judged.figures[figure.value]) is not None
    }
    if not values:
        return None
    best = min if figure in LOWER_IS_BETTER else max
    return best(values, key=values.__getitem__)


def _rejection(corpora: Mapping[str, Corpus]) -> tuple[list[Level] | None, Joint | None]:
    confidences = [c.confidence for c in corpora.values() if c.confidence is not None]
    cache = np.concatenate(confidences)
    if cache.size == 0 or np.isnan(cache).any():
        return None, None
    joint = fit_joint(corpora)
    levels = [Level(**asdict(level)) for level in fit_rejection(cache)]
    return levels, None if joint is None else Joint(**asdict(joint))
