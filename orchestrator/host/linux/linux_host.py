"""Read what the Linux kernel says of this host."""

from __future__ import annotations

import ctypes
import shutil
import time
from pathlib import Path
from typing import Final

from orchestrator.host.ports import HostFacts

_CORE_PATTERN: Final = Path("/proc/sys/kernel/core_pattern")
_SWAPS: Final = Path("/proc/swaps")
_UNSYNCHRONISED: Final = 5
"""`TIME_ERROR` of adjtimex(2): nobody disciplines the clock."""
_TIMEX_BYTES: Final = 256
"""More than any `struct timex`; all zero asks and changes nothing."""


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


def _swap_areas() -> tuple[str, ...] | None:
    text = _read(_SWAPS)
    if text is None:
        return None
    return tuple(line.split()[0] for line in text.splitlines()[1:] if line.strip())


def _clock_is_synchronised() -> bool | None:
    """Ask the kernel (adjtimex(2)), which needs no network and no rights."""
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    state = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else state != _UNSYNCHRONISED


class LinuxHost:
    """Implements `orchestrator.host.ports.Host`."""

    def facts(self) -> HostFacts:
        """Read them from /proc and the kernel's clock."""
        pattern = _read(_CORE_PATTERN)
        return HostFacts(
            core_pattern=None if pattern is None else pattern.strip(),
            swap_areas=_swap_areas(),
            clock_is_synchronised=_clock_is_synchronised(),
            time_zone=time.strftime("%Z"),
        )

    def free_bytes(self, folder: str) -> int | None:
        """Return the free bytes below a folder, or None where there is no such folder here."""
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            return None
