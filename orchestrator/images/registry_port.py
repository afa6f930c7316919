"""A container registry, as image intake needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from manifests.references import ImageReference


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryDocument:
    """An index or manifest as the registry sent it; `digest` is that of `data`."""

    data: bytes
    digest: str
    media_type: str


class Registry(Protocol):
    """Reads documents; the engine pulls the layers. Every method lets out only PisteErrors."""

    def fetch_manifest(self, reference: ImageReference) -> RegistryDocument:
        """Return the index or manifest that a digest or tag names.

        With a digest the bytes are checked against it.
        """

    def fetch_config(self, reference: ImageReference, digest: str, size_bytes: int) -> bytes:
        """Return the config blob with this digest, checked; `size_bytes` bounds it."""
