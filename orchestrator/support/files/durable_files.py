"""Write files that are either whole or absent, and name the remedy when the disk refuses."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from manifests.errors import DiskFull, PlatformFault

TEMPORARY_PREFIX = ".tmp-"
"""A file under this name was being written when its process died; it was never read by anybody."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_EXISTING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

_REMEDIES = {
    errno.ENOSPC: "the disk is full: free space there",
    errno.EDQUOT: "the disk quota is used up: free space there",
    errno.EROFS: "the file system is read-only: mount it writable, or use another workspace",
    errno.EACCES: "permission denied: give this user access, or run as the folder's owner",
    errno.EPERM: "the operation is not permitted: check owner and attributes",
    errno.ELOOP: "it is a symbolic link: put the file itself there",
    errno.EEXIST: "it exists already and is never overwritten: move it away first",
    errno.EIO: "the disk reports an error: check it before anything else",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n)",
    errno.ENOTDIR: "a part of the path is a file: move it away",
}

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def disk_fault(error: OSError, path: Path, act: str) -> PlatformFault:
    """Return the fault to raise when the disk refused to `act` on `path`."""
    remedy = _REMEDIES.get(error.errno or 0, os.strerror(error.errno) if error.errno else "failed")
    kind = DiskFull if error.errno in _FULL else PlatformFault
    return kind(f"{path}: cannot {act}: {remedy}")


@contextmanager
def disk_faults(path: Path, act: str) -> Iterator[None]:
    """Turn an OSError inside the block into a PlatformFault that names `path` and the remedy."""
    try:
        yield
    except OSError as error:
        raise disk_fault(error, path, act) from error


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_new(
    path: Path, data: bytes | memoryview, *, mode: int = 0o644, durable: bool = True
) -> None:
    """Write a file that must not exist, and flush it unless it is flushed later. Raises OSError.

    What is flushed later goes to the disk from now on, without anybody waiting for it.
    """
    descriptor = os.open(path, _NEW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if durable:
            os.fsync(file.fileno())
        elif hasattr(os, "posix_fadvise"):
            # Linux begins to write what nobody needs any more, and commits no journal for it.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def open_existing(path: Path) -> int:
    """Open a regular file for reading without following a link. Raises OSError."""
    descriptor = os.open(path, _EXISTING | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EPERM, "not a regular file")
    return descriptor


def read_existing(path: Path) -> bytes:
    """Return a regular file's bytes without following a link. Raises OSError."""
    with os.fdopen(open_existing(path), "rb") as file:
        return file.read()


@contextmanager
def _beside(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}")
    try:
        write_new(temporary, data, mode=mode)
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def create_durably(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a new file that appears whole and on the disk, or not at all. Raises OSError."""
    with _beside(path, data, mode) as temporary:
        os.link(temporary, path, follow_symlinks=False)  # unlike a rename, refuses what exists
    sync_folder(path.parent)


def replace_durably(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write or replace a file in one step that is on the disk afterwards. Raises OSError."""
    with _beside(path, data, mode) as temporary:
        temporary.rename(path)
    sync_folder(path.parent)


def make_folders(folder: Path, *, mode: int = 0o755) -> None:
    """Create a folder and its parents where they are missing, durably. Raises OSError."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=mode)
    sync_folder(folder.parent)
