"""Time the segmentation card, and word errors against jiwer, in one process."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import jiwer

from scorers.segmentation import (
    LabelledSegment,
    SegmentationLabel,
    SegmentationParameters,
    SystemOutput,
    fit_rejection,
    score,
)
from scorers.segmentation.documents import Answer, FrameSpan
from scorers.segmentation.sequence import word_errors

CLIPS, SIGNERS, PAIRS = 700, 14, 10_000
FPS, FRAMES = 25.0, 250
VOCABULARY = [f"G{number}" for number in range(500)]


def measure() -> list[dict[str, Any]]:
    return [_word_errors(), _card()]


def _card() -> dict[str, Any]:
    labels, output = _exam()
    parameters = SegmentationParameters(resamples=20_000)
    levels = fit_rejection([c or 0.0 for said in (output.consumer or {}).values() for _, c in said])

    def ours() -> None:
        card = score(
            labels,
            output.predictions,
            VOCABULARY,
            parameters,
            consumer=output.consumer,
            rejection_thresholds=levels,
        )
        if card.public["intervals"] is None:
            raise AssertionError("the card lacks its intervals")

    ours_s = _fastest(ours)
    return {
        "work": f"segmentation card, {CLIPS} clips, 20,000 resamples of {SIGNERS} signers",
        "ours_s": ours_s,
        "peer": None,
        "peer_s": None,
        "ratio": None,
        "bound": "under 1 s",
        "holds": ours_s < 1.0,
    }


def _word_errors() -> dict[str, Any]:
    draw = random.Random(1)
    references = [_glosses(draw) for _ in range(PAIRS)]
    hypotheses = [
        [g if draw.random() < 0.6 else "G0" for g in r][: draw.randint(2, 9)] for r in references
    ]
    texts = [" ".join(r) for r in references], [" ".join(h) for h in hypotheses]
    found = jiwer.process_words(*texts)
    theirs = found.substitutions, found.deletions, found.insertions
    if word_errors(references, hypotheses)[:3] != theirs:
        raise AssertionError("S, D and I differ from jiwer's")
    ours_s = _fastest(lambda: word_errors(references, hypotheses))
    peer_s = _fastest(lambda: jiwer.process_words(*texts))
    return {
        "work": f"WER with S/D/I, {PAIRS} pairs of gloss sequences",
        "ours_s": ours_s,
        "peer": "jiwer process_words, on the same glosses joined by spaces",
        "peer_s": peer_s,
        "ratio": peer_s / ours_s,
        "bound": "4x",
        "holds": peer_s >= 4 * ours_s,
    }


def _fastest(work: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _glosses(draw: random.Random) -> list[str]:
    return [f"G{draw.randint(0, 499)}" for _ in range(draw.randint(3, 9))]


def _exam() -> tuple[list[SegmentationLabel], SystemOutput]:
    draw = random.Random(2)
    labels = []
    predictions: dict[str, list[FrameSpan]] = {}
    consumer: dict[str, list[Answer]] = {}
    for number in range(CLIPS):
        clip, signs = f"{number:04d}", []
        spans: list[FrameSpan] = []
        said: list[Answer] = []
        for start in range(2, FRAMES - 20, 20):
            first, last = start + draw.randint(0, 5), start + draw.randint(11, 18)
            signs.append(LabelledSegment(f"G{draw.randint(0, 900)}", first / FPS, last / FPS))
            spans.append((first + draw.randint(-1, 2), last + draw.randint(-2, 1)))
            said.append((f"G{draw.randint(0, 499)}", draw.random()))
        signer = f"S{number % SIGNERS}"
        labels.append(SegmentationLabel(clip, signer, FPS, FRAMES, tuple(signs)))
        predictions[clip], consumer[clip] = spans, said
    return labels, SystemOutput("drawn", predictions, consumer)


if __name__ == "__main__":
    for row in measure():
        print(row)
