"""What identifies an image: the digests of an entrant's image, as recorded (sandbox notes, 2.3)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from manifests.digests import OciDigest, Sha256Hex


class Transport(StrEnum):
    """How an image came in."""

    REGISTRY = "registry"
    DOCKER_ARCHIVE = "docker-archive"
    OCI_ARCHIVE = "oci-archive"
    ENGINE = "engine"


class ImageIdentity(BaseModel):
    """All identities of one image. Two images are the same when config digest and diff_ids are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reference: str
    """What the organizer asked for: `repo@sha256:…`, or the archive's file name."""
    transport: Transport
    archive_sha256: Sha256Hex | None = None
    index_digest: OciDigest | None = None
    manifest_digest: OciDigest | None = None
    config_digest: OciDigest
    diff_ids: tuple[OciDigest, ...]
    platform: str
    """`os/architecture[/variant]`, as `linux/amd64`."""
    size_bytes: int
    """Uncompressed size as the engine reports it, or the layers' sum."""
    engine_image_id: str
    """The id under which the engine holds it: every container is created from this."""
    store: str = "unknown"
    """The engine's image store (its storage driver), as `overlay2`."""

    def same_content_as(self, other: ImageIdentity) -> bool:
        """Tell whether both name the same image content."""
        return (self.config_digest, self.diff_ids) == (other.config_digest, other.diff_ids)


class ImageRemoval(BaseModel):
    """What was seen when an image was removed: absence is attested, not proven."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gone: bool
    """No image has the id, no listing shows it, no container was made from it."""
    images_before: int
    images_after: int
    detail: str = ""
    """What is still there, when it is not gone."""
