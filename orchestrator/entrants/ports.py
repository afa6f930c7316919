"""Look into a running container from its host: its network's counters, its memory file systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAttempts:
    """What the container's own network namespace counted; loopback traffic that works is not in it.

    `unroutable` are packets that had nowhere to go, `unanswered` datagrams to a closed loopback
    port, as a question to a name server that is not there.
    """

    unroutable: int
    unanswered: int

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.unroutable + self.unanswered


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceUse:
    """Bytes and files in use on `/tmp`, and bytes on `/dev/shm`; None where it cannot be seen."""

    tmp_bytes: int | None = None
    tmp_files: int | None = None
    tmp_names: tuple[str, ...] = ()
    """Some names in `/tmp`, unescaped: a program may have left its answers there."""
    shm_bytes: int | None = None


class ContainerWindow(Protocol):
    """An opened view; it outlives the container until it is closed."""

    def space(self) -> SpaceUse:
        """Return what is in use now, or was when the container ended."""

    def network(self) -> NetworkAttempts | str:
        """Return what was counted, or why nothing can be."""

    def close(self) -> None:
        """Let go of the container's namespaces and file systems."""


class WindowOpener(Protocol):
    """Opens views into containers of an engine on this machine."""

    def open_window(self, container_id: str, pid: int) -> ContainerWindow | str:
        """Return the view into the container whose first process is `pid`, or why there is none."""
