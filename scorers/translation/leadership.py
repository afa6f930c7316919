"""Who leads: a paired bootstrap of the whole composite, clips resampled inside their slice.

Both systems see the same resamples, and every figure, with its min() and its ratios, is computed
anew in each. The leader changes only when the challenger's advantage is significant: one-sided
p = (1 + #{delta* <= 0}) / (B + 1) < 0.05, delta > 0, and the gate not failed (scoring notes, 0
and 1.5). A worse challenger never wins, however sure the difference is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from manifests.errors import MalformedDocument
from scorers.statistics.bootstrap import stratified_weights
from scorers.statistics.paired import PairedComparison, compare_replicates
from scorers.translation.card import gated_total, missing_parts
from scorers.translation.composite import composite
from scorers.translation.grounding import grounding
from scorers.translation.measurement import FloatArray, Measurement
from scorers.translation.parameters import SIGNIFICANCE, TranslationParameters


class RankedFigure(StrEnum):
    """What two systems can be compared by."""

    S_TOTAL = "s_total"
    S_TRANSLATION = "s_translation"
    S_TRANSLATION_PARTIAL = "s_translation_partial"
    S_GENERALIZATION = "s_generalization"
    S_POSE = "s_pose"
    BLEURT = "bleurt"
    CHRF = "chrf"
    BLEU = "bleu"


@dataclass(frozen=True, slots=True)
class LeadershipDecision:
    """Whether the challenger takes the lead, why, and the comparison if there could be one."""

    dethrones: bool
    reason: str
    comparison: PairedComparison | None


def compare(
    first: Measurement,
    second: Measurement,
    parameters: TranslationParameters,
    figure: RankedFigure = RankedFigure.S_TOTAL,
) -> PairedComparison:
    """Compare a figure of two complete runs, first minus second, gates left aside.

    Raise ``MalformedDocument`` where the two were not measured on the same exam with the same
    BLEURT checkpoint, where one is incomplete, or where the figure is not defined for both.
    """
    _check_comparable(first, second)
    return _paired(first, second, parameters, figure=figure, kept=(1.0, 1.0))


def challenge(
    champion: Measurement, challenger: Measurement, parameters: TranslationParameters
) -> LeadershipDecision:
    """Decide whether the challenger takes the lead from the champion.

    A row whose gate failed counts as zero. Raise ``MalformedDocument`` as ``compare`` does
    where the runs were not measured alike; a run that cannot rank is a decision, not an error.
    """
    for name, measurement in (("champion", champion), ("challenger", challenger)):
        refusal = _cannot_rank(measurement, parameters)
        if refusal:
            return LeadershipDecision(False, f"the {name} cannot rank: {refusal}", None)
    _check_comparable(champion, challenger)
    kept = (_kept(challenger, parameters), _kept(champion, parameters))
    found = _paired(challenger, champion, parameters, figure=RankedFigure.S_TOTAL, kept=kept)
    if kept[0] == 0:
        return LeadershipDecision(False, "the challenger failed the grounding gate", found)
    if found.delta <= 0:
        return LeadershipDecision(False, "the challenger is not better", found)
    figures = f"p = {found.p_value:.4f}, {found.replicates} resamples"
    if found.p_value < SIGNIFICANCE:
        return LeadershipDecision(True, f"the advantage is significant: {figures}", found)
    return LeadershipDecision(False, f"the advantage is within sampling noise: {figures}", found)


def _paired(
    first: Measurement,
    second: Measurement,
    parameters: TranslationParameters,
    *,
    figure: RankedFigure,
    kept: tuple[float, float],
) -> PairedComparison:
    """Resample both alike; ``kept`` is 0 for a system whose gate failed, else 1."""
    tables = np.stack([first.table, second.table])
    point = _values(tables.sum(axis=1), figure) * kept
    if np.isnan(point).any():
        raise MalformedDocument(f"{figure} is not defined for both runs; nothing to compare")
    strata, units = first.corpus.slice_numbers, first.table.shape[0]
    weights = stratified_weights(strata, parameters.resamples, parameters.seed).astype(np.float64)
    sums = weights @ np.concatenate([first.table, second.table], axis=1)
    values = _values(sums.reshape(parameters.resamples, 2, -1), figure) * kept
    return compare_replicates(float(point[0] - point[1]), values[:, 0] - values[:, 1], units=units)


def _values(sums: FloatArray, figure: RankedFigure) -> FloatArray:
    values: FloatArray = getattr(composite(sums), figure)
    return values


def _kept(measurement: Measurement, parameters: TranslationParameters) -> float:
    return 0.0 if grounding(measurement, parameters).passed is False else 1.0


def _cannot_rank(measurement: Measurement, parameters: TranslationParameters) -> str | None:
    if measurement.corpus.missing:
        return f"{len(measurement.corpus.missing)} clips have no prediction"
    lacking = missing_parts(measurement)
    if lacking:
        return "; ".join(lacking)
    gate = grounding(measurement, parameters)
    figures = composite(measurement.table.sum(axis=0))
    return gate.unjudged if gated_total(figures, gate) is None else None


def _check_comparable(first: Measurement, second: Measurement) -> None:
    for measurement in (first, second):
        if measurement.corpus.missing:
            raise MalformedDocument("an incomplete run cannot be compared")
    ours, theirs = first.corpus, second.corpus
    same_clips = ours.clip_ids == theirs.clip_ids and ours.references == theirs.references
    if not same_clips or not np.array_equal(ours.slice_numbers, theirs.slice_numbers):
        raise MalformedDocument("the two runs were not measured on the same labels")
    if (first.checkpoint or ("", ""))[1] != (second.checkpoint or ("", ""))[1]:
        raise MalformedDocument("the two runs have different BLEURT checkpoints; score both anew")
    if not np.array_equal(np.isnan(first.segment_pose), np.isnan(second.segment_pose)):
        raise MalformedDocument("the two runs were not measured on the same reference poses")
