"""Build an image archive from this machine's own Python."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from manifests.digests import OciDigest
from orchestrator.images.rules.image_archive import TarEntry


class ImageBuilder(Protocol):
    """Writes archives; no registry and no engine take part."""

    def build_program(
        self,
        entries: tuple[TarEntry, ...],
        destination: Path,
        *,
        distributions: tuple[str, ...],
        entrypoint: tuple[str, ...],
    ) -> OciDigest:
        """Write a docker-archive of Python, `distributions` and `entries`; return the image id."""

    def read_folder(self, folder: Path) -> tuple[TarEntry, ...]:
        """Return the folder's regular files under `/app`.

        Raises:
            MalformedDocument: for a missing folder, a link out of it, or a special file.

        """
