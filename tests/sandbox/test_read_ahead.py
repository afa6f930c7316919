"""A thread reads ahead: in order, in bounds, without losing an error or staying behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from orchestrator.sandbox.read_ahead import read_ahead

CHUNKS = [bytes([number]) * 10 for number in range(100)]


def reading_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "read-ahead"]


@pytest.mark.parametrize("limit", [1, 10, 55, 10_000])
def test_chunks_come_in_order_whatever_the_limit(limit: int) -> None:
    with read_ahead(iter(CHUNKS), limit_bytes=limit) as chunks:
        assert list(chunks) == CHUNKS
    assert reading_threads() == []


def test_reading_begins_before_anybody_asks() -> None:
    begun = threading.Event()

    def first() -> Iterator[bytes]:
        begun.set()
        yield b"x"

    with read_ahead(first()) as chunks:
        assert begun.wait(10)
        assert list(chunks) == [b"x"]


def test_no_more_than_the_limit_and_a_chunk_waits() -> None:
    taken: list[int] = []
    full = threading.Event()

    def counted() -> Iterator[bytes]:
        for number, chunk in enumerate(CHUNKS):
            taken.append(number)
            if number == 3:
                full.set()
            yield chunk

    with read_ahead(counted(), limit_bytes=25) as chunks:
        assert full.wait(10)
        # Three wait, the fourth is in the thread's hand: a fifth is never asked for.
        assert next(chunks) == CHUNKS[0]
        assert len(taken) <= 5
        assert list(chunks) == CHUNKS[1:]


def test_an_error_is_raised_after_the_chunks_before_it() -> None:
    def broken() -> Iterator[bytes]:
        yield b"whole"
        raise ValueError("cut short")

    with read_ahead(broken()) as chunks:
        assert next(chunks) == b"whole"
        with pytest.raises(ValueError, match="cut short"):
            next(chunks)
    assert reading_threads() == []


def test_a_reader_that_fails_leaves_no_thread_behind() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 100

    def fail() -> None:
        with read_ahead(endless(), limit_bytes=500) as chunks:
            raise KeyError(next(chunks))

    with pytest.raises(KeyError):
        fail()
    assert reading_threads() == []
