"""A vocabulary holds one safe gloss per line, each once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from manifests.glosses import label_gloss_fault
from manifests.vocabulary import parse_vocabulary, render_vocabulary


@pytest.mark.parametrize(
    "data", [b"YOU\nOLD_2\n#CAR\n", b"YOU\nOLD_2\n#CAR", b"YOU\r\nOLD_2\r\n#CAR\r\n"]
)
def test_glosses_keep_the_order_of_the_file(data: bytes) -> None:
    assert parse_vocabulary(data, source="v") == ("YOU", "OLD_2", "#CAR")


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b"", "no gloss; write one per line"),
        (b"\n", "v.txt:1: a gloss is empty"),
        (b"YOU\n\nOLD\n", "v.txt:2: a gloss is empty"),
        (b"YOU\nOLD AGE\n", "v.txt:2: a gloss holds whitespace"),
        (b"YOU\nOLD\nYOU\n", "v.txt:3: YOU stands on line 1 already"),
        (b"UNKNOWN\n", "v.txt:1: UNKNOWN is reserved"),
        (b"YOU\n\xff\n", "v.txt:2: not UTF-8"),
        (b"\xef\xbb\xbfYOU\n", "v.txt:1: a gloss holds the character U+FEFF"),
        (b"YOU\x1b[0m\n", "U+001B"),
        (b"X" * 65 + b"\n", "65 characters; at most 64"),
        (b"X" * (8 * 1024 * 1024 + 1), "at most 8388608"),
    ],
)
def test_a_wrong_vocabulary_is_refused_with_its_line(data: bytes, fact: str) -> None:
    with pytest.raises(MalformedDocument) as caught:
        parse_vocabulary(data, source="v.txt")
    assert fact in str(caught.value)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=8, unique=True))
def test_what_is_rendered_is_parsed_back(glosses: list[str]) -> None:
    safe = [gloss for gloss in glosses if label_gloss_fault(gloss) is None] or ["YOU"]
    assert parse_vocabulary(render_vocabulary(safe), source="v") == tuple(safe)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        glosses = parse_vocabulary(data, source="v")
    except MalformedDocument:
        return
    assert all(label_gloss_fault(gloss) is None for gloss in glosses)
