"""Edits as files, candidates as they are written, salted labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from orchestrator.scoring.score_files import InputFile
from orchestrator.scoring.segment_tools import (
    UNIT_OF_EDIT,
    CandidateFiles,
    Edit,
    edit_labels,
    parse_candidate,
    select,
)

FOLDER = Path(__file__).resolve().parents[2] / "examples/segmentation"
LABELS = InputFile("labels-v1.jsonl", (FOLDER / "labels-v1.jsonl").read_bytes())
SIZES = {"frames": st.integers(1, 12), "percent": st.integers(10, 90)}


def spans(data: bytes) -> dict[str, list[tuple[int, int]]]:
    rows = [json.loads(line) for line in data.splitlines()]
    return {
        row["clip_id"]: [(each["start_frame"], each["end_frame"]) for each in row["segments"]]
        for row in rows
    }


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(Edit)), st.data(), st.integers(0, 2**32))
def test_every_edit_gives_segmentations_of_every_clip_within_its_frames(
    edit: Edit, data: st.DataObject, seed: int
) -> None:
    size = data.draw(SIZES[UNIT_OF_EDIT[edit]])
    files = edit_labels(LABELS, edit, size, seed=seed)
    rows = [json.loads(line) for line in LABELS.data.splitlines()]
    frames = {row["clip_id"]: row["n_frames"] for row in rows}
    for file in files:
        found = spans(file.data)
        assert found.keys() == frames.keys()
        assert file.segments == sum(map(len, found.values()))
        assert 0 <= file.exact <= file.segments
        for clip, each in found.items():
            edges = [edge for span in each for edge in span]
            assert edges == sorted(edges)
            assert all(0 <= start < end <= frames[clip] for start, end in each)


def test_the_seed_decides_what_is_drawn_and_nothing_else() -> None:
    one, same, other = (edit_labels(LABELS, Edit.JITTER, 4, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert edit_labels(LABELS, Edit.EROSION, 4, seed=1) == edit_labels(
        LABELS, Edit.EROSION, 4, seed=2
    )


def test_revealed_labels_with_a_salt_are_edited_alike() -> None:
    salted = InputFile("labels", b'{"salt":"' + b"ab" * 32 + b'"}\n' + LABELS.data)
    assert edit_labels(salted, Edit.EROSION, 4, seed=0) == edit_labels(
        LABELS, Edit.EROSION, 4, seed=0
    )


def test_labels_of_another_track_are_refused() -> None:
    other = InputFile("other.jsonl", b'{"clip_id":"a","signer_id":"A","glosses":["WHO"]}\n')
    with pytest.raises(MalformedDocument, match=r"other\.jsonl:1"):
        edit_labels(other, Edit.EROSION, 4, seed=0)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a=p.jsonl,c.jsonl", ("a", "p.jsonl", "c.jsonl")),
        ("a b=x/p.jsonl,y/c.jsonl", ("a b", "x/p.jsonl", "y/c.jsonl")),
        ("a=p=q.jsonl,c.jsonl", ("a", "p=q.jsonl", "c.jsonl")),
    ],
)
def test_a_candidate_is_split_into_name_predictions_and_answers(
    text: str, parts: tuple[str, str, str]
) -> None:
    assert parse_candidate(text) == parts


@pytest.mark.parametrize("text", ["", "a", "a=", "a=p", "a=p,", "=p,c", "a=,c", "\x1b[2Ja"])
def test_a_candidate_that_lacks_a_part_is_refused_and_escaped(text: str) -> None:
    with pytest.raises(MalformedDocument, match="NAME=PREDICTIONS") as refused:
        parse_candidate(text)
    assert "\x1b" not in str(refused.value)


def test_candidates_need_names_of_their_own() -> None:
    files = [
        InputFile(name, (FOLDER / name).read_bytes())
        for name in ("baseline.predictions.jsonl", "baseline.consumer.jsonl")
    ]
    vocabulary = InputFile("vocabulary.txt", (FOLDER / "vocabulary.txt").read_bytes())
    twice = [CandidateFiles("same", *files), CandidateFiles("same", *files)]
    with pytest.raises(MalformedDocument, match="distinct names"):
        select(LABELS, vocabulary, twice)
