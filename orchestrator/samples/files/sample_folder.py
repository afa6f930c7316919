"""Write generated files into a folder of their own."""

from __future__ import annotations

from pathlib import Path

from orchestrator.support.files.durable_files import disk_faults, write_new


class SampleFolder:
    """A new folder; calling it writes one file. Nothing there is worth an fsync."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, name: str, data: bytes) -> None:
        """Write a file that does not exist yet.

        Raises:
            PlatformFault: it exists, or the disk refuses.

        """
        path = self._root / name
        with disk_faults(path, "write"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, data, durable=False)
