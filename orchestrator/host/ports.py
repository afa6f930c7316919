"""What a host says of itself beside its engine: disks, clock, swap, core dumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What was read; None where this system does not tell."""

    core_pattern: str | None
    """The kernel's: it begins with `|` where dumps go to a program."""
    swap_areas: tuple[str, ...] | None
    """Devices and files that the kernel swaps to."""
    clock_is_synchronised: bool | None
    """What the kernel knows of its own clock; set by whatever disciplines it."""
    time_zone: str


class Host(Protocol):
    """The machine that piste runs on."""

    def facts(self) -> HostFacts:
        """Read them now."""

    def free_bytes(self, folder: str) -> int | None:
        """Return the free bytes below a folder, or None where it cannot be seen from here."""
