"""Abstention: what a run's confidences are worth (reported, never ranked).

The scored positions are ordered from most to least confident. Equal confidences form one group
that shares its accuracy, so the order of a file never matters and a flat confidence earns
nothing. UNKNOWN and missing positions are one last group, and wrong (scoring notes, 1.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scorers.cards import Figure, NotComputed
from scorers.recognition.accuracy import NO_OUTSIDE, NO_SCORED
from scorers.recognition.answers import Answers

CURVE_STEPS = 20
"""Points of the published curve. A point per confidence would tell an entrant, position by
position, which answers are right: it would read the labels out of the score."""


@dataclass(frozen=True, slots=True)
class ConfidenceGroups:
    """Scored positions in groups of equal confidence, the most confident first.

    ``confidence``, ``size`` and ``right`` have shape (groups,).
    """

    confidence: NDArray[np.float64]
    size: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Return the number of scored positions."""
        return int(self.size.sum())


def group_confidences(
    confidence: NDArray[np.float64], right: NDArray[np.bool_]
) -> ConfidenceGroups:
    """Group positions by equal confidence, in falling order."""
    rising, place, size = np.unique(confidence, return_inverse=True, return_counts=True)
    hits = np.bincount(place, weights=right, minlength=rising.size).astype(np.int64)
    return ConfidenceGroups(rising[::-1], size[::-1], hits[::-1])


def cut_at(groups: ConfidenceGroups, parts: int, whole: int) -> tuple[int, float]:
    """Find where the ``parts``/``whole`` most confident positions end.

    Return the group that is cut and the fraction of it that is taken, in (0, 1].
    """
    ends = np.cumsum(groups.size)
    target = parts * groups.n  # in units of 1/whole position, so that no rounding decides
    group = int(np.searchsorted(whole * ends, target))
    before = int(ends[group] - groups.size[group])
    return group, (target - whole * before) / (whole * int(groups.size[group]))


def accuracy_at(groups: ConfidenceGroups, parts: int, whole: int) -> float:
    """Return the accuracy of the ``parts``/``whole`` most confident positions.

    The cut group gives the same fraction of its right answers as of its positions.
    """
    group, fraction = cut_at(groups, parts, whole)
    right = int(groups.right[:group].sum()) + fraction * int(groups.right[group])
    return right * whole / (parts * groups.n)


def coverage_at(groups: ConfidenceGroups, tenths: int) -> float:
    """Return the largest share answered with an accuracy of ``tenths``/10 or more; 0 if none.

    Only whole groups can be answered. The curve need not fall, so the largest counts, not the
    first. Compared in integers: 0.9 has no exact float.
    """
    answered, right = np.cumsum(groups.size), np.cumsum(groups.right)
    good = np.flatnonzero(10 * right >= tenths * answered)
    return float(answered[good[-1]] / groups.n) if good.size else 0.0


def area_under_risk_coverage(groups: ConfidenceGroups) -> float:
    """Return the mean over k of the error among the k most confident (Geifman & El-Yaniv 2017).

    Each error is its group's mean error, which is the expectation over random tie orders.
    """
    wrong = np.repeat((groups.size - groups.right) / groups.size, groups.size)
    return float(np.mean(np.cumsum(wrong) / np.arange(1, groups.n + 1)))


def auroc(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> float | None:
    """Return P(positive > negative) + P(equal) / 2 (Mann-Whitney); None when a side is empty."""
    if not positive.size or not negative.size:
        return None
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left").sum()
    up_to = np.searchsorted(ordered, positive, side="right").sum()
    return float((int(below) + int(up_to)) / (2 * positive.size * negative.size))


def risk_coverage_curve(groups: ConfidenceGroups) -> list[Figure]:
    """Return the risk at coverages 1/20, 2/20 … 1, for plotting."""
    steps = range(1, CURVE_STEPS + 1)
    return [
        {"coverage": k / CURVE_STEPS, "risk": max(0.0, 1 - accuracy_at(groups, k, CURVE_STEPS))}
        for k in steps
    ]


def false_alarms_at(
    groups: ConfidenceGroups, alarm_confidence: NDArray[np.float64], outside: int, tenths: int
) -> float:
    """Return the share of outside positions still alarming at a coverage of scored positions.

    ``alarm_confidence`` holds the confidences of the false alarms among ``outside`` positions.
    Alarms exactly at the threshold count with the fraction of the group that is cut there.
    """
    group, fraction = cut_at(groups, tenths, 10)
    threshold = groups.confidence[group]
    above = np.count_nonzero(alarm_confidence > threshold)
    level = np.count_nonzero(alarm_confidence == threshold)
    return float((above + fraction * level) / outside)


def abstention(answers: Answers) -> Figure:
    """Return the abstention figures of the public card."""
    scored, right, stated = answers.reference.scored, answers.right, answers.confidence
    if not scored.any():
        return NO_SCORED
    groups = group_confidences(stated[scored], right[scored])
    alarms = stated[~scored & answers.in_vocabulary]
    outside = int(np.count_nonzero(~scored))
    sure_right, sure_wrong = stated[scored & right], stated[scored & ~right]
    return {
        "accuracy_at_80": accuracy_at(groups, 8, 10),
        "coverage_at_90": coverage_at(groups, 9),
        "aurc": area_under_risk_coverage(groups),
        "false_alarms_at_80": (
            false_alarms_at(groups, alarms, outside, 8) if outside else NO_OUTSIDE
        ),
        "auroc_right_wrong": _or_reason(
            auroc(sure_right, sure_wrong), "the scored answers are all right or all wrong"
        ),
        "auroc_right_oov": _or_reason(
            auroc(sure_right, stated[~scored]),
            "no scored answer is right, or every label is in the scored vocabulary",
        ),
        "curve": risk_coverage_curve(groups),
    }


def _or_reason(value: float | None, reason: str) -> Figure:
    return NotComputed(reason) if value is None else value
