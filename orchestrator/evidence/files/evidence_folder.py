"""A folder of evidence: listed without following a link, opened without following one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from orchestrator.support.tar.deterministic_tar import name_fault

_CHUNK_BYTES = 1 << 20
_MAX_FAULTS = 1000
_KINDS = (
    (stat.S_ISLNK, "is a symbolic link"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


class EvidenceFolder:
    """Implements `orchestrator.evidence.ports.EvidenceTree`.

    With `only`, just these folders directly below the root are evidence, and hidden names directly
    in them (a sealing under way) are passed over: a workspace also holds keys and locks.
    """

    def __init__(self, root: Path, *, only: tuple[str, ...] | None = None) -> None:
        self._root = root
        self._only = only
        self._faults: list[str] = []
        self._sizes: dict[str, int] = {}
        self._list()
        self._names = tuple(sorted(self._sizes))

    @property
    def place(self) -> str:
        """The folder's path."""
        return str(self._root)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not a plain file with a safe name and a single link."""
        return tuple(self._faults)

    @property
    def names(self) -> tuple[str, ...]:
        """The sorted names of the plain files."""
        return self._names

    def size_bytes(self, name: str) -> int:
        """Return the size that the file had when it was listed."""
        return self._sizes[name]

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield the file's bytes; a folder that became a link meanwhile is not followed."""
        try:
            with os.fdopen(self._open(name), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise MalformedDocument(f"{self._root}/{name}: not a regular file any more")
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk
        except OSError as error:
            raise MalformedDocument(
                f"{self._root}/{name}: cannot be read: {error.strerror}"
            ) from error

    def _open(self, name: str) -> int:
        *folders, last = name.split("/")
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                below = os.open(folder, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(last, flags, dir_fd=descriptor)
        finally:
            os.close(descriptor)

    def _list(self) -> None:
        if self._only is None:
            self._walk("", hidden=True)
            return
        for folder in self._only:
            path = self._root / folder
            if path.is_symlink():
                self._fault(folder, "is a symbolic link")
            elif path.is_dir():
                self._walk(f"{folder}/", hidden=False)

    def _walk(self, prefix: str, *, hidden: bool) -> None:
        try:
            with os.scandir(self._root / prefix) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._fault(prefix, f"cannot be listed: {error.strerror}")
            return
        for entry in found:
            if hidden or not entry.name.startswith("."):
                self._take(entry, prefix + entry.name)

    def _take(self, entry: os.DirEntry[str], name: str) -> None:
        fault = name_fault(name)
        if fault is not None:
            self._fault(name, fault)
            return
        facts = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            self._walk(f"{name}/", hidden=True)
        elif not stat.S_ISREG(facts.st_mode):
            kind = next(text for test, text in _KINDS if test(facts.st_mode))
            self._fault(name, kind)
        elif facts.st_nlink > 1:
            self._fault(name, "is a hard link: it can be changed under another name; copy it")
        else:
            self._sizes[name] = facts.st_size

    def _fault(self, name: str, text: str) -> None:
        if len(self._faults) < _MAX_FAULTS:
            self._faults.append(f"{escape_untrusted(name, 120)} {text}")
