"""Check a stored layer: its own digest, and the digest of its uncompressed bytes, with bounds."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from manifests.errors import MalformedDocument

_GZIP = b"\x1f\x8b"
_NOT_TAKEN = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
}
_PIECE_BYTES = 1 << 20
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerDigests:
    """What a layer's bytes are."""

    stored: str
    """Digest of the bytes as they are stored, perhaps compressed."""
    diff_id: str
    """Digest of the uncompressed bytes."""
    uncompressed_bytes: int


def _inflate(chunks: Iterable[bytes], *, place: str) -> Iterator[bytes]:
    """Yield the bytes of one or more gzip members (RFC 1952), at most a piece at a time."""
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    for chunk in chunks:
        waiting = chunk
        while waiting:
            if inflater.eof:
                inflater = zlib.decompressobj(_GZIP_WINDOW)
            try:
                yield inflater.decompress(waiting, _PIECE_BYTES)
            except zlib.error as error:
                raise MalformedDocument(f"{place}: its gzip stream is broken") from error
            waiting = inflater.unconsumed_tail or inflater.unused_data
        while not inflater.eof and (rest := _drain(inflater, place)):
            yield rest
    if not inflater.eof:
        raise MalformedDocument(f"{place}: its gzip stream is cut off")


def _drain(inflater: zlib._Decompress, place: str) -> bytes:
    try:
        return inflater.decompress(b"", _PIECE_BYTES)
    except zlib.error as error:
        raise MalformedDocument(f"{place}: its gzip stream is broken") from error


class _HashedChunks:
    """Passes chunks on and hashes them on the way."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.digest.update(chunk)
            yield chunk


def _refuse_compression(head: bytes, place: str) -> None:
    for magic, name in _NOT_TAKEN.items():
        if head.startswith(magic):
            raise MalformedDocument(
                f"{place}: compressed with {name}; archives take plain or gzip layers, so write "
                "the archive with `docker save`, or compress it with gzip"
            )


def digest_layer(
    chunks: Iterable[bytes], *, head: bytes, limit_bytes: int, place: str
) -> LayerDigests:
    """Read a layer once and return its digests; `head` is the layer's first bytes.

    Raises:
        MalformedDocument: above `limit_bytes` uncompressed (a decompression bomb is cut there), for
            a broken gzip stream and for other compressions.

    """
    _refuse_compression(head, place)
    stored = _HashedChunks(chunks)
    is_gzip = head.startswith(_GZIP)
    plain = _inflate(stored, place=place) if is_gzip else iter(stored)
    uncompressed, total = hashlib.sha256(), 0
    for piece in plain:
        total += len(piece)
        if total > limit_bytes:
            raise MalformedDocument(f"{place}: more than {limit_bytes} bytes uncompressed")
        uncompressed.update(piece)
    return LayerDigests(
        stored=f"sha256:{stored.digest.hexdigest()}",
        diff_id=f"sha256:{uncompressed.hexdigest()}",
        uncompressed_bytes=total,
    )
