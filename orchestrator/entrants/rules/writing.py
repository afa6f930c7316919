"""Writes to places that are read-only: home and cache folders, and anywhere else."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final

from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.log_reading import Match, shown
from orchestrator.entrants.rules.observations import Observation

_READ_ONLY: Final = re.compile(r"Read-only file system|EROFS|\[Errno 30\]|Errno::EROFS")
_DENIED: Final = re.compile(
    r"Permission ?denied|PermissionError|EACCES|\[Errno 13\]", re.IGNORECASE
)
_PATH: Final = re.compile(r"""(?:['"`\s:=(]|^)(/[^\s'"`:;,()]{1,300})""")
_CACHE: Final = re.compile(
    r"/\.cache|/\.config|/\.local|/\.keras|/\.torch|/\.matplotlib|/\.numba|/\.triton|/\.nv"
    r"|__pycache__|^/root(?:/|$)|^/home(?:/|$)|/cache(?:/|$)|^/nonexistent|^/var/cache"
)
_WRITABLE: Final = ("/tmp", "/output", "/dev")  # noqa: S108 - paths in the container
_WHERE: Final = (
    "write temporary files to /tmp and answers to /output: nothing else can be written to"
)
_CACHES: Final = (
    "point its cache below /tmp, where HOME and XDG_CACHE_HOME point already: set the library's "
    "own variable with ENV in the Dockerfile, or fill the cache during the build"
)


def paths_in(line: str) -> tuple[str, ...]:
    """Return the absolute paths that a line of a log names; unescaped."""
    return tuple(dict.fromkeys(match[1] for match in _PATH.finditer(line)))


def refused_paths(seen: Observation) -> tuple[str, ...]:
    """Return the paths that lines about refused access name."""
    lines = [line for line in seen.log.lines if _READ_ONLY.search(line) or _DENIED.search(line)]
    named = dict.fromkeys(path for line in lines for path in paths_in(line))
    return tuple(path for path in named if not _is_writable(path))


def _is_writable(path: str) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in _WRITABLE)


def _exists_in_image(seen: Observation, path: str) -> bool:
    return seen.image is not None and seen.image.files.get(path) is not None


def writing(seen: Observation) -> Iterator[Finding]:
    """Find refused writes by the log, and unseen ones by the diagnosing pass."""
    said = seen.log.find(_READ_ONLY) or _denied_write(seen)
    written = tuple(path for path in seen.outside_writes or () if not _is_answer(path))
    if said is None and not written:
        return
    named = tuple(path for path in refused_paths(seen) if not _is_answer(path))
    paths = tuple(dict.fromkeys((*named, *written)))
    cache = bool(paths) and all(_CACHE.search(path) for path in (named or written))
    yield Finding(
        cause=Cause.HOME_OR_CACHE if cache else Cause.WRITES_OUTSIDE,
        certainty=Certainty.SAID if said is None else said.certainty,
        fact=_fact(cache=cache, refused=said is not None),
        remedy=_CACHES if cache else _WHERE,
        details=_details(said, paths),
    )


def _denied_write(seen: Observation) -> Match | None:
    """Return a refusal by permission that names a place and no file of the image.

    A folder that root owns refuses before the root file system does; a file that is there and
    cannot be read is another matter.
    """
    said = seen.log.find(_DENIED)
    if said is None or seen.image is None:
        return None
    named = [path for path in refused_paths(seen) if path != seen.image.program]
    missing = [path for path in named if not _exists_in_image(seen, path)]
    return said if missing else None


def _is_answer(path: str) -> bool:
    """Tell whether the path looks like the answers themselves: that is another finding."""
    return posixpath.basename(path).startswith(("predictions", "submission"))


def answers_elsewhere(seen: Observation) -> tuple[str, ...]:
    """Return paths outside `/output` that look like the answers."""
    paths = (*refused_paths(seen), *(seen.outside_writes or ()))
    inside = tuple(f"/tmp/{name}" for name in seen.tmp_names)  # noqa: S108
    return tuple(dict.fromkeys(path for path in (*paths, *inside) if _is_answer(path)))


def _fact(*, cache: bool, refused: bool) -> str:
    place = "its home or a cache folder" if cache else "a place outside /tmp and /output"
    if refused:
        return f"it wrote to {place}, which is read-only"
    return f"on a writable root it also writes to {place}"


def _details(said: Match | None, paths: Sequence[str]) -> tuple[str, ...]:
    listed = tuple(shown(path) for path in paths[:4])
    more = (f"and {len(paths) - 4} more",) if len(paths) > 4 else ()
    return (*listed, *more) or (() if said is None else (said.line,))
