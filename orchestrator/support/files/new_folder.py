"""Create a folder with files as a whole: it appears complete under its name, or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from manifests.errors import RefusedByPolicy
from orchestrator.support.files.durable_files import (
    TEMPORARY_PREFIX,
    disk_faults,
    sync_folder,
    write_new,
)


def create_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` beside `folder` and move them there in one step.

    Raises:
        RefusedByPolicy: something is there already; an empty folder is replaced.
        PlatformFault: the disk refuses.

    """
    _require_free(folder)
    staging = folder.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}")
    try:
        with disk_faults(folder, "make the folder"):
            for name, data in files.items():
                (staging / name).parent.mkdir(parents=True, exist_ok=True)
                write_new(staging / name, data)
            _put_in_place(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _require_free(folder: Path) -> None:
    with disk_faults(folder, "look at the folder"):
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise RefusedByPolicy(f"{folder}: is there and no folder; choose another name")
        if folder.is_dir() and any(folder.iterdir()):
            raise RefusedByPolicy(f"{folder}: not empty; choose another name, or empty it")


def _put_in_place(staging: Path, folder: Path) -> None:
    """Rename: the kernel lets it replace an empty folder and nothing else."""
    staging.rename(folder)
    sync_folder(folder.parent)
