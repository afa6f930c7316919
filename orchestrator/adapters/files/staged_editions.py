"""An edition's folder in the making: hidden, ciphertext only, renamed into place at the end."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from orchestrator.adapters.files.durable_files import (
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
        self._flusher = ThreadPoolExecutor(1, thread_name_prefix="flusher")
        self._flushes: list[Future[None]] = []

    @property
    def edition(self) -> str:
        """The edition's name."""
        return self._edition

    def add(self, name: str, data: bytes) -> None:
        """Write a new file and begin to flush it; `make_durable` waits for that."""
        path = self._folder / name
        with disk_faults(path, "write"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, data, durable=False)
        self._flushes.append(self._flusher.submit(_flush, path))

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
            self._finish_flushes()
            found = list(self._folder.rglob("*"))
            with ThreadPoolExecutor(_FLUSHERS) as pool:
                for _ in pool.map(_flush, (path for path in found if not path.is_dir())):
                    pass
            for folder in sorted((p for p in found if p.is_dir()), reverse=True):
                sync_folder(folder)
            sync_folder(self._folder)
            sync_folder(self._folder.parent)

    def _finish_flushes(self) -> None:
        """Wait for what `add` began: the system tells of a failed flush once, and to that one."""
        flushes, self._flushes = self._flushes, []
        for flush in flushes:
            flush.result()

    def publish(self) -> None:
        """Rename the staged folder to the edition's own name."""
        with disk_faults(self._final, "put the sealed edition in place"):
            self._folder.rename(self._final)
            sync_folder(self._final.parent)

    def discard(self) -> None:
        """Remove what is staged."""
        with disk_faults(self._folder, "remove the unfinished edition"):
            for flush in self._flushes:
                flush.cancel()
            wait(self._flushes)
            self._flushes.clear()
            if self._folder.exists():
                shutil.rmtree(self._folder)
                sync_folder(self._folder.parent)
