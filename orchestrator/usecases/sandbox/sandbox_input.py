"""Send the clips into the input volume and remember their digests, in one pass."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Final

from manifests.errors import PlatformFault
from orchestrator.core.sandbox.collector import hash_tree
from orchestrator.core.sandbox.container_options import INPUT
from orchestrator.core.sandbox.tar_stream import TarError
from orchestrator.ports.engine import ContainerEngine

_WAITING_CHUNKS: Final = 8


class _Hasher:
    """Hashes the files of a tar stream in a thread beside the transfer."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | None] = queue.Queue(_WAITING_CHUNKS)
        self._thread = threading.Thread(target=self._hash, name="input-hasher", daemon=True)
        self._digests: dict[bytes, str] = {}
        self._error: TarError | None = None

    def _chunks(self) -> Iterator[bytes]:
        while (chunk := self._queue.get()) is not None:
            yield chunk

    def _hash(self) -> None:
        chunks = self._chunks()
        try:
            self._digests = hash_tree(chunks)
        except TarError as error:
            self._error = error
        for _ in chunks:
            pass

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks as they are, hashing them on the way."""
        self._thread.start()
        try:
            for chunk in chunks:
                self._queue.put(chunk)
                yield chunk
        finally:
            self._queue.put(None)

    def digests(self) -> dict[bytes, str]:
        """Return name → SHA-256 once everything has passed."""
        self._thread.join()
        if self._error is not None:
            raise PlatformFault(f"the input is no tar of files: {self._error}") from self._error
        return self._digests


def provide_input(
    engine: ContainerEngine, holder: str, chunks: Iterable[bytes]
) -> dict[bytes, str]:
    """Unpack a tar into the input volume through the holder; return name → SHA-256 of its files.

    Nothing but the engine's memory volume ever holds it.
    """
    hasher = _Hasher()
    passing = hasher.passing(chunks)
    try:
        engine.put_archive(holder, INPUT, passing)
    finally:
        passing.close()  # type: ignore[attr-defined] # a generator
    return hasher.digests()


def input_has_changed(engine: ContainerEngine, holder: str, digests: dict[bytes, str]) -> bool:
    """Read the input back from the volume and tell whether it is what was provided."""
    try:
        return hash_tree(engine.get_archive(holder, INPUT), b"input") != digests
    except TarError:
        return True
