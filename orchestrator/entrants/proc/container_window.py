"""The ContainerWindow port over /proc: for an engine whose processes this machine shows."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Final

from orchestrator.entrants.ports import (
    ContainerWindow,
    NetworkAttempts,
    SpaceUse,
)
from orchestrator.entrants.proc.network_counters import count_attempts

_MOST_NAMES: Final = 50
_FOLDERS: Final = {"tmp": "root/tmp", "shm": "root/dev/shm"}


def _opened(path: Path, flags: int) -> int | None:
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError:
        return None


class ProcWindow:
    """Holds descriptors of a container's network namespace and of its memory file systems."""

    def __init__(self, pid: int) -> None:
        """Open what may be opened of the process `pid`."""
        folder = Path("/proc") / str(pid)
        self._network = _opened(folder / "ns" / "net", os.O_RDONLY)
        self._folders = {
            name: _opened(folder / place, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
            for name, place in _FOLDERS.items()
        }

    @property
    def sees_nothing(self) -> bool:
        """Tell whether nothing could be opened."""
        return self._network is None and not any(self._folders.values())

    def _used(self, name: str) -> tuple[int | None, int | None]:
        """Return bytes and files in use; the folder of the image itself is no tmpfs."""
        descriptor = self._folders[name]
        if descriptor is None:
            return None, None
        found = os.statvfs(descriptor)
        return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree

    def _names(self) -> tuple[str, ...]:
        """Return some names in `/tmp`; only names are read, nothing is followed."""
        descriptor = self._folders["tmp"]
        if descriptor is None:
            return ()
        with os.scandir(f"/proc/self/fd/{descriptor}") as entries:
            return tuple(sorted(entry.name for entry in islice(entries, _MOST_NAMES)))

    def space(self) -> SpaceUse:
        """Return what is in use; the descriptors keep ended file systems readable."""
        tmp_bytes, tmp_files = self._used("tmp")
        return SpaceUse(
            tmp_bytes=tmp_bytes,
            tmp_files=tmp_files,
            tmp_names=self._names(),
            shm_bytes=self._used("shm")[0],
        )

    def network(self) -> NetworkAttempts | str:
        """Return the counters, or why they cannot be read."""
        if self._network is None:
            return "the container's network cannot be opened; needs root"
        return count_attempts(self._network)

    def close(self) -> None:
        """Close all descriptors."""
        for descriptor in (self._network, *self._folders.values()):
            if descriptor is not None:
                os.close(descriptor)


class ProcWindows:
    """Implements WindowOpener."""

    def open_window(self, container_id: str, pid: int) -> ContainerWindow | str:
        """Return a view, or why there is none."""
        if pid <= 0:
            return "the container had ended before it could be looked at"
        window = ProcWindow(pid)
        if not _belongs(container_id, pid):
            window.close()
            return "the container's processes are not to be seen here: it ended, or runs elsewhere"
        if window.sees_nothing:
            window.close()
            return "looking into a container needs root"
        return window


def _belongs(container_id: str, pid: int) -> bool:
    """Tell whether `pid` is here a process of that container: an engine may run elsewhere.

    Asked after the descriptors were opened, so that a number used again cannot deceive.
    """
    try:
        return container_id in (Path("/proc") / str(pid) / "cgroup").read_text(encoding="utf-8")
    except OSError:
        return False
