"""Run an iterator ahead of its reader in a thread, at most so many bytes ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

AHEAD_BYTES: Final = 32 * 2**20
"""Bounds what waits in memory; one chunk larger than this still passes."""

_PARTING_S: Final = 5.0
"""How long an abandoned thread is waited for: one that an engine keeps waiting ends with it."""


class _Ahead:
    """The chunks that wait, and how the thread ended."""

    def __init__(self, chunks: Iterable[bytes], limit_bytes: int) -> None:
        self._chunks = chunks
        self._limit = limit_bytes
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._ended = False
        self._abandoned = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def fill(self) -> None:
        """Read the chunks, in the thread; whatever is raised waits for the reader."""
        try:
            for chunk in self._chunks:
                if not self._put(chunk):
                    break
        except BaseException as error:  # noqa: BLE001 - raised again where the chunks are read
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _put(self, chunk: bytes) -> bool:
        with self._changed:
            self._changed.wait_for(
                lambda: self._abandoned or not self._waiting or self._waiting_bytes < self._limit
            )
            if self._abandoned:
                return False
            self._waiting.append(chunk)
            self._waiting_bytes += len(chunk)
            self._changed.notify_all()
        return True

    def read(self) -> Iterator[bytes]:
        """Yield the chunks in order, then raise what the thread ended with."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    break
                chunk = self._waiting.popleft()
                self._waiting_bytes -= len(chunk)
                self._changed.notify_all()
            yield chunk
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Let the thread end at its next chunk."""
        with self._changed:
            self._abandoned = True
            self._waiting.clear()
            self._waiting_bytes = 0
            self._changed.notify_all()


@contextmanager
def read_ahead(
    chunks: Iterable[bytes], *, limit_bytes: int = AHEAD_BYTES
) -> Iterator[Iterator[bytes]]:
    """Give `chunks`, read in a thread from the beginning of the block to its end.

    An error of `chunks` is raised where they are read. No chunk waits any longer after the block.
    """
    ahead = _Ahead(chunks, limit_bytes)
    thread = threading.Thread(target=ahead.fill, name="read-ahead", daemon=True)
    thread.start()
    try:
        yield ahead.read()
    finally:
        ahead.abandon()
        thread.join(_PARTING_S)
