"""Shares of right and wrong positions: top-1, top-3, by length, held-out, GER, false alarms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from scorers.cards import Figure, NotComputed
from scorers.recognition.answers import Answers
from scorers.recognition.exam import RecognitionParameters
from scorers.statistics.intervals import binomial_half_width, wilson_interval

NO_SCORED = NotComputed("no position has a label in the scored vocabulary")
NO_OUTSIDE = NotComputed("every label is in the scored vocabulary")


def share(marked: NDArray[np.bool_], nothing: NotComputed) -> float | NotComputed:
    """Return the share of true values, or the reason why there is none."""
    return np.count_nonzero(marked) / marked.size if marked.size else nothing


def top1(answers: Answers) -> Figure:
    """Return the share of scored positions whose answer is the label."""
    return share(answers.right[answers.reference.scored], NO_SCORED)


def top3(answers: Answers) -> Figure:
    """Return the share of scored positions with the label among the candidates."""
    return share(answers.right_among_candidates[answers.reference.scored], NO_SCORED)


def top1_by_length(answers: Answers, tail: int) -> Figure:
    """Return top-1 by the number of positions of the clip, from ``tail`` on in one bin."""
    reference = answers.reference
    length = np.minimum(reference.lengths[reference.clip], tail)[reference.scored]
    right = answers.right[reference.scored]
    bins = np.unique(length).tolist()
    return {
        f"{n}+" if n == tail else str(n): {
            "n": np.count_nonzero(length == n),
            "top1": share(right[length == n], NO_SCORED),
        }
        for n in bins
    }


def held_out(answers: Answers, parameters: RecognitionParameters) -> Figure:
    """Return top-1 on one signer with its binomial half-width and Wilson interval.

    Raise ``MalformedDocument`` when the labels have no clip of the named signer.
    """
    signer, reference = parameters.held_out_signer, answers.reference
    if signer is None:
        return NotComputed("the exam names no held-out signer")
    by_signer = np.array([signer_id == signer for signer_id in reference.signer_ids])
    if not by_signer.any():
        shown = escape_untrusted(signer)
        raise MalformedDocument(f"held-out signer {shown}: no clip in the labels; check the name")
    right = answers.right[reference.scored & by_signer[reference.clip]]
    n, hits = right.size, int(np.count_nonzero(right))
    if n == 0:
        return NotComputed("the held-out signer has no scored position")
    return {
        "n": n,
        "top1": hits / n,
        "half_width": binomial_half_width(hits, n),
        "wilson": wilson_interval(hits, n),
    }


def gloss_error_rate(answers: Answers) -> Figure:
    """Return one minus the accuracy over every position, in any vocabulary.

    With boundaries given there is nothing to insert or delete, so positions are compared one
    by one (scoring notes, 0: GER).
    """
    return share(~answers.right, NotComputed("the labels have no position"))


def false_alarms(answers: Answers) -> Figure:
    """Return the share of positions outside the vocabulary answered with a scored gloss."""
    return share(answers.in_vocabulary[~answers.reference.scored], NO_OUTSIDE)
