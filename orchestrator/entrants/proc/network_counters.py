"""Read the counters of another network namespace (setns(2), proc(5), RFC 4293 names)."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Final

from orchestrator.entrants.ports import NetworkAttempts

_CLONE_NEWNET: Final = 0x40000000
_COUNTERS: Final = ("snmp", "snmp6")


def parse_snmp(text: str) -> dict[str, int]:
    """Return `Protocol.Counter` → value of /proc/net/snmp: a line of names, a line of values."""
    lines = [line.split() for line in text.splitlines()]
    found: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol = names[0].rstrip(":")
        for name, value in zip(names[1:], values[1:], strict=False):
            found[f"{protocol}.{name}"] = int(value)
    return found


def parse_snmp6(text: str) -> dict[str, int]:
    """Return counter → value of /proc/net/snmp6: one pair a line."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def attempts_of(snmp: str, snmp6: str) -> NetworkAttempts:
    """Return the attempts that a namespace without any route has counted."""
    four, six = parse_snmp(snmp), parse_snmp6(snmp6)
    return NetworkAttempts(
        unroutable=four.get("Ip.OutNoRoutes", 0) + six.get("Ip6OutNoRoutes", 0),
        unanswered=four.get("Udp.NoPorts", 0) + six.get("Udp6NoPorts", 0),
    )


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class _Reading(threading.Thread):
    """Enters the namespace and reads there: setns moves the calling thread alone.

    The thread ends with the reading, so that nothing else ever happens in that namespace.
    """

    def __init__(self, namespace: int) -> None:
        super().__init__(name="namespace-reader", daemon=True)
        self._namespace = namespace
        self.texts: list[str] = []
        self.error: OSError | None = None

    def run(self) -> None:
        """Read both files; what fails is kept."""
        try:
            _enter(self._namespace)
            for name in _COUNTERS:
                path = Path("/proc/thread-self/net") / name
                self.texts.append(path.read_text(encoding="ascii") if path.exists() else "")
        except OSError as error:
            self.error = error


def count_attempts(namespace: int) -> NetworkAttempts | str:
    """Return what the network namespace behind the descriptor counted, or why it cannot be read."""
    reading = _Reading(namespace)
    reading.start()
    reading.join()
    if reading.error is not None:
        return f"the container's network cannot be entered: {reading.error.strerror}; needs root"
    return attempts_of(*reading.texts)
