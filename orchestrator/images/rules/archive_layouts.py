"""Find the image in an archive: docker-archive, OCI image layout, or both in one.

`docker save` wrote three generations: layers in folders named by old ids, some of them links to one
another; the same without links; and, since engine 25, an OCI layout with a manifest.json beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from manifests.digests import oci_digest
from manifests.encoding import Json, parse_json, parse_json_object
from manifests.errors import MalformedDocument
from manifests.images import Transport
from manifests.oci import (
    DEEPEST_INDEX,
    LARGEST_MANIFEST_BYTES,
    MOST_LAYERS,
    Descriptor,
    ImageIndex,
    ImageManifest,
    Platform,
    choose_child,
    parse_image_document,
)
from manifests.text import escape_untrusted
from orchestrator.images.rules.archive_members import ArchiveMember, ArchiveSource, list_members

_DIGEST_IN_NAME = re.compile(r"(?:.*/)?(?:sha256:)?([0-9a-f]{64})(?:\.json|\.tar)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundImage:
    """Where the parts of the image lie in the archive, before layers are read."""

    transport: Transport
    config: ArchiveMember
    config_digest: str | None
    layers: tuple[ArchiveMember, ...]
    stored_digests: tuple[str | None, ...]
    manifest_digest: str | None = None
    index_digest: str | None = None


class ArchiveContents:
    """The archive's members with lookups that name what is missing."""

    def __init__(self, source: ArchiveSource) -> None:
        self.source = source
        self.members = list_members(source)

    def member(self, name: str) -> ArchiveMember:
        """Return the member that a document names. Raises MalformedDocument."""
        found = self.members.get(name.removeprefix("./"))
        if found is None:
            raise MalformedDocument(
                f"{self.source.name}: {escape_untrusted(name)} is named but not in the archive"
            )
        return found

    def blob(self, digest: str) -> ArchiveMember:
        """Return the blob with this digest. Raises MalformedDocument."""
        return self.member(f"blobs/sha256/{digest.removeprefix('sha256:')}")

    def document(self, descriptor: Descriptor) -> ImageIndex | ImageManifest:
        """Return the index or manifest, its bytes checked. Raises MalformedDocument."""
        place = f"{self.source.name}: {descriptor.digest}"
        data = self.blob(descriptor.digest).read(self.source, LARGEST_MANIFEST_BYTES)
        if oci_digest(data) != descriptor.digest:
            raise MalformedDocument(f"{place}: its bytes are {oci_digest(data)}")
        return parse_image_document(data, source=place, media_type=descriptor.media_type)


def _texts(value: Json) -> list[str] | None:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return [str(each) for each in value]
    return None


def _docker_manifest(contents: ArchiveContents) -> tuple[str, list[str]]:
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


def _find_in_docker_archive(contents: ArchiveContents) -> FoundImage:
    config, layers = _docker_manifest(contents)
    stored = [_digest_in_name(name) if name.startswith("blobs/") else None for name in layers]
    return FoundImage(
        transport=Transport.DOCKER_ARCHIVE,
        config=contents.member(config),
        config_digest=_digest_in_name(config),
        layers=tuple(contents.member(name) for name in layers),
        stored_digests=tuple(stored),
    )


def _top_index(contents: ArchiveContents) -> ImageIndex:
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


def _find_in_oci_layout(contents: ArchiveContents, wanted: Platform) -> FoundImage:
    index, index_digest = _top_index(contents), None
    place = f"{contents.source.name}: index.json"
    for _ in range(DEEPEST_INDEX):
        images = index.images()
        child = images[0] if len(images) == 1 else choose_child(index, wanted, source=place)
        document = contents.document(child)
        if isinstance(document, ImageManifest):
            return FoundImage(
                transport=Transport.OCI_ARCHIVE,
                config=contents.blob(document.config.digest),
                config_digest=document.config.digest,
                layers=tuple(contents.blob(layer.digest) for layer in document.layers),
                stored_digests=tuple(layer.digest for layer in document.layers),
                manifest_digest=child.digest,
                index_digest=index_digest,
            )
        index, index_digest = document, index_digest or child.digest
        place = f"{contents.source.name}: {child.digest}"
    raise MalformedDocument(f"{place}: more than {DEEPEST_INDEX} indexes inside one another")


def find_image(contents: ArchiveContents, wanted: Platform) -> FoundImage:
    """Find the one image; an archive in both layouts must mean the same image in both.

    Raises:
        MalformedDocument: when there is none, or more than one, or parts of it are missing.
        RefusedByPolicy: when an index offers no image for `wanted`.

    """
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
