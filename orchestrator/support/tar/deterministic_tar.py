"""A tar in one canonical form: the same files give the same bytes, and no other bytes pass.

POSIX ustar; regular files alone, in bytewise order of their names; mode 0644, owner 0, time 0;
two zero blocks at the end and nothing behind them. Whoever reads it can therefore compare every
byte with what the names and contents give, headers and padding included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

BLOCK_BYTES = 512
END = bytes(2 * BLOCK_BYTES)
MAGIC_AT = 257
MAGIC = b"ustar\x0000"

_MAX_SIZE_BYTES = 8**11 - 1
_NAME = re.compile(r"[A-Za-z0-9._/-]{1,255}", re.ASCII)
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a directory",
    b"6": "a pipe",
    b"7": "a contiguous file",
    b"S": "a sparse file",
    b"x": "an extended header",
    b"g": "an extended header",
    b"L": "a long name",
    b"K": "a long link",
    b"\0": "a file of the old kind",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TarEntry:
    """A file's header, as read."""

    name: str
    size_bytes: int


def name_fault(name: str) -> str | None:
    """Return why `name` cannot be a file's name in such a tar, or None."""
    if name.startswith("/"):
        return "is an absolute path"
    if ".." in name.split("/"):
        return "climbs out with .."
    if not _NAME.fullmatch(name) or any(part in {"", "."} for part in name.split("/")):
        return "is not a plain relative path of A-Z a-z 0-9 . _ / -"
    return None


def tar_header(name: str, size_bytes: int) -> bytes:
    """Return the one header of a file.

    Raises:
        MalformedDocument: the name or size cannot be held.

    """
    fault = name_fault(name)
    if fault is not None:
        raise MalformedDocument(f"tar: {escape_untrusted(name, 80)} {fault}")
    if not 0 <= size_bytes <= _MAX_SIZE_BYTES:
        raise MalformedDocument(f"tar: {name}: {size_bytes} bytes; at most {_MAX_SIZE_BYTES}")
    prefix, rest = _split(name)
    block = bytearray(BLOCK_BYTES)
    block[0 : len(rest)] = rest
    block[100:108] = b"0000644\0"
    block[108:116] = block[116:124] = b"0000000\0"
    block[124:136] = b"%011o\0" % size_bytes
    block[136:148] = b"00000000000\0"
    block[148:156] = b" " * 8
    block[156:157] = b"0"
    block[MAGIC_AT : MAGIC_AT + 8] = MAGIC
    block[329:337] = block[337:345] = b"0000000\0"
    block[345 : 345 + len(prefix)] = prefix
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def _split(name: str) -> tuple[bytes, bytes]:
    """Divide a name of more than 100 bytes at the first slash that leaves at most 100."""
    encoded = name.encode("ascii")
    if len(encoded) <= 100:
        return b"", encoded
    at = encoded.find(b"/", len(encoded) - 101)
    if not 0 < at <= 155:
        raise MalformedDocument(f"tar: {name}: too long for a tar of this form")
    return encoded[:at], encoded[at + 1 :]


def parse_tar_header(block: bytes) -> TarEntry:
    """Read one header, which must be byte for byte the one that `tar_header` writes.

    Raises:
        MalformedDocument: with what the entry is instead.

    """
    if len(block) != BLOCK_BYTES or block[MAGIC_AT : MAGIC_AT + 8] != MAGIC:
        raise MalformedDocument("not a header of the form ustar")
    prefix, rest = (_text(block[345:500]), _text(block[0:100]))
    name = f"{prefix}/{rest}" if prefix else rest
    shown = escape_untrusted(name, 80)
    kind = block[156:157]
    if kind != b"0":
        raise MalformedDocument(f"{shown} is {_KINDS.get(kind, 'of an unknown kind')}")
    fault = name_fault(name)
    if fault is not None:
        raise MalformedDocument(f"{shown} {fault}")
    if not re.fullmatch(rb"[0-7]{11}\x00", block[124:136]):
        raise MalformedDocument(f"{shown}: its size is no octal number")
    size_bytes = int(block[124:135], 8)
    if tar_header(name, size_bytes) != block:
        raise MalformedDocument(f"{shown}: its header is not in canonical form")
    return TarEntry(name=name, size_bytes=size_bytes)


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode("latin-1")


def padding_bytes(size_bytes: int) -> int:
    """Return how many zero bytes follow a file of this size."""
    return -size_bytes % BLOCK_BYTES


def tar_chunks(files: Iterable[tuple[str, int, Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield the tar of `(name, size in bytes, chunks)`, which must be sorted by name.

    Raises:
        MalformedDocument: a name is unsafe or out of order, or a file has another size than said.

    """
    previous = ""
    for name, size_bytes, chunks in files:
        if name <= previous:
            raise MalformedDocument(f"tar: {name} stands twice or out of order")
        previous = name
        yield tar_header(name, size_bytes)
        written = 0
        for chunk in chunks:
            written += len(chunk)
            yield chunk
        if written != size_bytes:
            raise MalformedDocument(f"tar: {name}: {written} bytes, expected {size_bytes}")
        yield bytes(padding_bytes(size_bytes))
    yield END
