"""Read the files that a person names on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manifests.errors import MalformedDocument

GIB = 1024**3


def read_input_file(path: Path, *, limit_bytes: int = GIB) -> bytes:
    """Return the bytes of a regular file of at most `limit_bytes`.

    Raises:
        MalformedDocument: with the path and what to do, for anything else.

    """
    try:
        if not path.is_file():
            what = "a folder" if path.is_dir() else "not there"
            raise MalformedDocument(f"{path}: expected a file, but it is {what}; check the path")
        size = path.stat().st_size
        if size > limit_bytes:
            raise MalformedDocument(f"{path}: {size} bytes; at most {limit_bytes} are read")
        return path.read_bytes()
    except OSError as error:
        raise MalformedDocument(f"{path}: cannot be read: {error.strerror}") from error


def list_input_folder(path: Path, *, suffix: str) -> Iterator[Path]:
    """Yield the files of a folder that end in `suffix`, by name.

    Raises:
        MalformedDocument: when `path` is no folder that can be read.

    """
    try:
        if not path.is_dir():
            raise MalformedDocument(f"{path}: expected a folder; check the path")
        yield from sorted(entry for entry in path.iterdir() if entry.name.endswith(suffix))
    except OSError as error:
        raise MalformedDocument(f"{path}: cannot be read: {error.strerror}") from error
