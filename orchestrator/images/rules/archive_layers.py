"""Check a stored layer: its own digest, and the digest of its uncompressed bytes, with bounds."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from orchestrator.support.tar.tar_stream import TarError, TarKind, TarStream, drain

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


class _BoundedChunks(_HashedChunks):
    """Counts too, and stops above a bound."""

    def __init__(self, chunks: Iterable[bytes], *, limit_bytes: int, place: str) -> None:
        super().__init__(chunks)
        self.total_bytes = 0
        self._limit_bytes = limit_bytes
        self._place = place

    def __iter__(self) -> Iterator[bytes]:
        for chunk in super().__iter__():
            self.total_bytes += len(chunk)
            if self.total_bytes > self._limit_bytes:
                raise MalformedDocument(
                    f"{self._place}: more than {self._limit_bytes} bytes uncompressed"
                )
            yield chunk


def _read_as_layer(chunks: Iterator[bytes], place: str) -> None:
    """Read a layer to its end; a sparse member unpacks to more than the layer's own size."""
    try:
        for member in TarStream(chunks).members():
            if member.kind is TarKind.SPARSE:
                name = escape_untrusted(member.name.decode("utf-8", "backslashreplace"))
                raise MalformedDocument(
                    f"{place}: holds the sparse file {name}; write it in full or leave it out"
                )
    except TarError as error:
        raise MalformedDocument(f"{place}: not a layer: {error}") from error
    drain(chunks)


def digest_layer(
    chunks: Iterable[bytes], *, head: bytes, limit_bytes: int, place: str
) -> LayerDigests:
    """Read a layer once and return its digests; `head` is the layer's first bytes.

    Raises:
        MalformedDocument: above `limit_bytes` uncompressed (a decompression bomb is cut there), for
            a broken gzip stream, for other compressions, and for a tar that is broken or holds
            sparse files.

    """
    _refuse_compression(head, place)
    stored = _HashedChunks(chunks)
    is_gzip = head.startswith(_GZIP)
    plain = _BoundedChunks(
        _inflate(stored, place=place) if is_gzip else stored, limit_bytes=limit_bytes, place=place
    )
    _read_as_layer(iter(plain), place)
    return LayerDigests(
        stored=f"sha256:{stored.digest.hexdigest()}",
        diff_id=f"sha256:{plain.digest.hexdigest()}",
        uncompressed_bytes=plain.total_bytes,
    )
