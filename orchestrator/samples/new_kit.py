"""Give an entrant a starter kit: a folder that builds, passes its test and a dry run as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from manifests.editions import Track
from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

CreateFolder = Callable[[Path, Mapping[str, bytes]], None]
"""Creates a folder with these files (names below it), whole or not at all; never into others'."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_OF_TRACK = {"main.py": "app/main.py", "test_main.py": "test_main.py", "README.md": "README.md"}
_OF_ALL = {
    "Dockerfile": "Dockerfile",
    "Makefile": "Makefile",
    "dockerignore": ".dockerignore",
    "requirements.txt": "requirements.txt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKit:
    """A kit that was made: its folder, and its files by their names below it."""

    folder: Path
    track: Track
    files: tuple[str, ...]


def kit_files(name: str, track: Track) -> dict[str, bytes]:
    """Return the kit's files by name.

    Raises:
        MalformedDocument: `name` cannot name both a folder and an image.

    """
    if not _NAME.fullmatch(name):
        raise MalformedDocument(
            f'"{escape_untrusted(name, 80)}" cannot name the kit\'s folder and image; use 1 to 63 '
            "of a-z 0-9 -, with a letter or digit at both ends, as my-entry"
        )
    kits = resources.files("orchestrator.samples.starter_kits")
    found = {
        target: kits.joinpath(folder, source).read_bytes()
        for folder, sources in ((track, _OF_TRACK), ("shared", _OF_ALL))
        for source, target in sources.items()
    }
    values = {b"@NAME@": name.encode(), b"@TRACK@": track.encode()}
    return {target: _filled(data, values) for target, data in sorted(found.items())}


def _filled(data: bytes, values: Mapping[bytes, bytes]) -> bytes:
    for mark, value in values.items():
        data = data.replace(mark, value)
    return data


def new_kit(parent: Path, name: str, track: Track, *, create: CreateFolder) -> NewKit:
    """Create the folder `name` below `parent` with the kit of a track.

    Raises:
        MalformedDocument: `name` is no name.
        RefusedByPolicy: the folder is there and not empty.
        PlatformFault: the disk refuses.

    """
    files = kit_files(name, track)
    create(parent / name, files)
    return NewKit(folder=parent / name, track=track, files=tuple(files))
