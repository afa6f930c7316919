"""One sealed clip as a tar: the same members give the same bytes. Pure.

A clip's archive is a ustar file with two members, `keypoints/<id>.npy` and
`annotations/<id>.json`, padded with zero blocks to a multiple of 64 KiB, so that the length of
its ciphertext says little about the clip. `tar` skips the padding.
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


def pack_clip(files: Iterable[InputFile]) -> bytes:
    """Return the archive of one clip: its files in the given order, then the padding."""
    body = b"".join(part for file in files for part in _member(file))
    length = len(body) + len(_END)
    return b"".join((body, _END, bytes(-length % PADDING_BYTES)))


def unpack_clip(archive: bytes, *, clip_id: str, source: str) -> tuple[InputFile, InputFile]:
    """Return the keypoints and the annotation of the clip's archive.

    Raises:
        PlatformFault: unless exactly these two members are in it, in this order; anybody can
            encrypt to a public recipient, so an archive is not trusted because it opens.

    """
    wanted = (keypoints_name(clip_id), annotation_name(clip_id))
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            members = [(info, tar.extractfile(info)) for info in tar]
    except tarfile.TarError as error:
        raise PlatformFault(f"{source}: opens to something that is not a tar") from error
    names = [info.name for info, _ in members]
    if names != list(wanted) or not all(info.isreg() for info, _ in members):
        found = escape_untrusted(", ".join(names[:4]), 120)
        raise PlatformFault(f"{source}: holds {found or 'nothing'}, not {wanted[0]}, {wanted[1]}")
    keypoints, annotation = (file.read() if file else b"" for _, file in members)
    return InputFile(wanted[0], keypoints), InputFile(wanted[1], annotation)


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
