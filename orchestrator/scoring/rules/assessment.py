"""Judge a predictions file: the one judgement that certify, dry-run, submit and check share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, assert_never

from manifests.editions import Track
from manifests.outcomes import Diagnostic
from manifests.predictions.lines import ClipExpectation, PredictionLimits, Reading
from manifests.predictions.problems import PredictionProblem
from manifests.predictions.recognition import read_recognition, render_recognition
from manifests.predictions.segmentation import read_segmentation, render_segmentation
from manifests.predictions.translation import read_translation, render_translation

PREDICTIONS_FILE = "predictions.jsonl"

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a predictions file is worth.

    `problems` are the first ones, by line, for an entrant's eyes in a dry run; a certified run
    tells `diagnostic` alone. `canonical` holds the bytes to keep, hash and score, or None when
    the file is invalid. Only a `complete` file is scored.
    """

    problems: tuple[PredictionProblem, ...]
    complete: bool
    canonical: bytes | None

    @property
    def diagnostic(self) -> Diagnostic | None:
        """Return the fixed code for a file that cannot be scored, or None."""
        if self.canonical is None:
            return Diagnostic.PREDICTIONS_FORMAT
        return None if self.complete else Diagnostic.PREDICTIONS_INCOMPLETE


def assess_predictions(
    track: Track,
    data: bytes,
    *,
    clips: Mapping[str, ClipExpectation],
    limits: PredictionLimits | None = None,
    source: str = PREDICTIONS_FILE,
) -> Assessment:
    """Judge the bytes of a predictions file; nothing that they hold raises.

    `clips` are the exam's clips: recognition needs `n_segments` of each, segmentation `n_frames`.
    The vocabulary does not matter here: answers are open-vocabulary.
    """
    match track:
        case "recognition":
            answers = read_recognition(data, source=source, clips=clips, limits=limits)
            return _assessment(answers, render_recognition)
        case "translation":
            texts = read_translation(data, source=source, clips=clips, limits=limits)
            return _assessment(texts, render_translation)
        case "segmentation":
            segments = read_segmentation(data, source=source, clips=clips, limits=limits)
            return _assessment(segments, render_segmentation)
        case _:
            assert_never(track)


def _assessment(
    reading: Reading[Entry], render: Callable[[tuple[Entry, ...]], bytes]
) -> Assessment:
    return Assessment(
        problems=reading.problems,
        complete=reading.complete,
        canonical=render(reading.entries) if reading.valid else None,
    )
