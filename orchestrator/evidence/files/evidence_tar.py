"""An exported tar as evidence: indexed by its headers, never unpacked.

Only the canonical form passes (see `orchestrator.support.tar.deterministic_tar`), so a link, a
device, a doubled name or a single odd byte in header or padding ends the reading. Memory holds one
name per file; a size that the file does not have is found before a byte of it is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from manifests.errors import MalformedDocument
from orchestrator.support.tar.deterministic_tar import (
    BLOCK_BYTES,
    END,
    MAGIC,
    MAGIC_AT,
    padding_bytes,
    parse_tar_header,
)

MAX_FILES = 2_000_000
_CHUNK_BYTES = 1 << 20


class EvidenceTar:
    """Implements `orchestrator.evidence.ports.EvidenceTree`.

    All files lie in one top folder, which the names leave out.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._faults: list[str] = []
        self._index: dict[str, tuple[int, int]] = {}
        self._root = ""
        try:
            with path.open("rb") as file:
                self._read_index(file)
        except MalformedDocument as error:
            self._faults.append(str(error))
        except OSError as error:
            raise MalformedDocument(f"{path}: cannot be read: {error.strerror}") from error

    @property
    def place(self) -> str:
        """The tar's path."""
        return str(self._path)

    @property
    def faults(self) -> tuple[str, ...]:
        """Where the tar leaves its canonical form; reading ends at the first such place."""
        return tuple(self._faults)

    @property
    def names(self) -> tuple[str, ...]:
        """The sorted names of the files, without the top folder."""
        return tuple(self._index)

    def size_bytes(self, name: str) -> int:
        """Return a file's size."""
        return self._index[name][1]

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield a file's bytes."""
        begin, left = self._index[name]
        try:
            with self._path.open("rb") as file:
                file.seek(begin)
                while left:
                    chunk = file.read(min(left, _CHUNK_BYTES))
                    if not chunk:
                        raise MalformedDocument(f"{self._path}: {name} ends early")
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise MalformedDocument(f"{self._path}: cannot be read: {error.strerror}") from error

    def _read_index(self, file: BinaryIO) -> None:
        total = os.fstat(file.fileno()).st_size
        previous = ""
        while True:
            at = file.tell()
            block = file.read(BLOCK_BYTES)
            if block == END[:BLOCK_BYTES]:
                break
            name, size_bytes = self._entry(block, at)
            if name <= previous:
                raise MalformedDocument(f"{name} stands twice or out of order")
            previous = name
            self._take(name, begin=at + BLOCK_BYTES, size_bytes=size_bytes, total=total)
            file.seek(at + BLOCK_BYTES + size_bytes)
            padding = file.read(padding_bytes(size_bytes))
            if padding != bytes(padding_bytes(size_bytes)):
                raise MalformedDocument(f"{name}: its padding is not zero")
        if file.read(BLOCK_BYTES) != END[BLOCK_BYTES:] or file.tell() != total:
            raise MalformedDocument("the tar does not end with exactly two zero blocks")
        if not self._index:
            raise MalformedDocument("the tar is empty")

    def _entry(self, block: bytes, at: int) -> tuple[str, int]:
        try:
            entry = parse_tar_header(block)
        except MalformedDocument as error:
            raise MalformedDocument(f"at byte {at}: {error}") from error
        return entry.name, entry.size_bytes

    def _take(self, full_name: str, *, begin: int, size_bytes: int, total: int) -> None:
        root, slash, name = full_name.partition("/")
        if not slash or (self._index and root != self._root):
            raise MalformedDocument(f"{full_name}: is not in the tar's one top folder")
        self._root = root
        if begin + size_bytes > total:
            raise MalformedDocument(
                f"{full_name}: claims {size_bytes} bytes, but the tar has only {total - begin} more"
            )
        if len(self._index) >= MAX_FILES:
            raise MalformedDocument(f"more than {MAX_FILES} files")
        self._index[name] = (begin, size_bytes)


def is_tar(path: Path) -> bool:
    """Tell whether a file is meant as a tar: by its name, or by the mark in its first header."""
    try:
        with path.open("rb") as file:
            return file.read(BLOCK_BYTES)[MAGIC_AT:].startswith(MAGIC[:5]) or path.suffix == ".tar"
    except OSError as error:
        raise MalformedDocument(f"{path}: cannot be read: {error.strerror}") from error
