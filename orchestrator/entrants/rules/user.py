"""Running as user 65532: no entry in /etc/passwd, and files that root alone can read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from manifests.names import ENTRANT_ID
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.log_reading import shown
from orchestrator.entrants.rules.observations import Observation
from orchestrator.entrants.rules.writing import refused_paths

_READ: Final = 4
_NO_ENTRY: Final = re.compile(
    rf"uid not found|getpwuid|No user exists for uid|cannot find name for user ID"
    rf"|I have no name|unknown user(?:id)? {ENTRANT_ID}|no passwd entry|user: unknown userid"
    r"|No username set in the environment",
    re.IGNORECASE,
)


def passwd_entry(seen: Observation) -> Iterator[Finding]:
    """Find a program that asks for the name of its user."""
    said = seen.log.find(_NO_ENTRY)
    if said is None or (seen.image is not None and seen.image.has_passwd_entry):
        return
    yield Finding(
        cause=Cause.NO_PASSWD_ENTRY,
        certainty=said.certainty,
        fact=f"it asks for the name of user {ENTRANT_ID}, who is not in the image's /etc/passwd",
        remedy=(
            f"add to the Dockerfile: RUN echo 'entrant:x:{ENTRANT_ID}:{ENTRANT_ID}::/tmp:/bin/sh'"
            " >> /etc/passwd"
        ),
        details=(said.line,),
    )


def root_only_files(seen: Observation) -> Iterator[Finding]:
    """Find files of the image that user 65532 may not read."""
    if seen.image is None:
        return
    found = [path for path in refused_paths(seen) if _is_closed(seen, path)]
    if not found:
        return
    yield Finding(
        cause=Cause.ROOT_ONLY_FILES,
        certainty=Certainty.PROVEN,
        fact=f"files of the image are closed to user {ENTRANT_ID}, as whom a run is made",
        remedy="open them in the Dockerfile: RUN chmod -R a+rX " + _folder(found[0]),
        details=tuple(shown(path) for path in found[:4]),
    )


def _is_closed(seen: Observation, path: str) -> bool:
    """Tell whether a path is there in the image: what is there and refused is closed somewhere."""
    assert seen.image is not None
    file = seen.image.files.get(path)
    if file is None or path == seen.image.program:
        return False
    if not file.permits(_READ, user_id=ENTRANT_ID):
        return True
    parents = _parents(path)
    return any(
        (folder := seen.image.files.get(parent)) is not None
        and not folder.permits(1, user_id=ENTRANT_ID)
        for parent in parents
    )


def _parents(path: str) -> tuple[str, ...]:
    parts = path.split("/")[1:-1]
    return tuple("/" + "/".join(parts[: number + 1]) for number in range(len(parts)))


def parents_of(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths and all folders above them: what has to be looked up for this topic."""
    return tuple(dict.fromkeys(p for path in paths for p in (path, *_parents(path))))


def _folder(path: str) -> str:
    return shown(path.rpartition("/")[0] or "/")
