"""The options of the diagnosing pass: a writable root, to learn what a program writes where.

Nothing but the dry run's diagnosis may import this module; a certified run has no words for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from orchestrator.core.sandbox.container_options import EntrantSpec, entrant_options

_ENGINES_OWN: Final = (
    "/.dockerenv",
    "/dev",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/mtab",
    "/etc/resolv.conf",
    "/input",
    "/output",
    "/proc",
    "/sbin/docker-init",
    "/sys",
    "/tmp",  # noqa: S108 - a path in the container
    "/usr/sbin/docker-init",
)
MOST_PATHS: Final = 200


def diagnosing_options(spec: EntrantSpec) -> dict[str, Any]:
    """Return the body of the create call for a pass on open clips.

    The program runs as root of the container, as on most people's own machines, so that it is the
    list of its writes that ends the pass and no refusal. It has no network and no other capability
    than to write into the memory volume of user 65532.
    """
    options = entrant_options(spec)
    host = {**options["HostConfig"], "ReadonlyRootfs": False, "CapAdd": ["DAC_OVERRIDE"]}
    return {**options, "User": "0:0", "HostConfig": host}


def outside_writes(changed: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that a program itself wrote, of all that the engine lists; at most 200.

    Left out is what the engine does, mounts, and folders that only lead to another path.
    """
    paths = sorted(path for path in changed if not _is_engines(path))
    leaves = [
        path
        for number, path in enumerate(paths)
        if not any(other.startswith(path + "/") for other in paths[number + 1 :])
    ]
    return tuple(leaves[:MOST_PATHS])


def _is_engines(path: str) -> bool:
    """Tell whether a path belongs to the engine, lies below one that does, or leads to one."""
    below = any(path == own or path.startswith(own + "/") for own in _ENGINES_OWN)
    return below or any(own.startswith(path.rstrip("/") + "/") for own in _ENGINES_OWN)
