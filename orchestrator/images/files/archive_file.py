"""An image archive on disk, read by offset through one open file."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from manifests.errors import MalformedDocument, PlatformFault

_CHUNK_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"


class ArchiveFile:
    """Implements ArchiveSource; what is read later is the file that was opened, not its path."""

    def __init__(self, path: Path) -> None:
        """Open `path`.

        Raises:
            MalformedDocument: when it is missing, no regular file, or compressed as a whole.
            PlatformFault: when it cannot be read.

        """
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MalformedDocument(f"{path}: there is no such file") from error
        except OSError as error:
            raise PlatformFault(f"{path}: cannot be opened: {error.strerror}") from error
        try:
            self._size_bytes = self._checked_size()
        except MalformedDocument:
            self.close()
            raise

    def _checked_size(self) -> int:
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise MalformedDocument(f"{self._path}: not a regular file")
        if self.read_at(0, len(_GZIP)) == _GZIP:
            raise MalformedDocument(f"{self._path}: compressed as a whole; run gunzip first")
        return status.st_size

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self._path.name

    @property
    def size_bytes(self) -> int:
        """The size when it was opened."""
        return self._size_bytes

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        """Return at most `size_bytes` from `offset`."""
        try:
            return os.pread(self._descriptor, size_bytes, offset)
        except OSError as error:
            raise PlatformFault(f"{self._path}: cannot be read: {error.strerror}") from error

    def sha256_hex(self) -> str:
        """Return the SHA-256 of the whole file."""
        digest, offset = hashlib.sha256(), 0
        while chunk := self.read_at(offset, _CHUNK_BYTES):
            digest.update(chunk)
            offset += len(chunk)
        return digest.hexdigest()

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()
