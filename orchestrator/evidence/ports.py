"""Published evidence as a tree of files that nobody vouches for, read only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


class StagedTar(Protocol):
    """A tar in the making: nobody sees it under its name before it is published."""

    @property
    def place(self) -> str:
        """The path that it will have, for messages."""

    def write(self, chunks: Iterable[bytes]) -> None:
        """Write the whole tar. Raises PlatformFault where the disk refuses."""

    def reopen(self) -> EvidenceTree:
        """Return what was written, as an auditor will read it."""

    def publish(self) -> None:
        """Put the tar in place, durable; a file that is there already is never replaced.

        Raises:
            RefusedByPolicy: a file has that name.

        """
