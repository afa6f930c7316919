"""Build an image from the machine's own Python, without any registry.

The base layer (interpreter, standard library, shared libraries, chosen distributions) is made once
and kept in a cache folder; an image adds one small layer of its own files.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from manifests.digests import oci_digest, sha256_hex
from manifests.encoding import canonical_json, parse_json_object
from manifests.errors import PlatformFault
from orchestrator.images.python import python_installation as installation
from orchestrator.images.python.shared_libraries import find_shared_libraries
from orchestrator.images.rules.image_archive import (
    EntryKind,
    ImageSettings,
    Layer,
    TarEntry,
    config_document,
    docker_archive_chunks,
    layer_from_entries,
    oci_layout_chunks,
    tar_chunks,
    with_parents,
)

PYTHON = "/usr/local/bin/python3"
"""The interpreter in the image."""

MAIN = "/app/main.py"
"""The program that `python_program` writes and the default entrypoint runs."""

_BASE_LAYOUT = 2  # counts up whenever the same inputs give another base layer
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonImage:
    """An image to build: its own files on top of Python and the named distributions."""

    entries: tuple[TarEntry, ...]
    distributions: tuple[str, ...] = ()
    """Installed distributions to bring along, with what they require."""
    programs: tuple[str, ...] = ()
    """Absolute paths of this machine's programs to bring along, with their libraries."""
    settings: ImageSettings = field(default_factory=ImageSettings)
    """An empty entrypoint becomes `python3 /app/main.py`; the platform is this machine's."""
    platform: str = ""
    """Claim another platform than this machine's, for tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltImage:
    """An archive on disk; `image_id` is the config digest, as classic stores name it."""

    path: Path
    image_id: str
    diff_ids: tuple[str, ...]
    size_bytes: int


def python_program(
    source: str,
    *,
    entries: Iterable[TarEntry] = (),
    distributions: tuple[str, ...] = (),
    settings: ImageSettings | None = None,
) -> PythonImage:
    """Return an image whose entrypoint runs `source` as `/app/main.py`."""
    main = TarEntry(path=MAIN, data=source.encode("utf-8"))
    return PythonImage(
        entries=(main, *entries),
        distributions=distributions,
        settings=settings or ImageSettings(),
    )


def _base_key(image: PythonImage) -> str:
    found = installation.with_requirements(image.distributions)
    status = installation.interpreter().stat()
    facts = {
        "layout": _BASE_LAYOUT,
        "python": sys.version,
        "interpreter": [str(installation.interpreter()), status.st_size, int(status.st_mtime)],
        "libc": list(platform.libc_ver()),
        "distributions": {name: each.version for name, each in found.items()},
        "programs": sorted(image.programs),
    }
    return sha256_hex(canonical_json(facts))


def _interpreter_entries(binary: Path) -> Iterator[TarEntry]:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    yield TarEntry(path=f"usr/local/bin/{name}", data=binary.read_bytes(), mode=0o755)
    for alias in ("python3", "python"):
        yield TarEntry(path=f"usr/local/bin/{alias}", kind=EntryKind.SYMLINK, target=name)


def _base_entries(image: PythonImage) -> Iterator[TarEntry]:
    binary = installation.interpreter()
    files = installation.standard_library()
    shipped: set[Path] = set()
    for distribution in installation.with_requirements(image.distributions).values():
        files |= installation.distribution_files(distribution)
        shipped.add(Path(str(distribution.locate_file(""))))
    programs = [Path(program) for program in image.programs]
    extensions = [path for place, path in files.items() if ".so" in Path(place).suffixes]
    libraries = find_shared_libraries([binary, *programs, *extensions], shipped_in=shipped)
    yield TarEntry(path="tmp", kind=EntryKind.DIRECTORY, mode=0o1777)
    yield from _interpreter_entries(binary)
    yield from libraries.entries()
    for program in programs:
        yield TarEntry(path=str(program), data=program.read_bytes(), mode=0o755)
    yield from installation.entries_of(files)


def _write_atomically(path: Path, chunks: Iterable[bytes]) -> str:
    """Write `chunks` to `path` through a temporary file beside it; return their SHA-256 in hex."""
    digest = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            for chunk in chunks:
                digest.update(chunk)
                stream.write(chunk)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return digest.hexdigest()


def _file_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def _cached_base(image: PythonImage, cache: Path) -> Layer:
    key = _base_key(image)
    tar, facts = cache / f"{key}.tar", cache / f"{key}.json"
    if not facts.is_file():
        digest = _write_atomically(tar, tar_chunks(with_parents(_base_entries(image))))
        _write_atomically(facts, [canonical_json({"sha256": digest, "size": tar.stat().st_size})])
    known = parse_json_object(facts.read_bytes(), source=str(facts))
    size = tar.stat().st_size if tar.is_file() else -1
    if size != known.get("size"):
        facts.unlink(missing_ok=True)
        raise PlatformFault(f"{tar} is not what was cached; it was forgotten, build again")
    return Layer(
        diff_id=f"sha256:{known['sha256']}", size_bytes=size, chunks=lambda: _file_chunks(tar)
    )


def _settings(image: PythonImage) -> ImageSettings:
    here = image.platform or f"linux/{installation.architecture()}"
    entrypoint = image.settings.entrypoint or (PYTHON, MAIN)
    return replace(image.settings, entrypoint=entrypoint, platform=here)


def build_python_image(
    image: PythonImage, destination: Path, *, cache: Path, oci_layout: bool = False
) -> BuiltImage:
    """Write `image` as a docker-archive (or an OCI layout) to `destination`.

    The same inputs on the same machine give the same bytes. Building the base layer takes seconds,
    an image on a cached one the time of a copy.

    Raises:
        MalformedDocument: for a distribution that is not installed.
        PlatformFault: when Python's own files cannot be read, or the disk is full.

    """
    try:
        layers = [_cached_base(image, cache), layer_from_entries(image.entries)]
        settings = _settings(image)
        config = config_document(settings, [layer.diff_id for layer in layers])
        if oci_layout:
            chunks = oci_layout_chunks(config, layers, platform=settings.platform)
        else:
            chunks = docker_archive_chunks(config, layers)
        _write_atomically(destination, chunks)
        size = destination.stat().st_size
    except OSError as error:
        raise PlatformFault(f"{destination}: the image cannot be built: {error}") from error
    return BuiltImage(
        path=destination,
        image_id=oci_digest(config),
        diff_ids=tuple(layer.diff_id for layer in layers),
        size_bytes=size,
    )
