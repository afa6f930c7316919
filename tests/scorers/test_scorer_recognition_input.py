"""Bad input is refused with the clip and the position, and nothing is scored."""

from __future__ import annotations

import pytest

from manifests.errors import MalformedDocument
from scorers.recognition import (
    ClipLabels,
    Position,
    RecognitionParameters,
    compare,
    score,
)

LABELS = [ClipLabels("0001", "ALPHA", ("YOU", "OLD")), ClipLabels("0002", "BRAVO", ("I",))]
GOOD = {"0001": (Position(("YOU",), 0.5), Position(("OLD",), 0.5)), "0002": ()}
VOCABULARY = ("YOU", "I")
FEW = RecognitionParameters(resamples=10)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"0002": (Position(("I",)), Position(("I",)))}, "clip 0002: 2 signs for 1 segments"),
        ({"9999": ()}, "clip 9999: the exam has no such clip"),
        ({"\x1b[2J": ()}, r"clip \\x1b\[2J: the exam has no such clip"),
        ({"0001": (Position(("YOU",)), Position(()))}, "clip 0001, sign 2: 0 candidates"),
        ({"0001": (Position(("A", "B", "C", "D")),)}, "clip 0001, sign 1: 4 candidates"),
        ({"0001": (Position(("NOT ME",)),)}, "sign 1: a gloss holds whitespace"),
        ({"0001": (Position(("YOU\n",)),)}, "sign 1: a gloss holds whitespace"),
        ({"0001": (Position(("X" * 65,)),)}, "sign 1: a gloss has 65 characters"),
        ({"0001": (Position(("YOU", "\u202e")),)}, r"sign 1: a gloss holds the character U\+202E"),
        ({"0001": (Position(("",)),)}, "sign 1: a gloss is empty"),
        ({"0001": (Position(("YOU",), float("nan")),)}, r"sign 1: confidence nan; .*\[0, 1\]"),
        ({"0001": (Position(("YOU",), float("inf")),)}, "sign 1: confidence inf"),
        ({"0001": (Position(("YOU",), 1.01),)}, "sign 1: confidence 1.01"),
        ({"0001": (Position(("UNKNOWN",), -0.5),)}, "sign 1: confidence -0.5"),
    ],
)
def test_answers_out_of_bounds_are_refused_at_their_place(
    entry: dict[str, tuple[Position, ...]], message: str
) -> None:
    with pytest.raises(MalformedDocument, match=message):
        score(LABELS, GOOD | entry, VOCABULARY, FEW)


def test_a_malformed_run_is_refused_even_when_it_is_incomplete() -> None:
    with pytest.raises(MalformedDocument, match="clip 0001, sign 1: confidence 2"):
        score(LABELS, {"0001": (Position(("YOU",), 2.0),)}, VOCABULARY, FEW)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "no clip at all"),
        ([LABELS[0], LABELS[0]], "clip 0001: labelled twice"),
        ([ClipLabels("1", "A", ("YOU", "UNKNOWN"))], "clip 1, position 2: UNKNOWN is reserved"),
        ([ClipLabels("1", "A", ("TWO WORDS",))], "clip 1, position 1: a gloss holds whitespace"),
        ([ClipLabels("1", "A", ("",))], "clip 1, position 1: a gloss is empty"),
    ],
)
def test_labels_that_break_their_format_are_refused(labels: list[ClipLabels], message: str) -> None:
    with pytest.raises(MalformedDocument, match=message):
        score(labels, {}, VOCABULARY, FEW)


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        ([], "vocabulary: empty"),
        (["YOU", "YOU"], "the gloss YOU stands twice"),
        (["UNKNOWN"], "UNKNOWN is reserved"),
        (["A B"], "vocabulary: a gloss holds whitespace"),
    ],
)
def test_a_vocabulary_that_breaks_its_format_is_refused(
    vocabulary: list[str], message: str
) -> None:
    with pytest.raises(MalformedDocument, match=message):
        score(LABELS, GOOD, vocabulary, FEW)


def test_a_held_out_signer_without_clips_is_refused() -> None:
    with pytest.raises(MalformedDocument, match="held-out signer ECHO: no clip"):
        score(LABELS, GOOD, VOCABULARY, RecognitionParameters(held_out_signer="ECHO"))


def test_incomplete_runs_are_not_compared() -> None:
    with pytest.raises(MalformedDocument, match=r"1 of 2 clips have no entry \(0002\)"):
        compare(LABELS, GOOD, {"0001": ()}, VOCABULARY, FEW)


def test_runs_without_a_scored_label_are_not_compared() -> None:
    with pytest.raises(MalformedDocument, match="no label is in the scored vocabulary"):
        compare(LABELS, GOOD, GOOD, ("ELSE",), FEW)


@pytest.mark.parametrize(("name", "value"), [("resamples", 1), ("seed", -1), ("length_tail", 0)])
def test_parameters_out_of_bounds_are_refused(name: str, value: int) -> None:
    with pytest.raises(MalformedDocument, match=f"scorer: {name} is {value}; give"):
        RecognitionParameters(**{name: value})  # type: ignore[arg-type] # one of three integers
