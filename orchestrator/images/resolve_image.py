"""Find out what an image is before any of it is brought in.

Steps 1 and 3 of a certified run's life (design, section 3): tags are refused where a row would be
certified, documents are read and checked, and a wrong platform is refused while nothing is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, assert_never

from manifests.digests import oci_digest
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.images import ImageIdentity, Transport
from manifests.oci import (
    DEEPEST_INDEX,
    ImageConfig,
    ImageIndex,
    ImageManifest,
    Platform,
    choose_child,
    parse_config,
    parse_image_document,
    parse_platform,
)
from manifests.references import ImageReference
from orchestrator.engine.ports import ContainerEngine
from orchestrator.images.local_images import find_local_image
from orchestrator.images.registry_port import Registry
from orchestrator.images.rules.archive_intake import ArchiveImage, read_archive, require_platform
from orchestrator.images.rules.archive_members import ArchiveSource
from orchestrator.images.rules.image_arguments import ArchivePath, EngineName, parse_image_argument
from orchestrator.images.saved_images import saved_config

LARGEST_IMAGE_BYTES = 64 << 30
"""Default bound on an image: compressed in a registry, uncompressed in an archive."""


class OpenArchive(ArchiveSource, Protocol):
    """An archive that can also be hashed as a whole."""

    def sha256_hex(self) -> str:
        """Return the SHA-256 of the file."""


OpenArchiveFile = Callable[[Path], AbstractContextManager[OpenArchive]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryPlan:
    """Pull this manifest."""

    reference: ImageReference
    manifest_digest: str
    compressed_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePlan:
    """Read this archive again and load it; its digests were checked."""

    path: Path
    image: ArchiveImage


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePlan:
    """The engine has it already."""

    image_id: str


Plan = RegistryPlan | ArchivePlan | EnginePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedImage:
    """What an image is, before it is brought in: `bring_in` completes the identity."""

    reference: str
    """As the record will show it; a tag is shown as the digest that it meant."""
    transport: Transport
    platform: str
    config: ImageConfig
    config_digest: str
    plan: Plan
    index_digest: str | None = None
    manifest_digest: str | None = None
    archive_sha256: str | None = None

    @property
    def likely_ids(self) -> tuple[str, ...]:
        """The ids that an engine may give it: the config's, or a manifest's or index's."""
        digests = (self.config_digest, self.manifest_digest, self.index_digest)
        return tuple(dict.fromkeys(digest for digest in digests if digest is not None))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The `Config` object of the image's own configuration document: hostile."""
        return self.config.config or {}

    def identity(self, *, engine_image_id: str, size_bytes: int, store: str) -> ImageIdentity:
        """Return the full identity once the engine holds the image."""
        return ImageIdentity(
            reference=self.reference,
            transport=self.transport,
            archive_sha256=self.archive_sha256,
            index_digest=self.index_digest,
            manifest_digest=self.manifest_digest,
            config_digest=self.config_digest,
            diff_ids=self.config.diff_ids,
            platform=self.platform,
            size_bytes=size_bytes,
            engine_image_id=engine_image_id,
            store=store,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSources:
    """Where images come from."""

    engine: ContainerEngine
    registry: Registry
    open_archive: OpenArchiveFile
    limit_bytes: int = LARGEST_IMAGE_BYTES


def resolve_image(
    text: str, *, sources: ImageSources, platform: str, allow_tag: bool
) -> ResolvedImage:
    """Resolve what a command names, for `platform`; nothing is pulled or loaded.

    With `allow_tag` (a dry run) a tag and `engine:NAME` are resolved and shown; without (a
    certified run) both are refused, because they can mean another image tomorrow.

    Raises:
        MalformedDocument: for a reference, document or archive that is not well formed.
        RefusedByPolicy: for a tag, a wrong platform, an image beyond the size bound, or no access.
        PlatformFault: when registry, disk or engine fail.

    """
    wanted = parse_platform(platform)
    argument = parse_image_argument(text)
    match argument:
        case ArchivePath():
            return _resolve_archive(Path(argument.path).expanduser(), sources, wanted)
        case ImageReference():
            return _resolve_reference(argument, sources, wanted, allow_tag=allow_tag)
        case EngineName():
            return _resolve_local(argument.name, sources, wanted, allow_local=allow_tag)
        case _:
            assert_never(argument)


def _resolve_archive(path: Path, sources: ImageSources, wanted: Platform) -> ResolvedImage:
    with sources.open_archive(path) as source:
        sha256 = source.sha256_hex()
        image = read_archive(source, wanted=wanted, limit_bytes=sources.limit_bytes)
    return ResolvedImage(
        reference=path.name,
        transport=image.transport,
        platform=str(image.config.platform),
        config=image.config,
        config_digest=image.config_digest,
        plan=ArchivePlan(path=path, image=image),
        index_digest=image.index_digest,
        manifest_digest=image.manifest_digest,
        archive_sha256=sha256,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The manifest that a reference leads to, and the index on the way."""

    reference: ImageReference
    manifest: ImageManifest
    manifest_digest: str
    requested_digest: str
    index_digest: str | None


def _choose_manifest(reference: ImageReference, registry: Registry, wanted: Platform) -> _Chosen:
    """Follow an index to the child for `wanted`; both digests are kept."""
    place, requested, index_digest = reference, None, None
    for _ in range(DEEPEST_INDEX):
        sent = registry.fetch_manifest(place)
        requested = requested or sent.digest
        document = parse_image_document(sent.data, source=str(place), media_type=sent.media_type)
        if isinstance(document, ImageManifest):
            return _Chosen(
                reference=reference,
                manifest=document,
                manifest_digest=sent.digest,
                requested_digest=requested,
                index_digest=index_digest,
            )
        index_digest = index_digest or sent.digest
        place = _child(reference, document, wanted, place)
    raise MalformedDocument(f"{reference}: more than {DEEPEST_INDEX} indexes inside one another")


def _child(
    reference: ImageReference, index: ImageIndex, wanted: Platform, place: ImageReference
) -> ImageReference:
    child = choose_child(index, wanted, source=str(place))
    return replace(reference, digest=child.digest, tag=None)


def _resolve_reference(
    reference: ImageReference, sources: ImageSources, wanted: Platform, *, allow_tag: bool
) -> ResolvedImage:
    chosen = _choose_manifest(reference, sources.registry, wanted)
    pinned = reference.pinned(chosen.requested_digest)
    if reference.tag is not None and not allow_tag:
        raise RefusedByPolicy(
            f"{reference}: a tag can move, so a certified run takes a digest; it now means {pinned}"
        )
    compressed = sum(layer.size for layer in chosen.manifest.layers)
    if compressed > sources.limit_bytes:
        raise RefusedByPolicy(
            f"{pinned}: {compressed} compressed bytes; at most {sources.limit_bytes} are taken"
        )
    descriptor = chosen.manifest.config
    data = sources.registry.fetch_config(reference, descriptor.digest, descriptor.size)
    config = parse_config(data, source=f"{pinned}: config", digest=descriptor.digest)
    require_platform(config, wanted, source=pinned)
    if len(config.diff_ids) != len(chosen.manifest.layers):
        raise MalformedDocument(
            f"{pinned}: {len(chosen.manifest.layers)} layers, its config says "
            f"{len(config.diff_ids)}"
        )
    return ResolvedImage(
        reference=pinned,
        transport=Transport.REGISTRY,
        platform=str(config.platform),
        config=config,
        config_digest=descriptor.digest,
        plan=RegistryPlan(
            reference=reference,
            manifest_digest=chosen.manifest_digest,
            compressed_bytes=compressed,
        ),
        index_digest=chosen.index_digest,
        manifest_digest=chosen.manifest_digest,
    )


def _resolve_local(
    name: str, sources: ImageSources, wanted: Platform, *, allow_local: bool
) -> ResolvedImage:
    if not allow_local:
        raise RefusedByPolicy(
            f"engine:{name}: only this machine knows it; a certified run takes "
            "registry/repository@sha256:… or an archive (`docker save -o image.tar`)"
        )
    image_id = find_local_image(sources.engine, name)
    data = saved_config(sources.engine.save_image(image_id), source=f"engine:{name}")
    config = parse_config(data, source=f"engine:{name}: config")
    require_platform(config, wanted, source=f"engine:{name}")
    return ResolvedImage(
        reference=f"engine:{image_id}",
        transport=Transport.ENGINE,
        platform=str(config.platform),
        config=config,
        config_digest=oci_digest(data),
        plan=EnginePlan(image_id=image_id),
    )
