"""A full recognition card against scikit-learn's macro-F1 over the same resamples."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from scorers.recognition import RecognitionParameters, compare, score
from scorers.recognition.answers import Answers, encode_answers
from scorers.recognition.macro_f1 import clip_counts, macro_f1_replicates
from scorers.recognition.reference import encode_labels
from scorers.recognition.synthetic import synthetic_answers, synthetic_exam
from scorers.statistics.bootstrap import resample_weights

RESAMPLES = 1000
PEER_RESAMPLES = 60
BOUND_S, BOUND_RATIO = 0.100, 100.0


def least_time(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several runs in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def peer_replicates(answers: Answers, weights: np.ndarray) -> list[float]:
    """Loop over resamples as one would with scikit-learn: repeat the tokens, call f1_score."""
    reference = answers.reference
    clip = reference.clip[reference.scored]
    label, answer = reference.label[reference.scored], answers.first[reference.scored]
    found = []
    for row in weights:
        repeats = row[clip]
        drawn, said = np.repeat(label, repeats), np.repeat(answer, repeats)
        present = np.unique(drawn)
        found.append(f1_score(drawn, said, labels=present, average="macro", zero_division=0))
    return found


def measure() -> list[dict[str, Any]]:
    """Time the card with 1,000 resamples; the peer's time is extrapolated from 60 of them."""
    exam = synthetic_exam()
    run = synthetic_answers(exam)
    parameters = RecognitionParameters(resamples=RESAMPLES, held_out_signer=exam.held_out_signer)
    answers = encode_answers(encode_labels(exam.labels, exam.vocabulary), run)
    weights = resample_weights(len(exam.labels), RESAMPLES, parameters.seed)
    subset = weights[:PEER_RESAMPLES]
    agree = np.allclose(
        macro_f1_replicates(clip_counts(answers), subset), peer_replicates(answers, subset)
    )
    ours = least_time(lambda: score(exam.labels, run, exam.vocabulary, parameters), 7)
    peer = least_time(lambda: peer_replicates(answers, subset), 2) * RESAMPLES / PEER_RESAMPLES
    many = RecognitionParameters(resamples=10_000)
    other = synthetic_answers(exam, 1)
    paired = least_time(lambda: compare(exam.labels, run, other, exam.vocabulary, many), 3)
    return [
        {
            "work": "full recognition card, 1,000 resamples, 200 clips, 606 tokens, 71 signs",
            "ours_s": ours,
            "peer": f"scikit-learn macro-F1 loop ({PEER_RESAMPLES} resamples timed, scaled)",
            "peer_s": peer,
            "ratio": peer / ours,
            "bound": f">= {BOUND_RATIO:.0f}x, < {1000 * BOUND_S:.0f} ms, equal replicates",
            "holds": bool(agree and ours < BOUND_S and peer / ours >= BOUND_RATIO),
        },
        {
            "work": "paired macro-F1 comparison, 10,000 resamples, 200 clips",
            "ours_s": paired,
            "peer": None,
            "peer_s": None,
            "ratio": None,
            "bound": "< 1 s",
            "holds": paired < 1.0,
        },
    ]


if __name__ == "__main__":
    for row in measure():
        print(row)
