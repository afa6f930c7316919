"""Read an image archive, which is hostile input, before an engine sees any of it.

Taken: what `docker save` wrote in its three generations, other tools' docker-archives, and OCI
image layouts. The result can be loaded by every engine: it is written anew, and claims no tag.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from manifests.digests import oci_digest
from manifests.errors import MalformedDocument
from manifests.images import Transport
from manifests.oci import (
    LARGEST_CONFIG_BYTES,
    ImageConfig,
    Platform,
    WrongPlatform,
    parse_config,
    runs_on,
)
from manifests.text import escape_untrusted
from orchestrator.images.rules.archive_layers import digest_layer
from orchestrator.images.rules.archive_layouts import ArchiveContents, FoundImage, find_image
from orchestrator.images.rules.archive_members import ArchiveMember, ArchiveSource
from orchestrator.images.rules.image_archive import (
    Layer,
    docker_archive_chunks,
    docker_archive_size,
)

_HEAD_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLayer:
    """A checked layer and where it lies in the archive, perhaps compressed with gzip."""

    diff_id: str
    member: ArchiveMember
    uncompressed_bytes: int

    def layer(self, source: ArchiveSource) -> Layer:
        """Return the layer as it is read from `source`, the same archive opened again."""
        return Layer(
            diff_id=self.diff_id,
            size_bytes=self.member.size_bytes,
            chunks=lambda: self.member.chunks(source),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveImage:
    """The one image of an archive, every digest checked."""

    transport: Transport
    config_bytes: bytes
    config: ImageConfig
    layers: tuple[StoredLayer, ...]
    """Lowest first."""
    manifest_digest: str | None = None
    index_digest: str | None = None

    @property
    def config_digest(self) -> str:
        """The image's id on classic stores."""
        return oci_digest(self.config_bytes)

    @property
    def uncompressed_bytes(self) -> int:
        """The sum over the layers."""
        return sum(layer.uncompressed_bytes for layer in self.layers)

    def docker_archive(self, source: ArchiveSource) -> Iterator[bytes]:
        """Yield a docker-archive of exactly this image, without any tag."""
        return docker_archive_chunks(
            self.config_bytes, [layer.layer(source) for layer in self.layers]
        )

    def docker_archive_bytes(self, source: ArchiveSource) -> int:
        """Return the size of `docker_archive`; no layer is read."""
        return docker_archive_size(
            self.config_bytes, [layer.layer(source) for layer in self.layers]
        )


def _checked_layer(
    contents: ArchiveContents, found: FoundImage, position: int, *, diff_id: str, limit_bytes: int
) -> StoredLayer:
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
    return StoredLayer(diff_id=diff_id, member=member, uncompressed_bytes=seen.uncompressed_bytes)


def read_archive(source: ArchiveSource, *, wanted: Platform, limit_bytes: int) -> ArchiveImage:
    """Read the one image of an archive and check every digest in it.

    `limit_bytes` bounds the archive and the sum of its uncompressed layers. Nothing is unpacked or
    kept: a layer is read once here and once more when it is loaded, where the engine checks it.

    Raises:
        MalformedDocument: for an archive that is not exactly one well-formed image.
        WrongPlatform: for an image that does not run on `wanted`.

    """
    if source.size_bytes > limit_bytes:
        raise MalformedDocument(
            f"{source.name}: {source.size_bytes} bytes, at most {limit_bytes} are taken"
        )
    contents = ArchiveContents(source)
    found = find_image(contents, wanted)
    data = found.config.read(source, LARGEST_CONFIG_BYTES)
    config = parse_config(
        data, source=f"{source.name}: {found.config.name}", digest=found.config_digest
    )
    require_platform(config, wanted, source=source.name)
    if len(config.diff_ids) != len(found.layers):
        raise MalformedDocument(
            f"{source.name}: {len(found.layers)} layers, but the config says {len(config.diff_ids)}"
        )
    return ArchiveImage(
        transport=found.transport,
        config_bytes=data,
        config=config,
        layers=_checked_layers(contents, found, config, limit_bytes),
        manifest_digest=found.manifest_digest,
        index_digest=found.index_digest,
    )


def _checked_layers(
    contents: ArchiveContents, found: FoundImage, config: ImageConfig, limit_bytes: int
) -> tuple[StoredLayer, ...]:
    layers: list[StoredLayer] = []
    left = limit_bytes
    for position, diff_id in enumerate(config.diff_ids):
        layer = _checked_layer(contents, found, position, diff_id=diff_id, limit_bytes=left)
        layers.append(layer)
        left -= layer.uncompressed_bytes
    return tuple(layers)


def require_platform(config: ImageConfig, wanted: Platform, *, source: str) -> None:
    """Refuse an image for another platform. Raises WrongPlatform."""
    if not runs_on(config.platform, wanted):
        raise WrongPlatform(
            f"{source}: made for {escape_untrusted(str(config.platform))}, but this run needs "
            f"{wanted}; build it for that platform"
        )
