"""Read the config document out of an engine's own `save` stream: the same on every store."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

from manifests.encoding import parse_json
from manifests.errors import PlatformFault
from manifests.oci import LARGEST_CONFIG_BYTES

_MOST_DOCUMENTS = 1000
_MOST_DOCUMENT_BYTES = 64 << 20


class _ChunkReader(io.RawIOBase):
    """Makes a file to read from of an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # a buffer is given
        while not self._left:
            following = next(self._chunks, None)
            if following is None:
                return 0
            self._left = following
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _small_members(chunks: Iterator[bytes], source: str) -> dict[str, bytes]:
    """Return the members that can be documents; layers are read past."""
    documents: dict[str, bytes] = {}
    total = 0
    reader = io.BufferedReader(_ChunkReader(chunks), buffer_size=1 << 20)
    with tarfile.open(mode="r|", fileobj=reader) as archive:
        for member in archive:
            if not member.isreg() or member.size > LARGEST_CONFIG_BYTES:
                continue
            file = archive.extractfile(member)
            data = file.read() if file is not None else b""
            if data.lstrip()[:1] not in {b"{", b"["}:
                continue
            total += len(data)
            if len(documents) >= _MOST_DOCUMENTS or total > _MOST_DOCUMENT_BYTES:
                raise PlatformFault(f"{source}: the engine saved more documents than expected")
            documents[member.name] = data
    return documents


def saved_config(chunks: Iterator[bytes], *, source: str) -> bytes:
    """Return the config document of the one image that `chunks`, a `docker save`, holds.

    Raises:
        PlatformFault: when the engine's stream does not hold exactly one image.

    """
    try:
        documents = _small_members(chunks, source)
    except (tarfile.TarError, EOFError) as error:
        raise PlatformFault(
            f"{source}: the engine's saved image cannot be read: {error}"
        ) from error
    manifest = parse_json(documents.get("manifest.json", b"[]"), source=f"{source}: manifest.json")
    images = manifest if isinstance(manifest, list) else []
    image = images[0] if len(images) == 1 else None
    name = image.get("Config") if isinstance(image, dict) else None
    if not isinstance(name, str) or name not in documents:
        raise PlatformFault(f"{source}: the engine saved no single image with a config")
    return documents[name]
