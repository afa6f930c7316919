"""Read files that only their owner may read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from manifests.errors import PlatformFault
from orchestrator.support.files.durable_files import disk_faults, open_existing

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_secret(path: Path) -> bytes:
    """Return a secret file's bytes.

    Raises:
        PlatformFault: it is a link or not a file, belongs to another user, or is open to others.

    """
    with disk_faults(path, "read the secret"), os.fdopen(open_existing(path), "rb") as file:
        _require_private(path, os.fstat(file.fileno()))
        return file.read()


def _require_private(path: Path, facts: os.stat_result) -> None:
    if facts.st_mode & OTHERS:
        mode = stat.S_IMODE(facts.st_mode)
        raise PlatformFault(
            f"{path}: mode {mode:04o} lets others read the secret, 0600 is the most allowed: "
            f"chmod 600 {path}"
        )
    if facts.st_uid not in {os.geteuid(), 0}:
        raise OSError(errno.EACCES, "belongs to another user")
