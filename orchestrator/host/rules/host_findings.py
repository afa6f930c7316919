"""What `doctor` finds: one line each, and the remedy where something is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How bad it is. `warn` is worth a remedy, `fail` keeps a host from certified runs."""

    OK = "ok"
    WARN = "warn"
    ABSENT = "absent"
    """The engine does not offer what the profile asks for; other profiles may do."""
    FAIL = "fail"


class Topic(StrEnum):
    """What a finding is about, in the order in which it is shown."""

    ENGINE = "engine"
    SANDBOX = "sandbox"
    GPU = "gpu"
    DISK = "disk"
    CLOCK = "clock"
    HOST = "host"
    LEFTOVERS = "leftovers"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """One thing that was looked at. `seen` is safe to show; `profile` where it concerns one."""

    topic: Topic
    name: str
    status: Status
    seen: str
    remedy: str | None = None
    profile: str | None = None


def judged(
    topic: Topic,
    name: str,
    seen: str,
    *,
    holds: bool = True,
    otherwise: Status = Status.FAIL,
    remedy: str | None = None,
) -> HostFinding:
    """Return a finding that is ok where it holds, and carries the remedy where it does not."""
    return HostFinding(
        topic=topic,
        name=name,
        status=Status.OK if holds else otherwise,
        seen=seen,
        remedy=None if holds else remedy,
    )
