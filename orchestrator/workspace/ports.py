"""The workspace folder: durable files, locks, and records of what is under way.

Names are relative POSIX paths below the workspace, as `runs/<run_id>/run.json`. Whatever the disk
refuses comes out as a PlatformFault with the path and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from manifests.encoding import Json
from manifests.errors import MalformedDocument, PlatformFault


class FileAbsent(PlatformFault):
    """A file that should be in the workspace is not there."""


class NotAWorkspace(MalformedDocument):
    """The folder was not made by `piste init`."""


class StagedWorkspace(Protocol):
    """A workspace in the making: nothing of it is seen before it is published."""

    @property
    def root(self) -> Path:
        """The folder that is laid out as the workspace will be."""

    @property
    def is_complete(self) -> bool:
        """Tell whether an earlier init filled it and died before it was in place."""

    def add(self, name: str, data: bytes, *, mode: int) -> None:
        """Write a new file."""

    def publish(self) -> None:
        """Put the workspace in place; from then on it exists."""


class StagedEdition(Protocol):
    """An edition's folder in the making. Only ciphertext and public files go in."""

    @property
    def edition(self) -> str:
        """The edition's name."""

    def add(self, name: str, data: bytes | memoryview) -> None:
        """Write a new file; threads may call this at the same time."""

    def read_optional(self, name: str) -> bytes | None:
        """Return a staged file's bytes, or None where there is none."""

    def make_durable(self) -> None:
        """Flush every staged file and folder to the disk."""

    def publish(self) -> None:
        """Rename the staged folder to the edition's folder, in one step."""

    def discard(self) -> None:
        """Remove whatever was staged; nothing staged is fine."""


class WorkspaceStore(Protocol):
    """The organizer's folder (design, section 6)."""

    @property
    def root(self) -> Path:
        """The folder itself, for messages and for adapters."""

    def read(self, name: str) -> bytes:
        """Return a file's bytes; links are not followed. Raises FileAbsent."""

    def read_optional(self, name: str) -> bytes | None:
        """Return a file's bytes, or None where there is no such file."""

    def stream(self, name: str, chunk_bytes: int = 1 << 20) -> Iterator[bytes]:
        """Yield a file's bytes in chunks. Raises FileAbsent."""

    def size_bytes(self, name: str) -> int:
        """Return a file's size. Raises FileAbsent."""

    def exists(self, name: str) -> bool:
        """Tell whether a file or folder has this name."""

    def list_names(self, folder: str) -> tuple[str, ...]:
        """Return the sorted names in `folder`, hidden ones left out; an absent folder is empty."""

    def create(self, name: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a new file, folders included, durable and complete when it appears.

        Raises:
            PlatformFault: the file exists, or the disk refuses.

        """

    def replace(self, name: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file or replace it in one durable step: a reader sees the old or the new one."""

    def remove(self, name: str) -> None:
        """Remove a file; an absent one is fine."""

    def free_bytes(self) -> int:
        """Return the free space below the workspace for this user."""

    def lock_run(self, run_id: str) -> AbstractContextManager[None]:
        """Hold the run's lock while its process lives; the kernel lets go when it dies.

        Raises:
            RefusedByPolicy: another process holds it.

        """

    def is_run_alive(self, run_id: str) -> bool:
        """Tell whether a process holds the run's lock."""

    def write_intent(self, name: str, document: Mapping[str, Json]) -> None:
        """Record what this process is about to bring in; replaces an intent of the same name."""

    def intents(self) -> Mapping[str, Mapping[str, Json]]:
        """Return all intents by name."""

    def remove_intent(self, name: str) -> None:
        """Remove an intent; an absent one is fine."""

    def lock_edition(self, edition: str) -> AbstractContextManager[None]:
        """Hold the edition's lock: nobody else on this host adds to its folder.

        Raises:
            RefusedByPolicy: another process holds it.

        """

    def stage_edition(self, edition: str) -> AbstractContextManager[StagedEdition]:
        """Hold the edition's lock and stage its folder, which is empty at first.

        Leaving the context keeps what is staged: the ledger decides what becomes of it.

        Raises:
            RefusedByPolicy: another process is sealing this edition.

        """

    def abandoned_editions(self) -> Iterator[StagedEdition]:
        """Yield each staged folder whose process is gone, under its lock."""
