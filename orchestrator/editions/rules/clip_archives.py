"""One sealed clip as a tar: the same members give the same bytes. Pure.

A clip's archive is a POSIX tar with two members, `keypoints/<id>.npy` and
`annotations/<id>.json`, padded to a multiple of 64 KiB, so that the length of its ciphertext says
little about the clip. The padding is a pax `comment`, which POSIX tells every tar to ignore: zero
blocks behind the end would make `age -d … | tar x` fail, as tar stops reading there.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from manifests.errors import PlatformFault
from manifests.names import ENTRANT_ID
from manifests.text import escape_untrusted

PADDING_BYTES = 64 * 1024
_BLOCK = tarfile.BLOCKSIZE
_PAX_NAME = "././@PaxHeader"
_END = bytes(2 * _BLOCK)


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of `/input`: its name below it, and its bytes."""

    name: str
    data: bytes


def keypoints_name(clip_id: str) -> str:
    """Return a clip's keypoint file in `/input` and in the archive."""
    return f"keypoints/{clip_id}.npy"


def annotation_name(clip_id: str) -> str:
    """Return a clip's annotation file in `/input` and in the archive."""
    return f"annotations/{clip_id}.json"


def _header(name: str, *, size_bytes: int, mode: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type = size_bytes, mode, kind
    info.mtime, info.uid, info.gid = 0, ENTRANT_ID, ENTRANT_ID
    return info.tobuf(format=tarfile.USTAR_FORMAT)


def _member(file: InputFile) -> tuple[bytes, bytes, bytes]:
    header = _header(file.name, size_bytes=len(file.data), mode=0o444)
    return header, file.data, bytes(-len(file.data) % _BLOCK)


def pack_clip(files: Iterable[InputFile]) -> tuple[bytes, ...]:
    """Return the archive of one clip in parts: the padding, then its files in the given order."""
    body = [part for file in files for part in _member(file)]
    length = sum(map(len, body)) + len(_END)
    least = 2 * _BLOCK + length  # a comment takes a header and a block
    return (*_comment(_BLOCK + -least % PADDING_BYTES), *body, _END)


def _comment(size_bytes: int) -> tuple[bytes, bytes]:
    """Return a pax header that says nothing in `size_bytes`, a multiple of the block."""
    start = f"{size_bytes} comment=".encode("ascii")
    header = _header(_PAX_NAME, size_bytes=size_bytes, mode=0o444, kind=tarfile.XHDTYPE)
    return header, start + b" " * (size_bytes - len(start) - 1) + b"\n"


def unpack_clip(archive: bytes, *, clip_id: str, source: str) -> tuple[InputFile, InputFile]:
    """Return the keypoints and the annotation of the clip's archive.

    Raises:
        PlatformFault: unless exactly these two members are in it, in this order; anybody can
            encrypt to a public recipient, so an archive is not trusted because it opens.

    """
    wanted = (keypoints_name(clip_id), annotation_name(clip_id))
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            members = tar.getmembers()
            _check_members(members, wanted, source)
            keypoints, annotation = (_content(tar, info) for info in members)
    except tarfile.TarError as error:
        raise PlatformFault(f"{source}: opens to something that is not a tar") from error
    return InputFile(wanted[0], keypoints), InputFile(wanted[1], annotation)


def _check_members(members: list[tarfile.TarInfo], wanted: tuple[str, str], source: str) -> None:
    names = [info.name for info in members]
    plain = all(info.type == tarfile.REGTYPE and not info.issparse() for info in members)
    if names != list(wanted) or not plain:
        found = escape_untrusted(", ".join(names[:4]), 120)
        raise PlatformFault(
            f"{source}: holds {found or 'nothing'}, not the plain files {wanted[0]}, {wanted[1]}"
        )


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(info)
    return file.read() if file is not None else b""


def stream_input(files: Iterable[InputFile]) -> Iterator[bytes]:
    """Yield the tar that fills `/input`: read-only files in their two folders, in any order."""
    for folder in ("keypoints", "annotations"):
        yield _header(folder, size_bytes=0, mode=0o555, kind=tarfile.DIRTYPE)
    for file in files:
        yield from _member(file)
    yield _END


def input_bytes(sizes: Mapping[str, int], *, page_bytes: int = 4096) -> int:
    """Return the room that files of these sizes need on a tmpfs, folders and slack included."""
    pages = sum(-(-size // page_bytes) + 1 for size in sizes.values())
    return (pages + 64) * page_bytes
