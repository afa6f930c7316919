"""Write a tar beside its final name and put it in place in one step."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from manifests.errors import RefusedByPolicy
from orchestrator.evidence.files.evidence_tar import EvidenceTar
from orchestrator.support.files.durable_files import TEMPORARY_PREFIX, disk_faults, sync_folder


class StagedTarFile:
    """Implements `orchestrator.evidence.ports.StagedTar`."""

    def __init__(self, path: Path) -> None:
        self._final = path
        self._staged = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")

    @property
    def place(self) -> str:
        """The final path."""
        return str(self._final)

    def write(self, chunks: Iterable[bytes]) -> None:
        """Write the whole tar and flush it to the disk."""
        with disk_faults(self._final, "write"), self._staged.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())

    def reopen(self) -> EvidenceTar:
        """Return what was written, to be read as evidence."""
        return EvidenceTar(self._staged)

    def publish(self) -> None:
        """Give the file its name; a link fails where one has it already."""
        with disk_faults(self._final, "put in place"):
            try:
                os.link(self._staged, self._final)
            except FileExistsError as error:
                raise _exists(self._final) from error
            self._staged.unlink()
            sync_folder(self._final.absolute().parent)

    def discard(self) -> None:
        """Remove what was staged and not published."""
        with disk_faults(self._final, "remove"):
            self._staged.unlink(missing_ok=True)


def _exists(path: Path) -> RefusedByPolicy:
    return RefusedByPolicy(f"{path} exists; an export never replaces a file")


@contextmanager
def stage_tar(path: Path) -> Iterator[StagedTarFile]:
    """Stage a tar; what was not published is gone afterwards.

    Raises:
        RefusedByPolicy: a file has that name.

    """
    if os.path.lexists(path):
        raise _exists(path)
    staged = StagedTarFile(path)
    try:
        yield staged
    finally:
        staged.discard()
