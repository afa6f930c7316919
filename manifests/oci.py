"""Read an image's documents: index, manifest and config (OCI image-spec 1.1, Docker schema 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from manifests.digests import OciDigest, oci_digest
from manifests.encoding import Json, parse_json_object
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.text import escape_untrusted

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar"

INDEX_TYPES = frozenset({OCI_INDEX, DOCKER_INDEX})
MANIFEST_TYPES = frozenset({OCI_MANIFEST, DOCKER_MANIFEST})
CONFIG_TYPES = frozenset({OCI_CONFIG, DOCKER_CONFIG})
LAYER_TYPES = frozenset(
    {OCI_LAYER, f"{OCI_LAYER}+gzip", f"{OCI_LAYER}+zstd", DOCKER_LAYER, f"{DOCKER_LAYER}.gzip"}
)

LARGEST_MANIFEST_BYTES = 4 << 20
"""Registries must take 4 MiB (distribution-spec 1.1) and need not take more."""
LARGEST_CONFIG_BYTES = 8 << 20
MOST_LAYERS = 125
"""The overlay2 store's own bound."""
MOST_CHILDREN = 1000
DEEPEST_INDEX = 3
"""An index may point to another; at most this many are followed."""

_ATTESTATION = "vnd.docker.reference.type"
_Size = Annotated[int, Field(ge=0, le=1 << 50)]
_ShortText = Annotated[str, Field(max_length=255)]


def _none_is_empty(value: object) -> object:
    return () if value is None else value


class WrongPlatform(RefusedByPolicy):
    """The image is made for another platform than the one it should run on."""


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Platform(_Document):
    """What a child of an index runs on."""

    os: _ShortText
    architecture: _ShortText
    variant: _ShortText = ""

    def __str__(self) -> str:
        """Return `os/architecture[/variant]`."""
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


class Descriptor(_Document):
    """Points to content by digest and size."""

    media_type: str = Field(alias="mediaType", max_length=255)
    digest: OciDigest
    size: _Size
    platform: Platform | None = None
    annotations: Mapping[str, str] = Field(default_factory=dict)

    @property
    def is_attestation(self) -> bool:
        """Whether this is a statement about an image that builders put beside it in an index."""
        nowhere = self.platform is not None and str(self.platform) == "unknown/unknown"
        return nowhere or _ATTESTATION in self.annotations


class ImageIndex(_Document):
    """A list of images for several platforms."""

    manifests: Annotated[tuple[Descriptor, ...], Field(max_length=MOST_CHILDREN)]

    def images(self) -> tuple[Descriptor, ...]:
        """Return the distinct children that are images or indexes, attestations left out."""
        known = INDEX_TYPES | MANIFEST_TYPES
        usable = [
            child
            for child in self.manifests
            if child.media_type in known and not child.is_attestation
        ]
        return tuple({child.digest: child for child in reversed(usable)}.values())[::-1]


class ImageManifest(_Document):
    """One image: its config and its layers as they are stored."""

    config: Descriptor
    layers: Annotated[
        tuple[Descriptor, ...], BeforeValidator(_none_is_empty), Field(max_length=MOST_LAYERS)
    ] = ()
    """Engine 25.0 wrote null here; such a manifest has no layers of its own."""


class _RootFilesystem(_Document):
    type: str = "layers"
    diff_ids: Annotated[
        tuple[OciDigest, ...], BeforeValidator(_none_is_empty), Field(max_length=MOST_LAYERS)
    ] = ()


class ImageConfig(_Document):
    """The config document, whose digest names the image's content."""

    os: _ShortText
    architecture: _ShortText
    variant: _ShortText = ""
    rootfs: _RootFilesystem
    config: Mapping[str, Any] | None = None

    @property
    def diff_ids(self) -> tuple[OciDigest, ...]:
        """Digests of the uncompressed layers, the lowest first."""
        return self.rootfs.diff_ids

    @property
    def platform(self) -> Platform:
        """What the image runs on."""
        return Platform(os=self.os, architecture=self.architecture, variant=self.variant)


def _model_error(error: ValidationError, source: str) -> MalformedDocument:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return MalformedDocument(f"{source}: {escape_untrusted(place)}: {first['msg']}")


def _bounded_object(data: bytes, source: str, limit: int) -> dict[str, Json]:
    if len(data) > limit:
        raise MalformedDocument(f"{source}: {len(data)} bytes, at most {limit} are read")
    return parse_json_object(data, source=source)


def _kind(document: dict[str, Json], media_type: str, source: str) -> str:
    """Decide what a document is; one that could be both is refused (CVE-2021-41190)."""
    if "manifests" in document and ("layers" in document or "config" in document):
        raise MalformedDocument(f"{source}: is an index and a manifest at once")
    stated = document.get("mediaType", media_type)
    if document.get("schemaVersion") != 2:
        raise MalformedDocument(f"{source}: not schema version 2; push the image anew")
    if stated in INDEX_TYPES and "manifests" in document:
        return "index"
    if stated in MANIFEST_TYPES and "config" in document:
        return "manifest"
    if not stated and ("manifests" in document or "config" in document):
        return "index" if "manifests" in document else "manifest"
    raise MalformedDocument(
        f"{source}: {escape_untrusted(str(stated))} is neither an image index nor an image manifest"
    )


def parse_image_document(
    data: bytes, *, source: str, media_type: str = ""
) -> ImageIndex | ImageManifest:
    """Parse an index or a manifest; `media_type` is what the carrier said, if anything.

    Raises:
        MalformedDocument: for other documents, foreign layers and things that are no image.

    """
    document = _bounded_object(data, source, LARGEST_MANIFEST_BYTES)
    try:
        if _kind(document, media_type, source) == "index":
            return ImageIndex.model_validate(document)
        manifest = ImageManifest.model_validate(document)
    except ValidationError as error:
        raise _model_error(error, source) from error
    _require_types(manifest, source)
    return manifest


def _require_types(manifest: ImageManifest, source: str) -> None:
    if manifest.config.media_type not in CONFIG_TYPES:
        kind = escape_untrusted(manifest.config.media_type)
        raise MalformedDocument(f"{source}: its config is {kind}, so it is no container image")
    for layer in manifest.layers:
        if layer.media_type not in LAYER_TYPES:
            kind = escape_untrusted(layer.media_type)
            raise MalformedDocument(
                f"{source}: a layer is {kind}; tar, tar+gzip and tar+zstd are taken"
            )


def parse_config(data: bytes, *, source: str, digest: str | None = None) -> ImageConfig:
    """Parse a config document, whose bytes must have `digest` where one is given.

    Raises:
        MalformedDocument: for another digest, another form, or no layers.

    """
    document = _bounded_object(data, source, LARGEST_CONFIG_BYTES)
    if digest is not None and oci_digest(data) != digest:
        raise MalformedDocument(f"{source}: its bytes are {oci_digest(data)}, expected {digest}")
    try:
        config = ImageConfig.model_validate(document)
    except ValidationError as error:
        raise _model_error(error, source) from error
    if config.rootfs.type != "layers" or not config.diff_ids:
        raise MalformedDocument(f"{source}: lists no layers in rootfs.diff_ids")
    return config


def parse_platform(text: str) -> Platform:
    """Parse `os/architecture[/variant]`. Raises MalformedDocument."""
    parts = text.split("/")
    if len(parts) not in {2, 3} or not all(parts):
        raise MalformedDocument(
            f'the platform "{escape_untrusted(text)}" is not os/architecture[/variant]'
        )
    return Platform(os=parts[0], architecture=parts[1], variant=parts[2] if parts[2:] else "")


def _runnable_variants(wanted: Platform) -> tuple[str, ...]:
    """Return the variants that `wanted` can run, the best first; the empty one is the default.

    amd64 means v1, arm64 means v8, arm means v7; an arm processor also runs what is older. A higher
    amd64 variant asks for processor features that nobody has looked for, so it must be asked for.
    """
    default = {"amd64": "v1", "arm64": "v8", "arm": "v7"}.get(wanted.architecture, "")
    asked = wanted.variant or default
    ladder = {"arm": ("v8", "v7", "v6", "v5"), "amd64": ("v4", "v3", "v2", "v1")}
    steps = ladder.get(wanted.architecture, (asked,))
    below = steps[steps.index(asked) :] if asked in steps else (asked,)
    return tuple(part for step in below for part in ((step, "") if step == default else (step,)))


def runs_on(image: Platform, wanted: Platform) -> bool:
    """Tell whether an image made for `image` runs on `wanted`."""
    return (image.os, image.architecture) == (
        wanted.os,
        wanted.architecture,
    ) and image.variant in _runnable_variants(wanted)


def choose_child(index: ImageIndex, wanted: Platform, *, source: str) -> Descriptor:
    """Return the child of `index` that fits `wanted` best; attestations are no images.

    A single child without a platform is taken; its config tells later what it runs on.

    Raises:
        WrongPlatform: when no child fits; the message lists the platforms there are.
        MalformedDocument: when there is no image, or several that say no platform.

    """
    images = index.images()
    if not images:
        raise MalformedDocument(f"{source}: the index holds no image")
    if len(images) == 1 and images[0].platform is None:
        return images[0]
    order = _runnable_variants(wanted)
    fitting = [child for child in images if child.platform and runs_on(child.platform, wanted)]
    if fitting:
        return min(fitting, key=lambda child: order.index(child.platform.variant))  # type: ignore[union-attr]  # filtered above
    offered = sorted({str(child.platform) for child in images if child.platform})
    if not offered:
        raise MalformedDocument(f"{source}: {len(images)} images and no platform to choose by")
    raise WrongPlatform(
        f"{source}: no image for {wanted}; there are {escape_untrusted(', '.join(offered), 200)}"
    )
