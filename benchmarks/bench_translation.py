"""The text side of the translation exam against sacreBLEU's own paired bootstrap."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from scorers.translation import (
    Measurement,
    RankedFigure,
    SegmentScores,
    Slice,
    TranslationLabel,
    TranslationParameters,
    challenge,
    compare,
)
from scorers.translation import (
    measure as measure_run,
)
from scorers.translation.composite import composite
from scorers.translation.grounding import grounding
from scorers.translation.measurement import POSE, POSE_CLIPS

SENTENCES = 1_000
TEXT_RESAMPLES = 1_000
COMPOSITE_RESAMPLES = 10_000
MOST_SECONDS = 1.0
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def example_labels(parts: tuple[Slice, ...]) -> list[TranslationLabel]:
    """Draw sentences of 3 to 16 words out of 2,000."""
    draw = random.Random(7)
    words = ["".join(draw.choices(_LETTERS, k=draw.randint(1, 9))) for _ in range(2_000)]
    return [
        TranslationLabel(
            f"{i:04}",
            parts[i % len(parts)],
            " ".join(draw.choices(words, k=draw.randint(3, 16))).capitalize() + ".",
        )
        for i in range(SENTENCES)
    ]


def example_answers(labels: list[TranslationLabel], right: float) -> dict[str, str]:
    """Keep each word with probability ``right``, else take one from another sentence."""
    draw = random.Random(f"answers {right}")
    pool = [word for label in labels for word in label.reference.split()]
    return {
        label.clip_id: " ".join(
            word if draw.random() < right else draw.choice(pool) for word in label.reference.split()
        )
        for label in labels
    }


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the shortest of several timings and the last result."""
    timings, result = [], None
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        timings.append(time.perf_counter() - begin)
    return min(timings), result


def measure() -> list[dict[str, Any]]:
    """Time the text figures against sacreBLEU and the bootstrap of the whole composite."""
    return [text_row(), composite_row()]


def text_row() -> dict[str, Any]:
    """BLEU, chrF, grounding and a paired bootstrap of both metrics, two systems."""
    labels = example_labels((Slice.STUDIO,))
    systems = [example_answers(labels, 0.7), example_answers(labels, 0.65)]
    parameters = TranslationParameters(resamples=TEXT_RESAMPLES)

    def ours() -> list[Measurement]:
        runs = [measure_run(labels, answers, parameters) for answers in systems]
        for run in runs:
            grounding(run, parameters)
        for figure in (RankedFigure.BLEU, RankedFigure.CHRF):
            compare(runs[0], runs[1], parameters, figure)
        return runs

    ours_s, runs = timed(ours, repeats=5)
    peer_s, expected = timed(lambda: sacrebleu_paired(labels, systems), repeats=1)
    found = [composite(run.table.sum(axis=0)) for run in runs]
    got = {"BLEU": [float(f.bleu) for f in found], "chrF2": [float(f.chrf) for f in found]}
    equal = all(
        abs(100 * value - theirs) < 1e-9
        for name, values in got.items()
        for value, theirs in zip(values, expected[name], strict=True)
    )
    return {
        "work": f"BLEU + chrF + grounding + paired bootstrap, 2 systems, {SENTENCES} sentences",
        "ours_s": ours_s,
        "peer": "sacreBLEU's paired bootstrap alone",
        "peer_s": peer_s,
        "ratio": peer_s / ours_s,
        "bound": "> 1x, scores equal to 1e-9",
        "holds": equal and ours_s < peer_s,
    }


def sacrebleu_paired(
    labels: list[TranslationLabel], systems: list[dict[str, str]]
) -> Mapping[str, list[float]]:
    """Run sacreBLEU's paired bootstrap; return the corpus scores by metric."""
    references = [[label.reference for label in labels]]
    named: list[tuple[str, Sequence[str]]] = [
        (f"system {i}", [answers[label.clip_id] for label in labels])
        for i, answers in enumerate(systems)
    ]
    metrics = {"BLEU": BLEU(references=references), "chrF2": CHRF(references=references)}
    test = PairedTest(named, metrics, None, test_type="bs", n_samples=TEXT_RESAMPLES)
    _, scores = test()
    return {
        name: [result.score for result in scores[name] if isinstance(result, Result)]
        for name in ("BLEU", "chrF2")
    }


def composite_row() -> dict[str, Any]:
    """Decide about the lead: S_total with all its parts recomputed in every resample."""
    labels = example_labels(tuple(Slice))
    parameters = TranslationParameters(resamples=COMPOSITE_RESAMPLES)
    champion, challenger = (complete_run(labels, right, parameters) for right in (0.65, 0.7))
    ours_s, decision = timed(lambda: challenge(champion, challenger, parameters), repeats=3)
    return {
        "work": f"{COMPOSITE_RESAMPLES} paired resamples of S_total, {SENTENCES} clips",
        "ours_s": ours_s,
        "peer": None,
        "peer_s": None,
        "ratio": None,
        "bound": f"<= {MOST_SECONDS:.0f} s",
        "holds": ours_s <= MOST_SECONDS and decision.comparison is not None,
    }


def complete_run(
    labels: list[TranslationLabel], right: float, parameters: TranslationParameters
) -> Measurement:
    """Make a run with BLEURT and pose: their segment scores are drawn, not computed."""
    draw = np.random.default_rng(int(100 * right))
    known = {label.clip_id: float(right * draw.random()) for label in labels}
    by_chance = {label.clip_id: float(0.2 * draw.random()) for label in labels}
    bleurt = SegmentScores("drawn", "0" * 64, known, by_chance)
    run = measure_run(labels, example_answers(labels, right), parameters, bleurt=bleurt)
    run.table[:, POSE] = np.where(run.corpus.is_main(), draw.random(SENTENCES), 0.0)
    run.table[:, POSE_CLIPS] = run.corpus.is_main()
    return run


if __name__ == "__main__":
    print(measure())
