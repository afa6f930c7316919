"""Programs of a few hundred bytes: the holder's, and one that tries a list of system calls.

They are whole static ELF files, built here byte by byte, so that the sandbox's own parts come from
no registry and their digests are known beforehand.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from orchestrator.sandbox.rules.syscall_numbers import SYSCALL_NUMBERS

_BASE: Final = 0x400000
_HEADER_BYTES: Final = 64 + 56
_SCRATCH_BYTES: Final = 64 * 1024
_ARGUMENTS: Final = 6
REPORT_BYTES: Final = 17
"""What the probe writes for each call: 16 letters `a` to `p`, one a half byte, and a newline."""


class Architecture(Enum):
    """A processor that the parts are built for: OCI's name, the kernel's name, ELF's number."""

    AMD64 = ("amd64", "x86_64", 0x3E)
    ARM64 = ("arm64", "aarch64", 0xB7)

    @property
    def oci(self) -> str:
        """Return the name in image configurations."""
        return self.value[0]

    @property
    def machine(self) -> str:
        """Return the name that `uname -m` and the engine use."""
        return self.value[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCall:
    """One system call. Arguments of bytes are passed as a pointer to them.

    With `child_pauses`, whoever sees the result 0 sleeps for ever: the child of a `clone`.
    """

    syscall: str
    arguments: tuple[int | bytes, ...] = ()
    child_pauses: bool = False


_PAUSE: Final = {
    # pause: mov eax, 34 (pause); syscall; jmp pause
    Architecture.AMD64: bytes.fromhex("b8220000000f05ebf7"),
    # pause: x0..x4 = 0; x8 = 73 (ppoll); svc #0; b pause
    Architecture.ARM64: bytes.fromhex(
        "000080d2010080d2020080d2030080d2040080d2280980d2010000d4f9ffff17"
    ),
}

_PROBE: Final = {
    # rbx is the table, r12 the count of calls left.
    # next:   if r12 == 0 goto done
    #         rax, rdi, rsi, rdx, r10, r8, r9 = the seven words at rbx; syscall; r13 = rax
    #         if the eighth word and r13 == 0: pause for ever
    #         rdi = buffer; 16 times: rol r13, 4; store 'a' + (r13 & 15); then store '\n'
    #         write(1, buffer, 17); rbx += 64; r12 -= 1; goto next
    # done:   exit with 0
    Architecture.AMD64: bytes.fromhex(
        "488b1d910000004c8b25920000004d85e47477488b03488b7b08488b7310488b"
        "53184c8b53204c8b43284c8b4b300f054989c548837b3800740e4d85ed7509b8"
        "220000000f05ebf7488b3d59000000b91000000049c1c5044489e883e00f83c0"
        "61aaffc975eec6070ab801000000bf01000000488b352e000000ba110000000f"
        "054883c34049ffcceb84b83c00000031ff0f050f1f440000"
    ),
    # the same, with x19 = table, x20 = count, x8 and x0..x5 = the words, x6 = the eighth
    Architecture.ARM64: bytes.fromhex(
        "5305005874050058940400b4680240a9610a41a9631242a9651a43a9010000d4"
        "f50300aa460100b4350100b5000080d2010080d2020080d2030080d2040080d2"
        "280980d2010000d4f9ffff1769030058ea0315aa0b0280524af1ca934c0d0012"
        "8c8501112c1500386b05007161ffff544c0180522c010039200080d2e1010058"
        "220280d2080880d2010000d473020191940600d1ddffff17000080d2a80b80d2"
        "010000d41f2003d5"
    ),
}
"""Both read three words that follow the code: the table's address, its length, the buffer."""


def _elf(architecture: Architecture, body: bytes) -> bytes:
    """Wrap `body` as a static executable of one segment that begins at its first byte."""
    entry = _BASE + _HEADER_BYTES
    size = _HEADER_BYTES + len(body)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        2,  # ET_EXEC
        architecture.value[2],
        1,
        entry,
        64,  # the program header follows
        0,
        0,
        64,
        56,
        1,
        64,
        0,
        0,
    )
    segment = struct.pack("<IIQQQQQQ", 1, 7, 0, _BASE, _BASE, size, size + _SCRATCH_BYTES, 0x10000)
    return header + segment + body


def pause_elf(architecture: Architecture) -> bytes:
    """Return a program that sleeps until it is killed."""
    return _elf(architecture, _PAUSE[architecture])


def syscall_probe_elf(architecture: Architecture, calls: Sequence[ProbeCall]) -> bytes:
    """Return a program that makes `calls` in order, reports each result and exits with 0.

    File descriptors are as in a fresh process: the first one opened is 3.
    """
    code = _PROBE[architecture]
    table_at = _BASE + _HEADER_BYTES + len(code) + 3 * 8
    data_at = table_at + 64 * len(calls)
    table, data = b"", b""
    for call in calls:
        words = [SYSCALL_NUMBERS[architecture.machine][call.syscall]]
        for argument in call.arguments:
            if isinstance(argument, bytes):
                words.append(data_at + len(data))
                data += argument + bytes(8 - len(argument) % 8)
            else:
                words.append(argument % 2**64)
        words += [0] * (1 + _ARGUMENTS - len(words))
        table += struct.pack("<8Q", *words, int(call.child_pauses))
    constants = struct.pack("<3Q", table_at, len(calls), data_at + len(data))
    return _elf(architecture, code + constants + table + data)


def parse_probe_report(text: bytes) -> list[int]:
    """Return the results that the probe wrote, in order; a negative one is an error number."""
    results = []
    for line in text.split(b"\n"):
        if len(line) == REPORT_BYTES - 1 and all(97 <= letter < 113 for letter in line):
            value = int("".join(f"{letter - 97:x}" for letter in line), 16)
            results.append(value - 2**64 if value >= 2**63 else value)
    return results
