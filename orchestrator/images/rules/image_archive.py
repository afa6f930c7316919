"""Assemble image archives from plain values: tar members, layers, config, manifest.

Everything here is a pure function of its arguments, so the same inputs give the same bytes: times
are zero, owners are numeric, parents are listed before children. Two layouts are written: the
docker-archive that every engine loads, and the OCI layout (OCI image-spec 1.1) that others use.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import assert_never

from manifests.digests import oci_digest, sha256_of_chunks
from manifests.encoding import canonical_json
from manifests.oci import OCI_CONFIG, OCI_INDEX, OCI_LAYER, OCI_MANIFEST

EPOCH = "1970-01-01T00:00:00Z"
"""The creation time in every config document: builds carry no clock."""

_SECOND_IN_NS = 1_000_000_000


class EntryKind(StrEnum):
    """What a member of a layer is."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"


@dataclass(frozen=True, slots=True, kw_only=True)
class TarEntry:
    """One member of a tar archive. `path` is absolute in the image or relative; no `..`."""

    path: str
    data: bytes = b""
    kind: EntryKind = EntryKind.FILE
    mode: int = 0o644
    target: str = ""
    """Where a link points."""
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One uncompressed layer; `chunks` can be called again for another pass over its bytes."""

    diff_id: str
    size_bytes: int
    chunks: Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """What a config document says beside its layers; empty values are left out."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    working_directory: str = ""
    volumes: tuple[str, ...] = ()
    exposed_ports: tuple[str, ...] = ()
    healthcheck: tuple[str, ...] = ()
    """As `("CMD", "/bin/true")`; runs every second."""
    stop_signal: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    platform: str = "linux/amd64"


def _tar_type(kind: EntryKind) -> bytes:
    match kind:
        case EntryKind.FILE:
            return tarfile.REGTYPE
        case EntryKind.DIRECTORY:
            return tarfile.DIRTYPE
        case EntryKind.SYMLINK:
            return tarfile.SYMTYPE
        case EntryKind.HARDLINK:
            return tarfile.LNKTYPE
        case _:
            assert_never(kind)


def tar_header(
    path: str, *, size_bytes: int, kind: EntryKind = EntryKind.FILE, mode: int = 0o644
) -> bytes:
    """Return the header blocks of a member owned by root with time zero."""
    return _header(TarEntry(path=path, kind=kind, mode=mode), size_bytes)


def _header(entry: TarEntry, size_bytes: int) -> bytes:
    member = tarfile.TarInfo(entry.path.lstrip("/"))
    member.type = _tar_type(entry.kind)
    member.size = size_bytes
    member.mode = entry.mode
    member.linkname = entry.target
    member.uid, member.gid = entry.uid, entry.gid
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size_bytes: int) -> bytes:
    return bytes(-size_bytes % tarfile.BLOCKSIZE)


def tar_chunks(entries: Iterable[TarEntry]) -> Iterator[bytes]:
    """Yield a tar archive of `entries` in the given order, with its end blocks."""
    for entry in entries:
        yield _header(entry, len(entry.data))
        yield entry.data
        yield _padding(len(entry.data))
    yield bytes(2 * tarfile.BLOCKSIZE)


def with_parents(entries: Iterable[TarEntry]) -> list[TarEntry]:
    """Return `entries` sorted by path, every missing parent added as a directory of mode 0755.

    An engine makes missing parents writable for everybody; these are not.
    """
    by_path = {entry.path.strip("/"): entry for entry in entries}
    for path in list(by_path):
        for parent in PurePosixPath(path).parents:
            name = str(parent)
            if name != "." and name not in by_path:
                by_path[name] = TarEntry(path=name, kind=EntryKind.DIRECTORY, mode=0o755)
    return [by_path[path] for path in sorted(by_path, key=lambda path: path.split("/"))]


def layer_from_entries(entries: Iterable[TarEntry]) -> Layer:
    """Return a layer of `entries` and their parents, held in memory."""
    data = b"".join(tar_chunks(with_parents(entries)))
    return Layer(diff_id=oci_digest(data), size_bytes=len(data), chunks=lambda: (data,))


def _container_config(settings: ImageSettings) -> dict[str, object]:
    healthcheck = {"Test": list(settings.healthcheck), "Interval": _SECOND_IN_NS}
    fields: dict[str, object] = {
        "Entrypoint": list(settings.entrypoint),
        "Cmd": list(settings.command),
        "Env": [f"{name}={value}" for name, value in sorted(settings.environment.items())],
        "User": settings.user,
        "WorkingDir": settings.working_directory,
        "Volumes": {path: {} for path in settings.volumes},
        "ExposedPorts": {port: {} for port in settings.exposed_ports},
        "Healthcheck": healthcheck if settings.healthcheck else {},
        "StopSignal": settings.stop_signal,
        "Labels": dict(settings.labels),
    }
    return {name: value for name, value in fields.items() if value}


def config_document(settings: ImageSettings, diff_ids: Sequence[str]) -> bytes:
    """Return the config document (OCI image-spec 1.1, config.md); its digest is the image id."""
    system, _, rest = settings.platform.partition("/")
    architecture, _, variant = rest.partition("/")
    document: dict[str, object] = {
        "architecture": architecture,
        "os": system,
        "created": EPOCH,
        "config": _container_config(settings),
        "rootfs": {"type": "layers", "diff_ids": list(diff_ids)},
        "history": [{"created": EPOCH, "created_by": "piste"} for _ in diff_ids],
    }
    if variant:
        document["variant"] = variant
    return canonical_json(document)


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _member(path: str, size_bytes: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield tar_header(path, size_bytes=size_bytes)
    yield from chunks
    yield _padding(size_bytes)


def _distinct(layers: Sequence[Layer]) -> dict[str, Layer]:
    return {layer.diff_id: layer for layer in layers}


def docker_archive_chunks(config: bytes, layers: Sequence[Layer]) -> Iterator[bytes]:
    """Yield a docker-archive that claims no tag: `RepoTags` is null.

    A layer that stands twice in the image is stored once. Layers may be compressed with gzip, which
    the engine undoes; their `diff_id` is always that of the uncompressed bytes.
    """
    name = f"{_hex(oci_digest(config))}.json"
    paths = [f"{_hex(layer.diff_id)}/layer.tar" for layer in layers]
    manifest = canonical_json([{"Config": name, "RepoTags": None, "Layers": paths}])
    yield from _member(name, len(config), (config,))
    for diff_id, layer in _distinct(layers).items():
        yield from _member(f"{_hex(diff_id)}/layer.tar", layer.size_bytes, layer.chunks())
    yield from _member("manifest.json", len(manifest), (manifest,))
    yield bytes(2 * tarfile.BLOCKSIZE)


def docker_archive_size(config: bytes, layers: Sequence[Layer]) -> int:
    """Return the exact number of bytes that `docker_archive_chunks` yields."""
    unread = [
        Layer(diff_id=layer.diff_id, size_bytes=layer.size_bytes, chunks=lambda: ())
        for layer in layers
    ]
    frame = sum(map(len, docker_archive_chunks(config, unread)))
    return frame + sum(layer.size_bytes for layer in _distinct(layers).values())


def oci_manifest(config: bytes, layers: Sequence[Layer]) -> bytes:
    """Return the image manifest over uncompressed `layers` (OCI image-spec 1.1, manifest.md)."""
    return canonical_json(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": {
                "mediaType": OCI_CONFIG,
                "digest": oci_digest(config),
                "size": len(config),
            },
            "layers": [
                {"mediaType": OCI_LAYER, "digest": layer.diff_id, "size": layer.size_bytes}
                for layer in layers
            ],
        }
    )


def oci_layout_chunks(config: bytes, layers: Sequence[Layer], *, platform: str) -> Iterator[bytes]:
    """Yield an OCI image layout as a tar archive with one manifest in its index."""
    manifest = oci_manifest(config, layers)
    system, _, architecture = platform.partition("/")
    descriptor = {
        "mediaType": OCI_MANIFEST,
        "digest": oci_digest(manifest),
        "size": len(manifest),
        "platform": {"os": system, "architecture": architecture},
    }
    index = canonical_json({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [descriptor]})
    layout = canonical_json({"imageLayoutVersion": "1.0.0"})
    yield from _member("oci-layout", len(layout), (layout,))
    yield from _member("index.json", len(index), (index,))
    for blob in (manifest, config):
        yield from _member(f"blobs/sha256/{_hex(oci_digest(blob))}", len(blob), (blob,))
    for diff_id, layer in _distinct(layers).items():
        yield from _member(f"blobs/sha256/{_hex(diff_id)}", layer.size_bytes, layer.chunks())
    yield bytes(2 * tarfile.BLOCKSIZE)


def layer_from_chunks(chunks: Callable[[], Iterable[bytes]], size_bytes: int) -> Layer:
    """Return a layer whose uncompressed bytes `chunks` yields; they are read once to hash them."""
    return Layer(
        diff_id=f"sha256:{sha256_of_chunks(chunks())}", size_bytes=size_bytes, chunks=chunks
    )
