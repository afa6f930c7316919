"""The workspace as a folder on a local disk (design, section 6)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from manifests.encoding import Json, parse_json_object, readable_json
from manifests.errors import PlatformFault, RefusedByPolicy
from orchestrator.support.files.durable_files import (
    TEMPORARY_PREFIX,
    create_durably,
    disk_faults,
    make_folders,
    open_existing,
    replace_durably,
    sync_folder,
)
from orchestrator.support.files.locks import is_locked, try_lock
from orchestrator.workspace.files.staged_editions import STAGING_PREFIX, StagedFolder
from orchestrator.workspace.ports import FileAbsent, NotAWorkspace

MARKER = "piste.json"
MARKER_BYTES = readable_json({"workspace": "piste/1"})
FOLDERS = ("editions", "runs", "intake", "locks")
KEYS = "keys"
_INTENT_SUFFIX = ".json"


def open_workspace(root: Path) -> WorkspaceFiles:
    """Open the folder that `piste init` made.

    Raises:
        NotAWorkspace: it has no marker, or one of another version.

    """
    store = WorkspaceFiles(root)
    marker = store.read_optional(MARKER)
    if marker is None:
        raise NotAWorkspace(f"{root}: not a piste workspace; make one with: piste init {root}")
    if marker != MARKER_BYTES:
        raise NotAWorkspace(
            f"{root / MARKER}: not a marker of this version; use the piste that made this workspace"
        )
    return store


class WorkspaceFiles:
    """Implements `orchestrator.workspace.ports.WorkspaceStore`."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def root(self) -> Path:
        """The folder itself."""
        return self._root

    def path(self, name: str) -> Path:
        """Return the path of a relative name that stays inside the workspace."""
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\0" in name:
            raise PlatformFault(f"{name!r}: not a name inside the workspace {self._root}")
        return self._root.joinpath(*parts)

    def _open(self, name: str) -> int:
        path = self.path(name)
        with disk_faults(path, "read"):
            try:
                return open_existing(path)
            except FileNotFoundError:
                raise FileAbsent(f"{path}: is not there; restore it from a backup") from None

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        with os.fdopen(self._open(name), "rb") as file, disk_faults(self.path(name), "read"):
            return file.read()

    def read_optional(self, name: str) -> bytes | None:
        """Return a file's bytes, or None."""
        try:
            return self.read(name)
        except FileAbsent:
            return None

    def stream(self, name: str, chunk_bytes: int = 1 << 20) -> Iterator[bytes]:
        """Yield a file's bytes in chunks."""
        with os.fdopen(self._open(name), "rb") as file, disk_faults(self.path(name), "read"):
            while chunk := file.read(chunk_bytes):
                yield chunk

    def size_bytes(self, name: str) -> int:
        """Return a file's size."""
        descriptor = self._open(name)
        try:
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def exists(self, name: str) -> bool:
        """Tell whether a file or folder has this name."""
        path = self.path(name)
        with disk_faults(path, "look for it"):
            return os.path.lexists(path)

    def list_names(self, folder: str) -> tuple[str, ...]:
        """Return the sorted names in `folder`, hidden ones left out."""
        path = self.path(folder)
        with disk_faults(path, "list"):
            if not path.is_dir():
                return ()
            return tuple(sorted(e.name for e in path.iterdir() if not e.name.startswith(".")))

    def create(self, name: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a new file, whole and durable when it appears."""
        path = self.path(name)
        with disk_faults(path, "write"):
            make_folders(path.parent)
            create_durably(path, data, mode=mode)

    def replace(self, name: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write or replace a file in one durable step."""
        path = self.path(name)
        with disk_faults(path, "write"):
            make_folders(path.parent)
            replace_durably(path, data, mode=mode)

    def remove(self, name: str) -> None:
        """Remove a file; an absent one is fine."""
        path = self.path(name)
        with disk_faults(path, "remove"):
            if os.path.lexists(path):
                path.unlink(missing_ok=True)
                sync_folder(path.parent)

    def remove_temporaries(self, folder: str) -> None:
        """Remove half-written files that a killed process left in `folder`."""
        path = self.path(folder)
        with disk_faults(path, "remove half-written files"):
            for leftover in path.glob(f"{TEMPORARY_PREFIX}*"):
                leftover.unlink(missing_ok=True)

    def free_bytes(self) -> int:
        """Return the free space for this user."""
        with disk_faults(self._root, "ask for the free space"):
            figures = os.statvfs(self._root)
            return figures.f_bavail * figures.f_frsize

    @contextmanager
    def lock_run(self, run_id: str) -> Iterator[None]:
        """Hold the run's lock while its process lives."""
        with try_lock(self._lock("run", run_id)) as held:
            if not held:
                raise RefusedByPolicy(f"run {run_id}: another process is at work on it; let it end")
            yield

    def is_run_alive(self, run_id: str) -> bool:
        """Tell whether a process holds the run's lock."""
        return is_locked(self._lock("run", run_id))

    def write_intent(self, name: str, document: Mapping[str, Json]) -> None:
        """Record what this process is about to bring in."""
        self.replace(f"intake/{name}{_INTENT_SUFFIX}", readable_json(dict(document)))

    def intents(self) -> Mapping[str, Mapping[str, Json]]:
        """Return all intents by name; one that is removed meanwhile is left out."""
        found: dict[str, Mapping[str, Json]] = {}
        for file in self.list_names("intake"):
            data = self.read_optional(f"intake/{file}")
            if data is not None and file.endswith(_INTENT_SUFFIX):
                name = file.removesuffix(_INTENT_SUFFIX)
                found[name] = parse_json_object(data, source=str(self.path(f"intake/{file}")))
        return found

    def remove_intent(self, name: str) -> None:
        """Remove an intent; an absent one is fine."""
        self.remove(f"intake/{name}{_INTENT_SUFFIX}")

    @contextmanager
    def lock_edition(self, edition: str) -> Iterator[None]:
        """Hold the edition's lock."""
        with try_lock(self._lock("edition", edition)) as held:
            if not held:
                raise RefusedByPolicy(
                    f"edition {edition}: another process is at work on it; let it end"
                )
            yield

    @contextmanager
    def stage_edition(self, edition: str) -> Iterator[StagedFolder]:
        """Hold the edition's lock and stage its folder."""
        with self.lock_edition(edition):
            yield StagedFolder(self.path("editions"), edition)

    def abandoned_editions(self) -> Iterator[StagedFolder]:
        """Yield each staged folder whose process is gone, under its lock."""
        editions = self.path("editions")
        with disk_faults(editions, "list"):
            names = sorted(entry.name for entry in editions.glob(f"{STAGING_PREFIX}*"))
        for name in names:
            edition = name.removeprefix(STAGING_PREFIX)
            with try_lock(self._lock("edition", edition)) as held:
                if held:
                    yield StagedFolder(editions, edition)

    def _lock(self, kind: str, name: str) -> Path:
        return self.path(f"locks/{kind}-{name}.lock")
