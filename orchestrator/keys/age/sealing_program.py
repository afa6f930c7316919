"""A program that encrypts for its parent, from memory to memory: its own interpreter, its own lock.

It is started as a file, imports next to nothing and holds no secret. Its arguments are the
descriptors of two memory files, for what is to be sealed and for what becomes of it. Each line of
its standard input is a request, each line of its output the answer. It ends when its input ends,
and so does not outlive its parent.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import sys
from collections.abc import Iterable

import pyrage  # type: ignore[import-untyped]  # ships no stubs
from pyrage import x25519


class Memory:
    """A memory file, mapped as far as it reaches: whoever needs more makes it longer."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._mapped: mmap.mmap | None = None

    def mapped(self) -> mmap.mmap:
        """Return the file's memory; pages stay, as new ones cost more than encrypting them."""
        size_bytes = os.fstat(self.descriptor).st_size
        if self._mapped is None or len(self._mapped) != size_bytes:
            self._mapped = mmap.mmap(self.descriptor, size_bytes)
        return self._mapped

    def fill(self, parts: Iterable[bytes]) -> None:
        """Write the parts one behind the other, from the beginning."""
        mapped = self.mapped()
        mapped.seek(0)
        for part in parts:
            mapped.write(part)

    def close(self) -> None:
        """Let go of the memory."""
        if self._mapped is not None:
            self._mapped.close()
        os.close(self.descriptor)


def _seal(plain: bytes, layers: list[list[str]], target: mmap.mmap) -> int:
    """Encrypt into `target`, one layer per list of recipients, the first innermost."""
    *inner, outermost = [[x25519.Recipient.from_str(text) for text in layer] for layer in layers]
    held = io.BytesIO(plain)
    for recipients in inner:
        wrapped = io.BytesIO()
        pyrage.encrypt_io(held, wrapped, recipients)
        held = io.BytesIO(wrapped.getvalue())
    target.seek(0)
    pyrage.encrypt_io(held, target, outermost)
    return target.tell()


def main(arguments: list[str]) -> None:
    """Answer requests until there are no more."""
    source, target = (Memory(int(argument)) for argument in arguments)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        sealed = target.mapped()
        plain = source.mapped()[: request["size_bytes"]]
        size_bytes = _seal(plain, request["layers"], sealed)
        with memoryview(sealed) as whole, whole[:size_bytes] as written:
            sha256 = hashlib.sha256(written).hexdigest()
        answer = {"size_bytes": size_bytes, "sha256": sha256}
        sys.stdout.buffer.write(json.dumps(answer).encode("ascii") + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
