"""Every figure of the exam as a function of summed statistics, for one sum or thousands at once.

S_total = 0.60 S_translation + 0.25 S_generalization + 0.15 S_pose
S_translation = 0.50 BLEURT + 0.30 chrF + 0.20 BLEU, over the pooled main slices
S_generalization = min(1, (BLEURT of the canary / BLEURT of the main slices) / 0.85)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scorers.translation.bleu import bleu_from_counts
from scorers.translation.chrf import chrf_from_counts
from scorers.translation.measurement import (
    BLEU_PART,
    CANARY_BLEURT,
    CANARY_CLIPS,
    CHRF_PART,
    MAIN_BLEURT,
    MAIN_CLIPS,
    POSE,
    POSE_CLIPS,
    FloatArray,
)
from scorers.translation.parameters import (
    GENERALIZATION_TARGET,
    TOTAL_WEIGHTS,
    TRANSLATION_WEIGHTS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite:
    """The figures, as fractions, each of the leading shape of the sums; NaN where undefined."""

    bleurt: FloatArray
    bleurt_canary: FloatArray
    chrf: FloatArray
    bleu: FloatArray
    s_translation: FloatArray
    s_translation_partial: FloatArray
    s_generalization: FloatArray
    s_pose: FloatArray
    s_total: FloatArray


def composite(sums: FloatArray) -> Composite:
    """Return every figure for summed statistics (..., 34), before any gate.

    A figure whose part is absent (no BLEURT, no canary clip, no reference pose) is NaN, and so
    is what is built on it. A main BLEURT of 0 makes the generalization 0.
    """
    bleurt = _mean(sums[..., MAIN_BLEURT], sums[..., MAIN_CLIPS])
    canary = _mean(sums[..., CANARY_BLEURT], sums[..., CANARY_CLIPS])
    pose = _mean(sums[..., POSE], sums[..., POSE_CLIPS])
    chrf, bleu = chrf_from_counts(sums[..., CHRF_PART]), bleu_from_counts(sums[..., BLEU_PART])
    for_bleurt, for_chrf, for_bleu = TRANSLATION_WEIGHTS
    without_bleurt = for_chrf * chrf + for_bleu * bleu
    translation = for_bleurt * bleurt + without_bleurt
    generalization = _generalization(bleurt, canary)
    for_translation, for_generalization, for_pose = TOTAL_WEIGHTS
    return Composite(
        bleurt=bleurt,
        bleurt_canary=canary,
        chrf=chrf,
        bleu=bleu,
        s_translation=translation,
        s_translation_partial=without_bleurt / (for_chrf + for_bleu),
        s_generalization=generalization,
        s_pose=pose,
        s_total=for_translation * translation
        + for_generalization * generalization
        + for_pose * pose,
    )


def _mean(total: FloatArray, number: FloatArray) -> FloatArray:
    absent = np.full(np.shape(total), np.nan)
    return np.asarray(np.divide(total, number, out=absent, where=number > 0))


def _generalization(main: FloatArray, canary: FloatArray) -> FloatArray:
    known = ~(np.isnan(main) | np.isnan(canary))
    ratio = np.divide(canary, main, out=np.zeros(np.shape(main)), where=known & (main > 0))
    return np.where(known, np.minimum(1.0, ratio / GENERALIZATION_TARGET), np.nan)
