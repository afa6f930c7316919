"""Make a workspace as a whole: staged in a hidden folder inside it, then moved up.

The marker is written last into the staging and moved last out of it. A staging without a marker
was never complete and is thrown away; one with a marker is complete, and its move is finished.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from manifests.errors import RefusedByPolicy
from manifests.text import escape_untrusted
from orchestrator.support.files.durable_files import (
    create_durably,
    disk_faults,
    make_folders,
    sync_folder,
)
from orchestrator.workspace.files.workspace_files import FOLDERS, KEYS, MARKER, MARKER_BYTES

STAGING = ".piste-init"


class StagedWorkspace:
    """Implements `orchestrator.workspace.ports.StagedWorkspace`."""

    def __init__(self, root: Path) -> None:
        self._final = root
        self._folder = root / STAGING

    @property
    def root(self) -> Path:
        """The staging, laid out as the workspace will be."""
        return self._folder

    @property
    def is_complete(self) -> bool:
        """Tell whether an earlier init completed the staging and died while it moved it."""
        return os.path.lexists(self._folder / MARKER)

    def add(self, name: str, data: bytes, *, mode: int) -> None:
        """Write a new file."""
        path = self._folder / name
        with disk_faults(path, "write"):
            create_durably(path, data, mode=mode)

    def publish(self) -> None:
        """Mark the staging complete and move it up; an interrupted move is taken up again."""
        with disk_faults(self._folder, "put the workspace in place"):
            if not self.is_complete:
                create_durably(self._folder / MARKER, MARKER_BYTES)
            names = sorted(entry.name for entry in self._folder.iterdir())
            for name in sorted(names, key=lambda name: name == MARKER):
                (self._folder / name).rename(self._final / name)
            self._folder.rmdir()
            sync_folder(self._final)

    def lay_out(self) -> None:
        """Make the empty folders, after throwing away what was never complete."""
        with disk_faults(self._folder, "make the workspace's folders"):
            if self._folder.exists():
                shutil.rmtree(self._folder)
            for name in FOLDERS:
                make_folders(self._folder / name)
            make_folders(self._folder / KEYS, mode=0o700)

    def discard(self) -> None:
        """Remove the staging unless it is complete."""
        if not self.is_complete:
            shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def stage_workspace(root: Path) -> Iterator[StagedWorkspace]:
    """Stage a new workspace in `root`, which is absent or empty; a failure leaves it so.

    Raises:
        RefusedByPolicy: `root` is a workspace already, holds other files, or is being made now.

    """
    existed = root.exists()
    with disk_faults(root, "make the folder"):
        make_folders(root)
    with _exclusive(root):
        staged = StagedWorkspace(root)
        try:
            if not staged.is_complete:
                _require_empty(root)
                staged.lay_out()
            yield staged
        finally:
            staged.discard()
            if not existed:
                with suppress(OSError):
                    root.rmdir()  # fails, as it should, when anything is in it


@contextmanager
def _exclusive(root: Path) -> Iterator[None]:
    with disk_faults(root, "lock the folder"):
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise RefusedByPolicy(f"{root}: another process is making it; let it end") from error
    finally:
        os.close(descriptor)


def _require_empty(root: Path) -> None:
    with disk_faults(root, "list"):
        found = sorted(entry.name for entry in root.iterdir() if entry.name != STAGING)
    if MARKER in found:
        with suppress(OSError):
            (root / STAGING).rmdir()  # all that is left to do after a kill behind the last move
        raise RefusedByPolicy(f"{root}: is a workspace already; nothing to do")
    if found:
        raise RefusedByPolicy(
            f"{root}: not empty, it holds {escape_untrusted(found[0], 60)}; name an empty folder"
        )
