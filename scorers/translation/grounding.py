"""The grounding gate, which asks whether a system reads the video or writes likely English.

G = M(hypotheses, true references) / M(hypotheses, deranged references). A system that ignores
the video scores about the same against both, and G is near 1. A G means nothing without its M,
and a threshold is valid for one M only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scorers.translation.composite import composite
from scorers.translation.measurement import Measurement
from scorers.translation.parameters import GateMetric, TranslationParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """The gate's figures: G under ``metric``, which is chrF where BLEURT is absent.

    ``passed`` is None where the gate is not judged; ``unjudged`` says why. ``by_component``
    holds G for each metric that is known; infinity where only the deranged score is 0.
    """

    metric: GateMetric
    g: float
    threshold: float | None
    passed: bool | None
    unjudged: str | None
    by_component: Mapping[str, float | None]
    scores: Mapping[str, tuple[float, float]]


def ratio(true: float, deranged: float) -> float:
    """Return true / deranged; 0/0 is 1 (no evidence of reading), x/0 infinite."""
    if deranged > 0:
        return true / deranged
    return math.inf if true > 0 else 1.0


def grounding(measurement: Measurement, parameters: TranslationParameters) -> Grounding:
    """Judge the gate on the unrounded G: passed means G >= threshold."""
    true = composite(measurement.table.sum(axis=0))
    deranged = composite(measurement.deranged_table.sum(axis=0))
    scores = {
        metric.value: (float(getattr(true, metric)), float(getattr(deranged, metric)))
        for metric in GateMetric
    }
    known = {name: pair for name, pair in scores.items() if not any(map(math.isnan, pair))}
    ratios = {name: ratio(*pair) for name, pair in known.items()}
    wanted = parameters.gate_metric
    metric = wanted if wanted in known else GateMetric.CHRF
    threshold, unjudged = parameters.gate_threshold, None
    if threshold is None:
        unjudged = "no threshold is calibrated: G is shown, the gate is not enforced"
    elif metric != wanted:
        unjudged = (
            f"the threshold is valid for M = {wanted}, which needs BLEURT scores against true and "
            f"deranged references; G is shown for M = {metric}"
        )
    judged = None if unjudged or threshold is None else ratios[metric] >= threshold
    return Grounding(
        metric=metric,
        g=ratios[metric],
        threshold=threshold,
        passed=judged,
        unjudged=unjudged,
        by_component={name: ratios.get(name) for name in ("bleurt", "chrf", "bleu")},
        scores=known,
    )
