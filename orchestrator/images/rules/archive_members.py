"""List the members of a hostile tar archive without unpacking anything.

Only what image archives need is taken: regular files, directories, and symbolic links that end at
a regular file of the same archive. Names and extended headers are bounded before they are read.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

MOST_MEMBERS = 10_000
LONGEST_NAME = 255
LARGEST_EXTENSION_BYTES = 64 << 10
_CHUNK_BYTES = 1 << 20

_REGULAR = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE})
_LONG_NAME = frozenset({tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK})
_PAX = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE})
_NAME_PART = re.compile(r"[A-Za-z0-9_.:@+=,-]+", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,18}", re.ASCII)


class ArchiveSource(Protocol):
    """An open archive whose bytes can be read at any offset."""

    @property
    def name(self) -> str:
        """The file's name, for messages and for the record."""

    @property
    def size_bytes(self) -> int:
        """The file's size."""

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        """Return at most `size_bytes` from `offset`; fewer only at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMember:
    """A regular file of the archive: its bytes lie at `offset`."""

    name: str
    offset: int
    size_bytes: int

    def chunks(self, source: ArchiveSource) -> Iterator[bytes]:
        """Yield the member's bytes. Raises MalformedDocument when the file became shorter."""
        done = 0
        while done < self.size_bytes:
            chunk = source.read_at(self.offset + done, min(_CHUNK_BYTES, self.size_bytes - done))
            if not chunk:
                raise MalformedDocument(f"{source.name}: ends inside {self.name}")
            done += len(chunk)
            yield chunk

    def read(self, source: ArchiveSource, limit_bytes: int) -> bytes:
        """Return all bytes. Raises MalformedDocument above `limit_bytes`."""
        if self.size_bytes > limit_bytes:
            raise MalformedDocument(
                f"{source.name}: {self.name} has {self.size_bytes} bytes, at most {limit_bytes}"
            )
        return b"".join(self.chunks(source))


@dataclass(slots=True)
class _Extension:
    """What extended headers said about the member that follows."""

    path: str | None = None
    link: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    name: str
    target: str


def _refuse(source: ArchiveSource, fact: str) -> MalformedDocument:
    return MalformedDocument(f"{source.name}: {fact}")


def _safe_name(source: ArchiveSource, text: str) -> str:
    """Return the name without `./` and a final slash; "" for the archive's own root."""
    parts = [part for part in text.removesuffix("/").split("/") if part not in {".", ""}]
    safe = all(part != ".." and _NAME_PART.fullmatch(part) for part in parts)
    if text.startswith("/") or len(text) > LONGEST_NAME or not safe:
        raise _refuse(source, f'the member name "{escape_untrusted(text)}" is not taken')
    return "/".join(parts)


def _link_target(source: ArchiveSource, name: str, target: str) -> str:
    """Resolve a relative link as a path of the archive, as old `docker save` wrote for layers."""
    if target.startswith("/") or len(target) > LONGEST_NAME:
        raise _refuse(source, f'{name} links to "{escape_untrusted(target)}", out of the archive')
    path = name.split("/")[:-1]
    for part in target.split("/"):
        if part == ".." and not path:
            raise _refuse(
                source, f'{name} links to "{escape_untrusted(target)}", out of the archive'
            )
        if part == "..":
            path.pop()
        elif part not in {"", "."}:
            path.append(part)
    return _safe_name(source, "/".join(path))


def _pax_records(source: ArchiveSource, data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the `length key=value` records of an extended header (POSIX pax)."""
    while data.strip(b"\0"):
        digits, space, _ = data.partition(b" ")
        length = int(digits) if space and digits.isdigit() and len(digits) < 8 else 0
        record, data = data[:length], data[length:]
        if len(record) != length or not record.endswith(b"\n"):
            raise _refuse(source, "an extended header is malformed")
        key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if not equals:
            raise _refuse(source, "an extended header is malformed")
        yield key.decode("utf-8", "backslashreplace"), value.decode("utf-8", "backslashreplace")


def _apply_pax(source: ArchiveSource, extension: _Extension, data: bytes, *, for_all: bool) -> None:
    for key, value in _pax_records(source, data):
        if key.startswith("GNU.sparse"):
            raise _refuse(source, "holds a sparse member; write it without")
        if key not in {"path", "linkpath", "size"}:
            continue
        if for_all or (key == "size" and not _DECIMAL.fullmatch(value)):
            raise _refuse(source, f"an extended header sets {key} in a way that is not taken")
        if key == "path":
            extension.path = value
        elif key == "linkpath":
            extension.link = value
        else:
            extension.size_bytes = int(value)


def _extend(
    source: ArchiveSource, extension: _Extension, header: tarfile.TarInfo, data: bytes
) -> None:
    text = data.rstrip(b"\0").decode("utf-8", "backslashreplace")
    if header.type == tarfile.GNUTYPE_LONGNAME:
        extension.path = text
    elif header.type == tarfile.GNUTYPE_LONGLINK:
        extension.link = text
    else:
        for_all = header.type == tarfile.XGLTYPE
        _apply_pax(source, extension, data, for_all=for_all)


def _header_at(source: ArchiveSource, offset: int) -> tarfile.TarInfo | None:
    """Return the header at `offset`, or None at the two zero blocks that end an archive."""
    block = source.read_at(offset, tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE:
        raise _refuse(source, f"is cut off at byte {offset}; copy it again")
    if not any(block):
        following = source.read_at(offset + tarfile.BLOCKSIZE, tarfile.BLOCKSIZE)
        if any(following):
            raise _refuse(source, f"has a lone zero block at byte {offset}")
        return None
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")
    except (tarfile.HeaderError, ValueError) as error:
        raise _refuse(source, f"no tar header at byte {offset}; is it an image archive?") from error
    if header.size < 0 or offset + tarfile.BLOCKSIZE + header.size > source.size_bytes:
        raise _refuse(source, f"is cut off in the member at byte {offset}; copy it again")
    return header


def _raw_members(
    source: ArchiveSource,
) -> Iterator[tuple[tarfile.TarInfo, _Extension, int]]:
    offset, headers, extension = 0, 0, _Extension()
    while (header := _header_at(source, offset)) is not None:
        headers += 1
        if headers > 3 * MOST_MEMBERS:
            raise _refuse(source, f"has more than {MOST_MEMBERS} members")
        start, size = offset + tarfile.BLOCKSIZE, header.size
        if header.type in _LONG_NAME | _PAX:
            if size > LARGEST_EXTENSION_BYTES:
                raise _refuse(
                    source,
                    f"an extended header has {size} bytes, at most {LARGEST_EXTENSION_BYTES}",
                )
            _extend(source, extension, header, source.read_at(start, size))
        else:
            if extension.size_bytes is not None:
                size = extension.size_bytes
            if start + size > source.size_bytes:
                raise _refuse(source, f"is cut off in the member at byte {offset}; copy it again")
            header.size = size
            yield header, extension, start
            extension = _Extension()
        offset = start + size + -size % tarfile.BLOCKSIZE


def _classify(
    source: ArchiveSource, header: tarfile.TarInfo, extension: _Extension, start: int
) -> ArchiveMember | _Link | None:
    name = _safe_name(source, extension.path if extension.path is not None else header.name)
    if header.type == tarfile.DIRTYPE:
        if header.size:
            raise _refuse(source, f"the folder {name} has content")
        return None
    if not name:
        raise _refuse(source, "a member has no name")
    if header.type in _REGULAR:
        return ArchiveMember(name=name, offset=start, size_bytes=header.size)
    if header.type == tarfile.SYMTYPE and header.size == 0:
        target = extension.link if extension.link is not None else header.linkname
        return _Link(name=name, target=_link_target(source, name, target))
    raise _refuse(
        source, f"{name} is a hard link, device, pipe or sparse file; image archives have none"
    )


def list_members(source: ArchiveSource) -> dict[str, ArchiveMember]:
    """Return the archive's regular files by name; a link stands for the file it leads to.

    Raises:
        MalformedDocument: for anything that an image archive has no need of: a name twice, names
            or links that leave the archive, links to links, devices, sparse members, headers
            beyond their bounds, more than 10 000 members, an end that is missing.

    """
    members: dict[str, ArchiveMember] = {}
    links: dict[str, str] = {}
    for header, extension, start in _raw_members(source):
        member = _classify(source, header, extension, start)
        if member is None:
            continue
        if member.name in members or member.name in links:
            raise _refuse(source, f"the member {member.name} stands twice")
        if len(members) + len(links) >= MOST_MEMBERS:
            raise _refuse(source, f"has more than {MOST_MEMBERS} members")
        if isinstance(member, _Link):
            links[member.name] = member.target
        else:
            members[member.name] = member
    return members | _resolve_links(source, members, links)


def _resolve_links(
    source: ArchiveSource, members: dict[str, ArchiveMember], links: dict[str, str]
) -> dict[str, ArchiveMember]:
    resolved: dict[str, ArchiveMember] = {}
    for name, target in links.items():
        if target not in members:
            raise _refuse(source, f"{name} links to {target}, which is no file of the archive")
        resolved[name] = members[target]
    return resolved
