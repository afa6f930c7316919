"""Lines of a hostile file: bounded in size, depth, number of problems, memory and time."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.encoding import Json
from manifests.predictions.lines import ClipExpectation, PredictionLimits, Reading, read_lines
from manifests.predictions.problems import ProblemKind
from manifests.predictions.recognition import read_recognition

CLIPS = {f"{number:04d}": ClipExpectation(n_segments=2) for number in range(1, 4)}
MIB = 1024 * 1024


def entry(clip_id: str, document: dict[str, Json]) -> tuple[str, int]:
    return clip_id, len(document)


def read(data: bytes, **limits: int) -> Reading[tuple[str, int]]:
    return read_lines(
        data, source="p", clips=CLIPS, read_entry=entry, limits=PredictionLimits(**limits)
    )


def line(clip_id: str, **fields: Json) -> bytes:
    return json.dumps({"clip_id": clip_id} | fields).encode() + b"\n"


ALL = line("0003") + line("0001") + line("0002")


@pytest.mark.parametrize("data", [ALL, ALL[:-1], ALL.replace(b"\n", b"\r\n")])
def test_lines_come_in_any_order_and_are_sorted(data: bytes) -> None:
    reading = read(data)
    assert reading.complete
    assert [clip_id for clip_id, _ in reading.entries] == ["0001", "0002", "0003"]


def test_a_missing_clip_makes_a_file_incomplete_not_invalid() -> None:
    reading = read(line("0002"))
    assert reading.valid
    assert not reading.complete
    (problem,) = reading.problems
    assert (problem.kind, problem.clip_id) == (ProblemKind.MISSING_CLIP, "0001")
    assert "2 of 3 clips have no line, the first is 0001" in problem.message
    assert reading.valid_entries() == (("0002", 1),)


def test_an_empty_file_misses_every_clip() -> None:
    assert "3 of 3 clips" in read(b"").problems[0].message


def test_a_broken_line_does_not_also_count_its_clip_as_missing() -> None:
    reading = read(line("0001") + line("0002") + b'{"clip_id": "0003", "signs": [NaN]}\n')
    assert [problem.kind for problem in reading.problems] == [ProblemKind.NOT_JSON]
    assert reading.problems[0].clip_id == "0003"


@pytest.mark.parametrize(
    ("bad", "kind", "fact"),
    [
        (b"\n", ProblemKind.BLANK_LINE, "p:4: a blank line"),
        (b"[]\n", ProblemKind.NOT_JSON, "expected a JSON object"),
        (b"{}\n", ProblemKind.MISSING_FIELD, "clip_id is missing"),
        (b"{\n", ProblemKind.NOT_JSON, "not strict JSON"),
        (b"\xff\n", ProblemKind.NOT_JSON, "not UTF-8 at byte 0"),
        (b"\xef\xbb\xbf" + line("0001"), ProblemKind.NOT_JSON, "not strict JSON"),
        (b'{"clip_id":1}\n', ProblemKind.WRONG_TYPE, "clip_id is not a string"),
        (line("0004"), ProblemKind.UNKNOWN_CLIP, '"0004" is not one of the 3 clips'),
        (line("\x1b[2J"), ProblemKind.UNKNOWN_CLIP, '"\\x1b[2J" is not one'),
        (line("0001"), ProblemKind.DUPLICATE_CLIP, "clip 0001 stands on line 2 already"),
        (b'{"clip_id":"0001","clip_id":"0001"}\n', ProblemKind.NOT_JSON, "stands twice"),
        (b'{"x":' + b"9" * 5000 + b"}\n", ProblemKind.NOT_JSON, "not strict JSON"),
        (b'{"x":1e999}\n', ProblemKind.NOT_JSON, "out of range"),
        (b'{"x":' + b"[" * 8 + b"]" * 8 + b"}\n", ProblemKind.TOO_DEEP, "deeper than 8"),
    ],
)
def test_a_bad_line_is_told_by_number(bad: bytes, kind: ProblemKind, fact: str) -> None:
    (problem,) = read(ALL + bad).problems
    assert (problem.kind, problem.line) == (kind, 4)
    assert fact in problem.message


def test_brackets_in_strings_are_not_depth() -> None:
    assert read(ALL.replace(b'"0001"', b'"0001", "x": "[[[[[[[[[[\\"[[["')).complete


def test_a_file_beyond_the_limit_is_not_read() -> None:
    (problem,) = read(ALL, max_bytes=10).problems
    assert problem.kind is ProblemKind.FILE_TOO_LARGE
    assert f"{len(ALL)} bytes; at most 10" in problem.message


def test_a_line_beyond_the_limit_is_not_parsed() -> None:
    (problem,) = read(ALL + line("0001", x="y" * 200), max_line_bytes=100).problems
    assert (problem.kind, problem.line) == (ProblemKind.LINE_TOO_LONG, 4)
    assert read(ALL + b"x" * 100, max_line_bytes=100).problems[0].kind is ProblemKind.NOT_JSON


def test_reading_stops_at_the_last_problem_that_is_told() -> None:
    reading = read(b"x\n" * 1000, max_problems=5)
    assert [problem.line for problem in reading.problems] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "data",
    [
        b"\n" * (60 * MIB),
        b"[" * (60 * MIB),
        (b"[" * (MIB - 1) + b"\n") * 60,
        (b'"' + b'\\"' * (MIB // 2 - 1) + b"\n") * 60,
        b"\xff" * (100 * MIB),
        b'{"clip_id":"0001","signs":["' + b"A" * (60 * MIB),
        (b'{"clip_id":"0001","signs":[' + b'"A",' * 200_000 + b'"A"]}\n') * 10,
    ],
    ids=["newlines", "brackets", "deep lines", "escapes", "bytes", "one gloss", "many signs"],
)
def test_a_hostile_file_costs_little_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        reading = read_recognition(data, source="p", clips=CLIPS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not reading.valid
    assert len(reading.problems) <= 21
    assert peak < 40 * MIB


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=120))
def test_arbitrary_bytes_become_problems_not_errors(data: bytes) -> None:
    reading = read(data)
    assert not reading.complete
    assert all(problem.message.isprintable() for problem in reading.problems)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(JSON, JSON)
def test_arbitrary_json_becomes_problems_not_errors(signs: Json, confidence: Json) -> None:
    documents = [
        {"clip_id": "0001", "signs": signs},
        {"clip_id": "0002", "signs": [{"candidates": ["A"], "confidence": confidence}]},
    ]
    data = "\n".join(json.dumps(document) for document in documents).encode()
    reading = read_recognition(data, source="p", clips=CLIPS)
    assert all(problem.message.isprintable() for problem in reading.problems)
    assert all(problem.clip_id is not None for problem in reading.problems)
