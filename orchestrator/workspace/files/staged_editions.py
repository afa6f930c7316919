"""An edition's folder in the making: hidden, ciphertext only, renamed into place at the end."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from orchestrator.support.files.durable_files import (
    disk_faults,
    open_existing,
    read_existing,
    sync_folder,
    write_new,
)

STAGING_PREFIX = ".sealing-"
_FLUSHERS = 4


def _flush(path: Path) -> None:
    descriptor = open_existing(path)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class StagedFolder:
    """One staged edition. Whoever holds the edition's lock is its only user."""

    def __init__(self, editions: Path, edition: str) -> None:
        self._edition = edition
        self._final = editions / edition
        self._folder = editions / f"{STAGING_PREFIX}{edition}"

    @property
    def edition(self) -> str:
        """The edition's name."""
        return self._edition

    def add(self, name: str, data: bytes | memoryview) -> None:
        """Write a new file; `make_durable` flushes it."""
        path = self._folder / name
        with disk_faults(path, "write"):
            try:
                write_new(path, data, durable=False)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_new(path, data, durable=False)

    def read_optional(self, name: str) -> bytes | None:
        """Return a staged file's bytes, or None where there is none."""
        path = self._folder / name
        with disk_faults(path, "read"):
            try:
                return read_existing(path)
            except FileNotFoundError:
                return None

    def make_durable(self) -> None:
        """Flush every file, then every folder from the inside out."""
        with disk_faults(self._folder, "flush to the disk"):
            found = list(self._folder.rglob("*"))
            with ThreadPoolExecutor(_FLUSHERS) as pool:
                for _ in pool.map(_flush, (path for path in found if not path.is_dir())):
                    pass
            for folder in sorted((p for p in found if p.is_dir()), reverse=True):
                sync_folder(folder)
            sync_folder(self._folder)
            sync_folder(self._folder.parent)

    def publish(self) -> None:
        """Rename the staged folder to the edition's own name."""
        with disk_faults(self._final, "put the sealed edition in place"):
            self._folder.rename(self._final)
            sync_folder(self._final.parent)

    def discard(self) -> None:
        """Remove what is staged."""
        with disk_faults(self._folder, "remove the unfinished edition"):
            if self._folder.exists():
                shutil.rmtree(self._folder)
                sync_folder(self._folder.parent)
