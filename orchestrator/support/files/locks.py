"""Locks that the kernel drops when their process dies: flock on small files."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.support.files.durable_files import disk_fault, disk_faults, make_folders

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_HELD = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})


def _take(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise disk_fault(error, path, "lock the file") from error
    return True


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock at `path` and yield True, or yield False when another process holds it.

    The file stays: removing it would let two processes lock two files of one name.
    """
    with disk_faults(path, "open the lock"):
        make_folders(path.parent)
        descriptor = os.open(path, _FLAGS, 0o600)
    try:
        yield _take(descriptor, path)
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Tell whether a process holds the lock at `path`, writing nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise disk_fault(error, path, "open the lock") from error
    try:
        return not _take(descriptor, path)
    finally:
        os.close(descriptor)
