"""Read an organizer's or entrant's own folder in the Épée layout (design, section 5)."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from orchestrator.support.files.durable_files import disk_faults

MAX_FILE_BYTES = 2 << 30
"""Far beyond any clip: a larger file is a mistake, and would be read into memory whole."""

_CLIP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)


def _read(path: Path) -> bytes:
    """Return a regular file's bytes; one look at the open file, so that nobody swaps it between."""
    not_a_file = f"{path}: not a file; the edition needs a file there"
    with disk_faults(path, "read"):
        try:
            with open(path, "rb", buffering=0, opener=_open_at_once) as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise MalformedDocument(not_a_file)
                if found.st_size > MAX_FILE_BYTES:
                    raise MalformedDocument(
                        f"{path}: {found.st_size} bytes; at most {MAX_FILE_BYTES} are read"
                    )
                return file.readall()
        except FileNotFoundError:
            raise MalformedDocument(f"{path}: is not there; check the path") from None
        except IsADirectoryError:
            raise MalformedDocument(not_a_file) from None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe would wait for its writer


class EpeeFolder:
    """Implements `orchestrator.editions.ports.ClipFolder`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def place(self) -> str:
        """The folder, for messages."""
        return str(self._root)

    def clip_ids(self) -> tuple[str, ...]:
        """Return the sorted ids of all clips."""
        keypoints = self._stems("keypoints", ".npy")
        annotations = self._stems("annotations", ".json")
        for clip_id in sorted(keypoints ^ annotations):
            missing = f"annotations/{clip_id}.json"
            if clip_id in annotations:
                missing = f"keypoints/{clip_id}.npy"
            raise MalformedDocument(f"{self._root}: {missing} is missing; every clip needs both")
        if not keypoints:
            raise MalformedDocument(f"{self._root}: no clips below keypoints/ and annotations/")
        return tuple(sorted(keypoints))

    def _stems(self, folder: str, suffix: str) -> set[str]:
        path = self._root / folder
        if not path.is_dir():
            raise MalformedDocument(
                f"{path}: no such folder; the Épée layout has keypoints/ and annotations/"
            )
        with disk_faults(path, "list"):
            names = [entry.name for entry in path.iterdir() if not entry.name.startswith(".")]
        for name in names:
            if not name.endswith(suffix) or not _CLIP_ID.fullmatch(name.removesuffix(suffix)):
                raise MalformedDocument(
                    f"{path}: {escape_untrusted(name, 80)} is not a clip id and {suffix}; an id "
                    "has 1 to 64 of A-Z a-z 0-9 _ - and begins with a letter or digit"
                )
        return {name.removesuffix(suffix) for name in names}

    def keypoints(self, clip_id: str) -> bytes:
        """Return the clip's `.npy` file."""
        return _read(self._root / "keypoints" / f"{clip_id}.npy")

    def annotation(self, clip_id: str) -> bytes:
        """Return the clip's annotation."""
        return _read(self._root / "annotations" / f"{clip_id}.json")


class EditionFile:
    """Implements `orchestrator.editions.ports.EditionSource`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def place(self) -> str:
        """The path of `edition.yaml`."""
        return str(self._path)

    def document(self) -> bytes:
        """Return the bytes of `edition.yaml`."""
        return _read(self._path)

    def place_of(self, path: str) -> str:
        """Return where the edition's `path` leads."""
        return str(self._path.parent / path)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file that the edition names."""
        return _read(self._path.parent / path)

    def clips(self, path: str) -> EpeeFolder:
        """Return the clip folder that the edition names."""
        return EpeeFolder(self._path.parent / path)
