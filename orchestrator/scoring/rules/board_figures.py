"""What of a score card the ledger keeps for the board: public scalars, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manifests.editions import Track
from scorers.cards import ScoreCard

FLOOR: dict[Track, str | None] = {
    "recognition": "macro_f1_floor",
    "translation": None,
    "segmentation": "mf1s_floor",
}
"""The figure that holds each track's noise floor; translation's card has none."""

_PLAIN: dict[Track, tuple[str, ...]] = {
    "recognition": (
        "macro_f1",
        "macro_f1_floor",
        "macro_f1_min3",
        "top1",
        "top3",
        "bleu1",
        "bleu2",
        "ger",
        "false_alarms",
    ),
    "translation": (
        "s_total",
        "s_translation",
        "s_translation_partial",
        "s_generalization",
        "s_pose",
        "bleurt",
        "chrf",
        "bleu",
    ),
    "segmentation": (
        "mf1s",
        "mf1b",
        "frame_macro_f1",
        "foreground_iou",
        "coverage",
        "matched_accuracy",
        "all_reference_accuracy",
        "auc_ru",
    ),
}

_NESTED: dict[Track, dict[str, tuple[str, ...]]] = {
    "recognition": {"held_out_top1": ("held_out", "top1"), "aurc": ("abstention", "aurc")},
    "translation": {"grounding_g": ("grounding", "g")},
    "segmentation": {"wer_all": ("wer_all", "wer"), "wer_iv": ("wer_iv", "wer")},
}


def board_figures(track: Track, card: ScoreCard) -> dict[str, float | None]:
    """Return the figures of `run-scored`, null where the card has none.

    `mf1s_floor` is half the width of mF1S's 95% interval over signers, the counterpart of
    recognition's 1.96 standard deviations over clips.
    """
    public = card.public
    figures = {name: _number(public, (name,)) for name in _PLAIN[track]}
    figures |= {name: _number(public, path) for name, path in _NESTED[track].items()}
    if track == "segmentation":
        figures["mf1s_floor"] = _half_width(public)
    return figures


def _number(public: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = public
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _half_width(public: Mapping[str, Any]) -> float | None:
    intervals = public.get("intervals")
    bounds = intervals["figures"].get("mf1s") if isinstance(intervals, Mapping) else None
    return None if bounds is None else (bounds[1] - bounds[0]) / 2
