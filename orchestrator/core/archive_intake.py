"""Read an image archive, which is hostile input, before an engine sees any of it.

Taken: what `docker save` wrote in its three generations, other tools' docker-archives, and OCI
image layouts. The result can be loaded by every engine: it is written anew, and claims no tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from manifests.digests import oci_digest
from manifests.encoding import Json, parse_json, parse_json_object
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.images import Transport
from manifests.oci import (
    DEEPEST_INDEX,
    LARGEST_CONFIG_BYTES,
    LARGEST_MANIFEST_BYTES,
    MOST_LAYERS,
    Descriptor,
    ImageConfig,
    ImageIndex,
    ImageManifest,
    Platform,
    choose_child,
    parse_config,
    parse_image_document,
    runs_on,
)
from manifests.text import escape_untrusted
from orchestrator.core.archive_layers import digest_layer
from orchestrator.core.archive_members import ArchiveMember, ArchiveSource, list_members
from orchestrator.core.image_archive import Layer, docker_archive_chunks, docker_archive_size

_DIGEST_IN_NAME = re.compile(r"(?:.*/)?(?:sha256:)?([0-9a-f]{64})(?:\.json|\.tar)?", re.ASCII)
_HEAD_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveImage:
    """The one image of an archive, every digest checked."""

    transport: Transport
    config_bytes: bytes
    config: ImageConfig
    layers: tuple[Layer, ...]
    """As stored, lowest first; perhaps compressed with gzip."""
    uncompressed_bytes: int
    manifest_digest: str | None = None
    index_digest: str | None = None

    @property
    def config_digest(self) -> str:
        """The image's id on classic stores."""
        return oci_digest(self.config_bytes)

    def docker_archive(self) -> Iterator[bytes]:
        """Yield a docker-archive of exactly this image, without any tag."""
        return docker_archive_chunks(self.config_bytes, self.layers)

    def docker_archive_bytes(self) -> int:
        """Return the size of `docker_archive`."""
        return docker_archive_size(self.config_bytes, self.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Where the parts of the image lie in the archive, before layers are read."""

    transport: Transport
    config: ArchiveMember
    config_digest: str | None
    layers: tuple[ArchiveMember, ...]
    stored_digests: tuple[str | None, ...]
    manifest_digest: str | None = None
    index_digest: str | None = None


class _Contents:
    """The archive's members with lookups that name what is missing."""

    def __init__(self, source: ArchiveSource) -> None:
        self.source = source
        self.members = list_members(source)

    def member(self, name: str) -> ArchiveMember:
        found = self.members.get(name.removeprefix("./"))
        if found is None:
            raise MalformedDocument(
                f"{self.source.name}: {escape_untrusted(name)} is named but not in the archive"
            )
        return found

    def blob(self, digest: str) -> ArchiveMember:
        return self.member(f"blobs/sha256/{digest.removeprefix('sha256:')}")

    def document(self, descriptor: Descriptor) -> ImageIndex | ImageManifest:
        place = f"{self.source.name}: {descriptor.digest}"
        data = self.blob(descriptor.digest).read(self.source, LARGEST_MANIFEST_BYTES)
        if oci_digest(data) != descriptor.digest:
            raise MalformedDocument(f"{place}: its bytes are {oci_digest(data)}")
        return parse_image_document(data, source=place, media_type=descriptor.media_type)


def _texts(value: Json) -> list[str] | None:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return [str(each) for each in value]
    return None


def _docker_manifest(contents: _Contents) -> tuple[str, list[str]]:
    """Return the config's and the layers' names of the one image in manifest.json."""
    place = f"{contents.source.name}: manifest.json"
    data = contents.member("manifest.json").read(contents.source, LARGEST_MANIFEST_BYTES)
    images = parse_json(data, source=place)
    if not isinstance(images, list) or not all(isinstance(image, dict) for image in images):
        raise MalformedDocument(f"{place}: expected a list of images")
    if len(images) != 1:
        raise MalformedDocument(f"{place}: {len(images)} images; save exactly one")
    image = images[0]
    assert isinstance(image, dict)
    config, layers = image.get("Config"), _texts(image.get("Layers"))
    if not isinstance(config, str) or layers is None or len(layers) > MOST_LAYERS:
        raise MalformedDocument(
            f"{place}: expected Config, a name, and Layers, at most {MOST_LAYERS} names"
        )
    return config, layers


def _digest_in_name(name: str) -> str | None:
    match = _DIGEST_IN_NAME.fullmatch(name)
    return f"sha256:{match[1]}" if match else None


def _find_in_docker_archive(contents: _Contents) -> _Found:
    config, layers = _docker_manifest(contents)
    stored = [_digest_in_name(name) if name.startswith("blobs/") else None for name in layers]
    return _Found(
        transport=Transport.DOCKER_ARCHIVE,
        config=contents.member(config),
        config_digest=_digest_in_name(config),
        layers=tuple(contents.member(name) for name in layers),
        stored_digests=tuple(stored),
    )


def _top_index(contents: _Contents) -> ImageIndex:
    place = f"{contents.source.name}: index.json"
    layout = contents.member("oci-layout").read(contents.source, LARGEST_MANIFEST_BYTES)
    version = parse_json_object(layout, source=f"{contents.source.name}: oci-layout")
    if version.get("imageLayoutVersion") != "1.0.0":
        raise MalformedDocument(f"{contents.source.name}: oci-layout: not version 1.0.0")
    data = contents.member("index.json").read(contents.source, LARGEST_MANIFEST_BYTES)
    document = parse_image_document(data, source=place)
    if not isinstance(document, ImageIndex):
        raise MalformedDocument(f"{place}: expected an image index")
    return document


def _find_in_oci_layout(contents: _Contents, wanted: Platform) -> _Found:
    index, index_digest = _top_index(contents), None
    place = f"{contents.source.name}: index.json"
    for _ in range(DEEPEST_INDEX):
        images = index.images()
        child = images[0] if len(images) == 1 else choose_child(index, wanted, source=place)
        document = contents.document(child)
        if isinstance(document, ImageManifest):
            return _Found(
                transport=Transport.OCI_ARCHIVE,
                config=contents.blob(document.config.digest),
                config_digest=document.config.digest,
                layers=tuple(contents.blob(layer.digest) for layer in document.layers),
                stored_digests=tuple(layer.digest for layer in document.layers),
                manifest_digest=child.digest,
                index_digest=index_digest,
            )
        index, index_digest, place = document, index_digest or child.digest, child.digest
    raise MalformedDocument(f"{place}: more than {DEEPEST_INDEX} indexes inside one another")


def _find(contents: _Contents, wanted: Platform) -> _Found:
    """Find the image; an archive in both layouts must mean the same image in both."""
    has_docker, has_oci = "manifest.json" in contents.members, "index.json" in contents.members
    if has_docker and not has_oci:
        return _find_in_docker_archive(contents)
    if has_oci and not has_docker:
        return _find_in_oci_layout(contents, wanted)
    if not has_docker:
        raise MalformedDocument(
            f"{contents.source.name}: neither manifest.json nor index.json; write the archive with "
            "`docker save` or as an OCI image layout"
        )
    docker, oci = _find_in_docker_archive(contents), _find_in_oci_layout(contents, wanted)
    if docker.config.offset != oci.config.offset:
        raise MalformedDocument(
            f"{contents.source.name}: manifest.json and index.json name different images"
        )
    if len(docker.layers) != len(oci.layers):  # engine 25.0 wrote manifests without layers
        return docker
    return replace(docker, manifest_digest=oci.manifest_digest, index_digest=oci.index_digest)


def _checked_layer(
    contents: _Contents, found: _Found, position: int, *, diff_id: str, limit_bytes: int
) -> tuple[Layer, int]:
    member, source = found.layers[position], contents.source
    place = f"{source.name}: {member.name}"
    seen = digest_layer(
        member.chunks(source),
        head=source.read_at(member.offset, min(_HEAD_BYTES, member.size_bytes)),
        limit_bytes=limit_bytes,
        place=place,
    )
    stored = found.stored_digests[position]
    if stored is not None and stored != seen.stored:
        raise MalformedDocument(f"{place}: its bytes are {seen.stored}, expected {stored}")
    if seen.diff_id != diff_id:
        raise MalformedDocument(
            f"{place}: uncompressed it is {seen.diff_id}; the config says {diff_id}"
        )
    layer = Layer(
        diff_id=diff_id, size_bytes=member.size_bytes, chunks=lambda: member.chunks(source)
    )
    return layer, seen.uncompressed_bytes


def read_archive(source: ArchiveSource, *, wanted: Platform, limit_bytes: int) -> ArchiveImage:
    """Read the one image of an archive and check every digest in it.

    `limit_bytes` bounds the archive and the sum of its uncompressed layers. Nothing is unpacked or
    kept: a layer is read once here and once more when it is loaded, where the engine checks it.

    Raises:
        MalformedDocument: for an archive that is not exactly one well-formed image.
        RefusedByPolicy: for an image that does not run on `wanted`.

    """
    if source.size_bytes > limit_bytes:
        raise MalformedDocument(
            f"{source.name}: {source.size_bytes} bytes, at most {limit_bytes} are taken"
        )
    contents = _Contents(source)
    found = _find(contents, wanted)
    data = found.config.read(source, LARGEST_CONFIG_BYTES)
    config = parse_config(
        data, source=f"{source.name}: {found.config.name}", digest=found.config_digest
    )
    require_platform(config, wanted, source=source.name)
    if len(config.diff_ids) != len(found.layers):
        raise MalformedDocument(
            f"{source.name}: {len(found.layers)} layers, but the config says {len(config.diff_ids)}"
        )
    layers, total = _checked_layers(contents, found, config, limit_bytes)
    return ArchiveImage(
        transport=found.transport,
        config_bytes=data,
        config=config,
        layers=layers,
        uncompressed_bytes=total,
        manifest_digest=found.manifest_digest,
        index_digest=found.index_digest,
    )


def _checked_layers(
    contents: _Contents, found: _Found, config: ImageConfig, limit_bytes: int
) -> tuple[tuple[Layer, ...], int]:
    layers: list[Layer] = []
    total = 0
    for position, diff_id in enumerate(config.diff_ids):
        layer, size = _checked_layer(
            contents, found, position, diff_id=diff_id, limit_bytes=limit_bytes - total
        )
        layers.append(layer)
        total += size
    return tuple(layers), total


def require_platform(config: ImageConfig, wanted: Platform, *, source: str) -> None:
    """Refuse an image for another platform. Raises RefusedByPolicy."""
    if not runs_on(config.platform, wanted):
        raise RefusedByPolicy(
            f"{source}: made for {escape_untrusted(str(config.platform))}, but this run needs "
            f"{wanted}; build it for that platform"
        )
