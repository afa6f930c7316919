"""The options of the diagnosing pass: a writable root, to learn what a program writes where.

Its `/tmp` is a folder of that root and no tmpfs: what lies in a tmpfs is gone with the container,
and a short run ends before anybody can look.

Nothing but the dry run's diagnosis may import this module; a certified run has no words for it.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from typing import Any, Final

from orchestrator.entrants.rules.observations import Writes
from orchestrator.sandbox.rules.container_options import EntrantSpec, entrant_options

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
    "/usr/sbin/docker-init",
)
TMP: Final = "/tmp"  # noqa: S108 - a path in the container
MOST_PATHS: Final = 200
"""Of each kind."""


def diagnosing_options(spec: EntrantSpec, *, tmp_in_root: bool) -> dict[str, Any]:
    """Return the body of the create call for a pass on open clips.

    The program runs as root of the container, as on most people's own machines, so that it is the
    list of its writes that ends the pass and no refusal. It has no network and no other capability
    than to write into the memory volume of user 65532. An image that declares a VOLUME at `/tmp`
    cannot have it in its root: the engine would make a volume of it, outside our books.
    """
    options = entrant_options(spec)
    tmpfs = dict(options["HostConfig"]["Tmpfs"])
    if tmp_in_root:
        del tmpfs[TMP]
    looser = {"ReadonlyRootfs": False, "CapAdd": ["DAC_OVERRIDE"], "Tmpfs": tmpfs}
    return {**options, "User": "0:0", "HostConfig": {**options["HostConfig"], **looser}}


def tmp_folder() -> bytes:
    """Return the tar that, unpacked at the root, makes an empty `/tmp` for everybody there."""
    info = tarfile.TarInfo(TMP.removeprefix("/"))
    info.type, info.mode = tarfile.DIRTYPE, 0o1777
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        tar.addfile(info)
    return held.getvalue()


def program_writes(changed: Iterable[str]) -> Writes:
    """Return what a program itself wrote, of all paths that the engine lists.

    Left out is what the engine does, mounts, and folders that only lead to another path.
    """
    paths = sorted(path for path in changed if not _is_engines(path))
    inside = [path for path in paths if path.startswith(f"{TMP}/")]
    outside = [path for path in paths if path != TMP and not path.startswith(f"{TMP}/")]
    names = tuple(path.removeprefix(f"{TMP}/") for path in _leaves(inside))
    return Writes(outside=_leaves(outside), in_tmp=names)


def _leaves(paths: list[str]) -> tuple[str, ...]:
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
