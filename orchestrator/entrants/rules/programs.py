"""Read a program file's head: what would have to be there for it to start."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HEAD_BYTES: Final = 64 * 1024
_MACHINES: Final = {0x3E: "amd64", 0xB7: "arm64", 0x28: "arm", 0x03: "386", 0xF3: "riscv64"}
_PT_INTERP: Final = 3
_MOST_SEGMENTS: Final = 64
_LONGEST_PATH: Final = 255


class FileKind(StrEnum):
    """What a path of the image is."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFile:
    """A path in the image; `head` are the first bytes of a file, `target` is where a link leads."""

    path: str
    kind: FileKind
    mode: int
    uid: int
    gid: int
    head: bytes = b""
    target: str = ""

    def permits(self, bit: int, *, user_id: int) -> bool:
        """Tell whether the user may read (4), write (2) or execute (1) it; groups alike."""
        if user_id == self.uid:
            return bool(self.mode & (bit << 6))
        if user_id == self.gid:
            return bool(self.mode & (bit << 3))
        return bool(self.mode & bit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a program file asks for: an interpreter, a processor, or neither."""

    interpreter: str | None = None
    machine: str | None = None
    is_script: bool = False
    has_carriage_return: bool = False
    """The first line ends as on Windows, so that the interpreter's name ends in `\\r`."""


def read_program(head: bytes) -> Program | None:
    """Return what a file's head says, or None where it is no program: no ELF and no `#!`."""
    if head.startswith(b"#!"):
        return _script(head)
    if head.startswith(b"\x7fELF"):
        return _elf(head)
    return None


def _script(head: bytes) -> Program:
    line = head[2:].split(b"\n", 1)[0][:_LONGEST_PATH]
    words = line.split()
    return Program(
        interpreter=words[0].decode("utf-8", "backslashreplace") if words else "",
        is_script=True,
        has_carriage_return=line.endswith(b"\r"),
    )


def _elf(head: bytes) -> Program:
    """Read e_machine and PT_INTERP (System V ABI, chapters 4 and 5); 64-bit little-endian only."""
    if len(head) < 64 or head[4:6] != b"\x02\x01":
        return Program(machine="32-bit or big-endian")
    number = struct.unpack_from("<H", head, 18)[0]
    offset, size, count = _program_headers(head)
    interpreter = None
    for index in range(min(count, _MOST_SEGMENTS)):
        start = offset + index * size
        if size < 56 or start + 56 > len(head):
            break
        kind, _flags, place, _va, _pa, length = struct.unpack_from("<IIQQQQ", head, start)
        if kind == _PT_INTERP and place + length <= len(head):
            text = head[place : place + min(length, _LONGEST_PATH)]
            interpreter = text.split(b"\0")[0].decode("utf-8", "backslashreplace")
    return Program(machine=_MACHINES.get(number, f"number {number}"), interpreter=interpreter)


def _program_headers(head: bytes) -> tuple[int, int, int]:
    offset = struct.unpack_from("<Q", head, 32)[0]
    size, count = struct.unpack_from("<HH", head, 54)
    return offset, size, count
