"""What a replay says about the run that it repeats."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.encoding import Json
from orchestrator.runs.rules.replay_comparison import (
    SHOWN_CLIPS,
    Agreement,
    compare_environments,
    compare_figures,
    compare_poses,
    compare_predictions,
)


def file(**clips: list[str] | str) -> bytes:
    """Return a predictions file; a list is signs, a string is a sentence."""
    rows = (
        {"clip_id": clip, ("text" if isinstance(answer, str) else "signs"): answer}
        for clip, answer in clips.items()
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_the_same_bytes_are_byte_identical() -> None:
    data = file(a=["WHO"])
    found = compare_predictions(data, raw=data, canonical=data)
    assert (found.agreement, found.agrees) == (Agreement.BYTE_IDENTICAL, True)


def test_what_was_only_written_otherwise_is_equal_in_canonical_form() -> None:
    data = file(a=["WHO"])
    found = compare_predictions(data, raw=b"  " + data, canonical=data)
    assert (found.agreement, found.agrees) == (Agreement.CANONICAL, True)


def test_every_sign_that_differs_or_is_missing_counts_once() -> None:
    retained = file(a=["WHO", "NOW", "EAT"], b=["OLD"], c=["YOU"])
    replayed = file(a=["WHO", "EAT"], b=["OLD"], d=["YOU"])
    found = compare_predictions(retained, raw=replayed, canonical=replayed)
    assert found.agreement is Agreement.DIFFERENT
    assert not found.agrees
    assert (found.positions, found.differing) == (6, 4)
    assert found.clips == ("a", "c", "d")


def test_a_sentence_is_one_position() -> None:
    retained, replayed = file(a="How old?", b="Now."), file(a="How old?", b="Later.")
    found = compare_predictions(retained, raw=replayed, canonical=replayed)
    assert (found.positions, found.differing, found.clips) == (2, 1, ("b",))


def test_only_the_first_clips_are_named() -> None:
    many = {f"clip{n:03d}": ["A"] for n in range(60)}
    retained, replayed = file(**many), file(**{clip: ["B"] for clip in many})
    found = compare_predictions(retained, raw=replayed, canonical=replayed)
    assert found.differing == 60
    assert found.clips == tuple(sorted(many))[:SHOWN_CLIPS]


@pytest.mark.parametrize(
    ("retained", "canonical", "agreement"),
    [
        (None, None, Agreement.NOTHING),
        (None, b"x", Agreement.DIFFERENT),
        (b"x", None, Agreement.DIFFERENT),
    ],
)
def test_predictions_on_one_side_alone_never_agree(
    retained: bytes | None, canonical: bytes | None, agreement: Agreement
) -> None:
    found = compare_predictions(retained, raw=canonical, canonical=canonical)
    assert found.agreement is agreement
    assert found.agrees is (agreement is Agreement.NOTHING)


def test_poses_are_compared_clip_by_clip() -> None:
    kept = {"0001": "a" * 64, "0002": "b" * 64, "0003": "c" * 64}
    assert compare_poses(kept, kept).agreement is Agreement.BYTE_IDENTICAL
    assert compare_poses({}, {}).agreement is Agreement.NOTHING
    found = compare_poses(kept, {"0001": "a" * 64, "0002": "x" * 64, "0004": "d" * 64})
    assert (found.positions, found.differing) == (4, 3)
    assert found.clips == ("0002", "0003", "0004")
    assert not found.agrees


FIGURES = st.dictionaries(st.sampled_from("abcd"), st.one_of(st.none(), st.floats(0, 1)))


@given(FIGURES, FIGURES)
def test_figures_that_differ_are_those_whose_values_do(
    recorded: dict[str, Json], replayed: dict[str, Json]
) -> None:
    found = compare_figures(recorded, replayed)
    assert compare_figures(recorded, recorded) == {}
    for name in recorded.keys() | replayed.keys():
        assert (name in found) is (recorded.get(name) != replayed.get(name))


def test_an_engines_identity_is_no_difference_and_its_version_is() -> None:
    before = {"docker": "20.10", "engine_id": "A", "advisories": ["old"], "kernel": "6.1"}
    now = {"docker": "28.5", "engine_id": "B", "advisories": [], "kernel": "6.1"}
    assert compare_environments(before, now) == {"docker": ("20.10", "28.5")}
