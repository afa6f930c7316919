"""What the exam's figures depend on, and the scorer string that says it in one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote

from manifests.errors import MalformedDocument
from scorers.statistics.signature import scorer_string
from scorers.translation.bleu import Tokenizer
from scorers.translation.exam import MAIN_SLICES
from scorers.translation.pose import SCORED_POINTS, PoseParameters
from scorers.translation.sacrebleu_version import sacrebleu_version

TOTAL_WEIGHTS = (0.60, 0.25, 0.15)
"""Translation, generalization, pose."""
TRANSLATION_WEIGHTS = (0.50, 0.30, 0.20)
"""BLEURT, chrF, BLEU."""
GENERALIZATION_TARGET = 0.85
"""The share of the main slices' BLEURT at which the canary costs nothing."""
SIGNIFICANCE = 0.05


class GateMetric(StrEnum):
    """The M of G = M(hypotheses, references) / M(hypotheses, deranged references)."""

    S_TRANSLATION = "s_translation"
    BLEURT = "bleurt"
    CHRF = "chrf"
    BLEU = "bleu"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationParameters:
    """Everything about the scorer that an edition may choose.

    ``gate_threshold`` is valid for one metric, one derangement key and one corpus; ``None``
    means not calibrated: G is printed and not enforced. ``resamples`` paired bootstraps are
    drawn from PCG64(``seed``). Raise ``MalformedDocument`` for a value out of its bounds.
    """

    scorer_name: str = "signet"
    version: str = "1.0"
    labels_version: str = "labels-v1"
    tokenizer: Tokenizer = "13a"
    gate_metric: GateMetric = GateMetric.S_TRANSLATION
    gate_threshold: float | None = None
    derangement_key: str = ""
    pose: PoseParameters = field(default_factory=PoseParameters)
    resamples: int = 10_000
    seed: int = 200

    def __post_init__(self) -> None:
        """Check the bounds."""
        if self.tokenizer not in {"13a", "none"}:
            raise MalformedDocument(f"tokenizer {self.tokenizer!r} is neither '13a' nor 'none'")
        if self.gate_threshold is not None and not 0 < self.gate_threshold < float("inf"):
            raise MalformedDocument(f"gate threshold {self.gate_threshold} is not above 0")
        if self.resamples < 1:
            raise MalformedDocument(f"{self.resamples} resamples; at least 1 is needed")


def translation_string(
    parameters: TranslationParameters, *, gate_metric: GateMetric, checkpoint_sha256: str | None
) -> str:
    """Return the scorer string; cards with equal strings are comparable.

    ``gate_metric`` is the M that was used, which is chrF where BLEURT is absent.
    """
    threshold = "none" if parameters.gate_threshold is None else repr(parameters.gate_threshold)
    return scorer_string(
        parameters.scorer_name,
        parameters.version,
        {
            "total": "translation.60+generalization.25+pose.15",
            "translation": "bleurt.50+chrf.30+bleu.20",
            "main": "+".join(MAIN_SLICES),
            "bleu": f"corpus.n4.mixed.{parameters.tokenizer}.exp",
            "chrf": "corpus.nc6.nw0.b2.mixed",
            "bleurt": f"clip01.empty0.{checkpoint_sha256 or 'none'}",
            "gate": gate_metric,
            "threshold": threshold,
            "derangement": "value.slice.sha256.rotate",
            "key": quote(parameters.derangement_key, safe=""),
            "generalization": f"min1.over{GENERALIZATION_TARGET}",
            **_pose_parts(parameters.pose),
            "resamples": parameters.resamples,
            "seed": parameters.seed,
            "paired": f"slice.onesided.p{SIGNIFICANCE}",
            "sacrebleu": sacrebleu_version(),
        },
    )


def _pose_parts(pose: PoseParameters) -> dict[str, str | float]:
    return {
        "pose": f"0-{SCORED_POINTS - 1}.{pose.dimensions}.similarity.proper.pair",
        "missing": "spread",
        "dtw": "exact.diagonal.pathmean",
        "e_ref": pose.reference_error,
    }
