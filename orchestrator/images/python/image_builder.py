"""The ImageBuilder port over this machine's Python and file system."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from manifests.errors import MalformedDocument, PlatformFault
from orchestrator.images.python.python_image import PYTHON, PythonImage, build_python_image
from orchestrator.images.rules.image_archive import ImageSettings, TarEntry

_LEFT_OUT = frozenset({"__pycache__", ".git", ".venv"})


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_OUT:
            continue
        kind = path.lstat().st_mode
        if stat.S_ISDIR(kind):
            yield from _files(path)
        elif stat.S_ISREG(kind):
            yield path
        else:
            raise MalformedDocument(f"{path}: a link or special file; put the file itself there")


class PythonImageBuilder:
    """Implements ImageBuilder; base layers are kept in `cache`."""

    def __init__(self, cache: Path) -> None:
        """Keep base layers in the folder `cache`, which is made when it is needed."""
        self._cache = cache

    def read_folder(self, folder: Path) -> tuple[TarEntry, ...]:
        """Return the folder's files under `/app`, readable for everybody."""
        if not folder.is_dir():
            raise MalformedDocument(f"{folder}: there is no such folder")
        try:
            return tuple(
                TarEntry(
                    path=f"/app/{path.relative_to(folder).as_posix()}",
                    data=path.read_bytes(),
                    mode=0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644,
                )
                for path in _files(folder)
            )
        except OSError as error:
            raise PlatformFault(f"{folder}: cannot be read: {error}") from error

    def build_program(
        self,
        entries: tuple[TarEntry, ...],
        destination: Path,
        *,
        distributions: tuple[str, ...],
        entrypoint: tuple[str, ...],
    ) -> str:
        """Write a docker-archive; return the image id."""
        image = PythonImage(
            entries=entries,
            distributions=distributions,
            settings=ImageSettings(
                entrypoint=(PYTHON, *entrypoint), working_directory="/app", user="65532:65532"
            ),
        )
        return build_python_image(image, destination, cache=self._cache).image_id
