"""Published evidence as a tree of files that nobody vouches for, read only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class EvidenceTree(Protocol):
    """A folder or a tar. What is no plain file with a safe name is a fault and is not read."""

    @property
    def place(self) -> str:
        """The path, for messages."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not a plain file: links, devices, unsafe or doubled names, odd tar bytes."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the sorted relative names of the plain files."""

    def size_bytes(self, name: str) -> int:
        """Return a file's size."""

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield a file's bytes in chunks; links are never followed.

        Raises:
            MalformedDocument: it cannot be read, or is no longer what was listed.

        """
