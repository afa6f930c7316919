"""Read a tar stream that an entrant may have shaped, block by block, without trusting a size.

`tarfile` keeps long names and extended headers in memory at whatever length they claim, and hides
what a member really is. Here each bound stands where the bytes are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

BLOCK_BYTES: Final = 512
_EXTENSION_BYTES: Final = 64 * 1024
"""An extended header or a long name is no longer than this."""

_PAX_RECORD: Final = re.compile(rb"^([1-9][0-9]{0,6}) ([^=\n]{1,256})=")


class TarError(ValueError):
    """The stream is no tar that we read: the fact, for the caller's own error."""


class TarKind(StrEnum):
    """What a member is."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symbolic link"
    HARD_LINK = "hard link"
    FIFO = "pipe"
    DEVICE = "device"
    SPARSE = "sparse file"
    OTHER = "other"


_KINDS: Final = {
    b"0": TarKind.FILE,
    b"\0": TarKind.FILE,
    b"7": TarKind.FILE,
    b"1": TarKind.HARD_LINK,
    b"2": TarKind.SYMLINK,
    b"3": TarKind.DEVICE,
    b"4": TarKind.DEVICE,
    b"5": TarKind.DIRECTORY,
    b"6": TarKind.FIFO,
    b"S": TarKind.SPARSE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TarMember:
    """One member's header; `size_bytes` is what the stream claims to carry for it."""

    name: bytes
    kind: TarKind
    size_bytes: int


def _number(field: bytes) -> int:
    """Read an octal field, or GNU's base-256 form of large sizes."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.rstrip(b" \0").lstrip(b" ")
    if not text:
        return 0
    if not re.fullmatch(rb"[0-7]+", text):
        raise TarError("a header holds a size that is no number")
    return int(text, 8)


def _check_sum(block: bytes) -> None:
    total = sum(block) - sum(block[148:156]) + 8 * 0x20
    if _number(block[148:156]) != total:
        raise TarError("a header's checksum is wrong")


def _pax_records(data: bytes) -> dict[bytes, bytes]:
    records: dict[bytes, bytes] = {}
    while data.strip(b"\0"):
        found = _PAX_RECORD.match(data)
        if found is None:
            raise TarError("an extended header is not well formed")
        length = int(found[1])
        if length <= found.end() or length > len(data) or data[length - 1 : length] != b"\n":
            raise TarError("an extended header's length is wrong")
        records[found[2]] = data[found.end() : length - 1]
        data = data[length:]
    return records


def _pax_size(records: dict[bytes, bytes]) -> int | None:
    value = records.get(b"size")
    if value is None:
        return None
    if not re.fullmatch(rb"[0-9]{1,19}", value):
        raise TarError("an extended header's size is no number")
    return int(value)


class TarStream:
    """A tar stream, member by member; a member's data is read or skipped before the next."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")
        self._left = 0
        self._padding = 0

    def _pieces(self, size: int) -> Iterator[memoryview]:
        """Yield exactly `size` bytes as they come."""
        while size:
            if not self._rest:
                chunk = next(self._chunks, None)
                if chunk is None:
                    raise TarError("the stream ends in the middle of a member")
                self._rest = memoryview(chunk)
                continue
            piece = self._rest[:size]
            self._rest = self._rest[len(piece) :]
            size -= len(piece)
            yield piece

    def _exactly(self, size: int) -> bytes:
        return b"".join(self._pieces(size))

    def data(self) -> Iterator[memoryview]:
        """Yield the present member's data."""
        for piece in self._pieces(self._left):
            self._left -= len(piece)
            yield piece

    def _skip(self) -> None:
        for _ in self.data():
            pass
        for _ in self._pieces(self._padding):
            pass
        self._padding = 0

    def _header(self) -> bytes | None:
        block = self._exactly(BLOCK_BYTES)
        if not block.strip(b"\0"):
            return None
        _check_sum(block)
        return block

    def _extension(self, size: int) -> bytes:
        if size > _EXTENSION_BYTES:
            raise TarError("an extended header is too long")
        data = self._exactly(size)
        self._exactly(-size % BLOCK_BYTES)
        return data

    def members(self) -> Iterator[TarMember]:
        """Yield the members in order. Raises TarError where the stream is broken."""
        name: bytes | None = None
        records: dict[bytes, bytes] = {}
        while (block := self._header()) is not None:
            kind, size = block[156:157], _number(block[124:136])
            if kind == b"x":
                records = _pax_records(self._extension(size))
            elif kind == b"L":
                name = self._extension(size).rstrip(b"\0")
            elif kind in b"gK":
                self._extension(size)
            else:
                yield self._begin(block, name, records)
                self._skip()
                name, records = None, {}

    def _begin(self, block: bytes, long_name: bytes | None, pax: dict[bytes, bytes]) -> TarMember:
        kind = _KINDS.get(block[156:157], TarKind.OTHER)
        if any(key.startswith(b"GNU.sparse.") for key in pax):
            kind = TarKind.SPARSE
        size = _pax_size(pax)
        if size is None:
            size = _number(block[124:136])
        # Links and directories carry no data, whatever their size field says.
        carried = size if kind in {TarKind.FILE, TarKind.SPARSE, TarKind.OTHER} else 0
        self._left, self._padding = carried, -carried % BLOCK_BYTES
        name = block[:100].split(b"\0")[0]
        prefix = block[345:500].split(b"\0")[0] if block[257:263] == b"ustar\0" else b""
        plain = prefix + b"/" + name if prefix else name
        return TarMember(name=pax.get(b"path", long_name or plain), kind=kind, size_bytes=carried)


def drain(chunks: Iterable[bytes]) -> None:
    """Read a stream to its end."""
    for _ in chunks:
        pass
