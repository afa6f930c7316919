"""Find the shared libraries and the loader that a program needs, as `ldd` names them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import PlatformFault
from orchestrator.images.rules.image_archive import TarEntry

_NAMED = re.compile(r"\s*(?P<name>\S+) => (?P<path>/\S+) \(0x[0-9a-f]+\)")
_LOADER = re.compile(r"\s*(?P<path>/\S+) \(0x[0-9a-f]+\)")
_FILES_AT_ONCE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLibraries:
    """Libraries by the name they are asked for, and the loader's absolute path."""

    by_name: dict[str, Path]
    loader: Path

    def entries(self) -> list[TarEntry]:
        """Return the loader at its own path and all libraries in the C library's folder.

        That folder is one the loader searches without a cache file, so the image needs none.
        """
        folder = self.by_name["libc.so.6"].parent if "libc.so.6" in self.by_name else None
        entries = [TarEntry(path=str(self.loader), data=self.loader.read_bytes(), mode=0o755)]
        for name, path in sorted(self.by_name.items()):
            place = (folder or path.parent) / name
            entries.append(TarEntry(path=str(place), data=path.read_bytes(), mode=0o755))
        return entries


def _ldd_lines(binaries: list[Path]) -> Iterator[str]:
    for start in range(0, len(binaries), _FILES_AT_ONCE):
        some = [str(binary) for binary in binaries[start : start + _FILES_AT_ONCE]]
        try:
            result = subprocess.run(["ldd", *some], capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise PlatformFault("ldd is not installed; it belongs to the C library") from error
        yield from result.stdout.splitlines()


def _is_inside(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.resolve().is_relative_to(folder) for folder in folders)


def _also_opened_at_run_time(by_name: dict[str, Path]) -> dict[str, Path]:
    """Add libgcc_s, which the C library opens by itself when a thread ends early."""
    if "libc.so.6" not in by_name:
        return {}
    path = by_name["libc.so.6"].parent / "libgcc_s.so.1"
    return {path.name: path} if path.exists() else {}


def find_shared_libraries(
    binaries: Iterable[Path], *, shipped_in: Iterable[Path] = ()
) -> SharedLibraries:
    """Ask `ldd` about `binaries`, which are this machine's own and trusted.

    Libraries inside `shipped_in` are left out: they are found relative to their users. One that is
    missing here is missing in the image too, and the module that wants it fails as it does here.

    Raises:
        PlatformFault: without `ldd`, or when no binary is dynamically linked.

    """
    folders = [folder.resolve() for folder in shipped_in]
    by_name: dict[str, Path] = {}
    loaders: set[Path] = set()
    for line in _ldd_lines(sorted(binaries)):
        if named := _NAMED.fullmatch(line):
            path = Path(named["path"])
            if not _is_inside(path, folders):
                by_name.setdefault(named["name"], path)
        elif loader := _LOADER.fullmatch(line):
            loaders.add(Path(loader["path"]))
    if not loaders:
        raise PlatformFault("ldd names no loader: none of the programs is dynamically linked")
    by_name |= _also_opened_at_run_time(by_name)
    return SharedLibraries(by_name=by_name, loader=min(loaders))
