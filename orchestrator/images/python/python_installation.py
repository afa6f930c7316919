"""Read the machine's own Python: interpreter, standard library, installed distributions.

The interpreter that runs piste is the one that is read; in a virtual environment, its base.
"""

from __future__ import annotations

import importlib.util
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from manifests.errors import MalformedDocument, PlatformFault
from orchestrator.images.rules.image_archive import TarEntry

LIBRARY = f"usr/local/lib/python{sys.version_info.major}.{sys.version_info.minor}"
"""Where the standard library lies in the image."""

_LEFT_OUT = frozenset(
    {"__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip"}
    | {"pydoc_data", "site-packages", "dist-packages", "sitecustomize.py", "EXTERNALLY-MANAGED"}
)
_LEFT_OUT_PREFIXES = ("config-", "_test", "_ctypes_test", "_xxtest", "xxlimited", "_tkinter")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PYC_HEADER = 16  # PEP 552
_UNCHECKED_HASH = (1).to_bytes(4, "little")


def interpreter() -> Path:
    """Return the base interpreter's binary. Raises PlatformFault when it cannot be found."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidates = (Path(sys.base_prefix, "bin", name), Path(sys.executable))
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    raise PlatformFault(f"no {name} under {sys.base_prefix}")


def site_folder() -> str:
    """Return where distributions lie in the image: Debian's interpreter looks elsewhere."""
    is_debians = "deb_system" in sysconfig.get_scheme_names()
    return f"{LIBRARY}/{'dist' if is_debians else 'site'}-packages"


def architecture() -> str:
    """Return this machine's architecture in OCI spelling, as `amd64`."""
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}.get(
        machine, machine
    )


def _bytecode(source: Path, data: bytes) -> bytes | None:
    """Return the installed byte code of `source`, bound to its content instead of its time.

    A layer's times are zero, which would make Python compile everything again at every start; an
    unchecked-hash file (PEP 552) is used as it is. None when none is installed or it is stale.
    """
    try:
        code = Path(importlib.util.cache_from_source(str(source))).read_bytes()
    except OSError:
        return None
    status = source.stat()
    stamp = int(status.st_mtime).to_bytes(8, "little")[:4] + len(data).to_bytes(8, "little")[:4]
    if code[:4] != importlib.util.MAGIC_NUMBER or code[4:_PYC_HEADER] != bytes(4) + stamp:
        return None
    header = code[:4] + _UNCHECKED_HASH + importlib.util.source_hash(data)
    return header + code[_PYC_HEADER:]


def _file_entries(source: Path, place: str) -> Iterator[TarEntry]:
    data = source.read_bytes()
    executable = 0o111 if source.stat().st_mode & 0o100 else 0
    yield TarEntry(path=place, data=data, mode=0o644 | executable)
    code = _bytecode(source, data) if source.suffix == ".py" else None
    if code is not None:
        folder, _, name = place.rpartition("/")
        cached = importlib.util.cache_from_source(name)
        yield TarEntry(path=f"{folder}/{cached}", data=code)


def _is_left_out(name: str) -> bool:
    return name in _LEFT_OUT or name.startswith(_LEFT_OUT_PREFIXES)


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if _is_left_out(path.name):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file():
            yield path


def standard_library() -> dict[str, Path]:
    """Map the place in the image to the file, without tests, IDLE, Tk and installers."""
    folder = Path(sysconfig.get_path("stdlib"))
    files = {f"{LIBRARY}/{path.relative_to(folder).as_posix()}": path for path in _walk(folder)}
    extensions = Path(sysconfig.get_config_var("DESTSHARED"))
    if extensions.is_dir() and not extensions.is_relative_to(folder):
        for path in _walk(extensions):
            files[f"{LIBRARY}/lib-dynload/{path.name}"] = path
    return files


def _installed(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _requirements(distribution: metadata.Distribution) -> Iterator[str]:
    for text in distribution.requires or ():
        match = _REQUIREMENT.match(text)
        if match and "extra ==" not in text:
            yield match[0]


def with_requirements(names: tuple[str, ...]) -> dict[str, metadata.Distribution]:
    """Return the named distributions and what they require and is installed, by name.

    Raises:
        MalformedDocument: for a named distribution that is not installed here.

    """
    found: dict[str, metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        distribution = _installed(name)
        if distribution is None:
            if name in names:
                raise MalformedDocument(
                    f"{name} is not installed for {sys.executable}; install it there first"
                )
            continue
        if distribution.name not in found:
            found[distribution.name] = distribution
            waiting += _requirements(distribution)
    return dict(sorted(found.items()))


def distribution_files(distribution: metadata.Distribution) -> dict[str, Path]:
    """Map the place in the image to each file of one installed distribution.

    Scripts, headers and byte code lie outside its folder or are made again: they are left out.
    """
    if distribution.files is None:
        raise MalformedDocument(
            f"{distribution.name} keeps no list of its files; install it with pip in a venv"
        )
    files: dict[str, Path] = {}
    for file in distribution.files:
        parts = file.parts
        if ".." in parts or file.is_absolute() or not {"tests", "__pycache__"}.isdisjoint(parts):
            continue
        path = Path(str(file.locate()))
        if path.is_file():
            files[f"{site_folder()}/{file.as_posix()}"] = path
    return files


def entries_of(files: dict[str, Path]) -> Iterator[TarEntry]:
    """Yield every file and its valid byte code."""
    for place, path in files.items():
        yield from _file_entries(path, place)
