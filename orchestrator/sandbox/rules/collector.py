"""Take `/output` out of a tar stream under hard limits; nothing is ever unpacked to a path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from manifests.outcomes import Diagnostic
from manifests.text import escape_untrusted
from orchestrator.support.tar.tar_stream import TarError, TarKind, TarMember, TarStream

_NAME: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_POSE_NAME: Final = re.compile(rb"pose/[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.npy")
_DOTS: Final = frozenset({b".", b".."})


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRules:
    """How much may lie in `/output`, and whether a `pose` folder may."""

    total_bytes: int
    file_bytes: int
    files: int
    allow_pose: bool = False


@dataclass(frozen=True, slots=True)
class CollectedFiles:
    """The files by name; modes, times and owners are dropped."""

    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class OutputViolation:
    """The first thing in `/output` that breaks the rules; `detail` is escaped and for people."""

    diagnostic: Diagnostic
    detail: str


class _Broken(Exception):  # noqa: N818 - carries the violation out of the walk
    def __init__(self, diagnostic: Diagnostic, detail: str) -> None:
        super().__init__(detail)
        self.violation = OutputViolation(diagnostic, detail)


def _shown(name: bytes) -> str:
    return escape_untrusted(name.decode("utf-8", "backslashreplace"), 80)


def relative_name(name: bytes, root: bytes) -> bytes:
    """Return `name` below the folder that was asked for; the folder itself is empty."""
    if name.rstrip(b"/") == root:
        return b""
    if not name.startswith(root + b"/"):
        raise TarError(f"the stream holds {_shown(name)}, which is not below {_shown(root)}")
    return name[len(root) + 1 :]


def _accepted_name(name: bytes, rules: OutputRules) -> str:
    plain = _NAME.fullmatch(name) is not None and name not in _DOTS
    if not plain and not (rules.allow_pose and _POSE_NAME.fullmatch(name)):
        raise _Broken(Diagnostic.OUTPUT_NAME, f"the name {_shown(name)} is not accepted")
    return name.decode("ascii")


def _is_folder(name: bytes, kind: TarKind, rules: OutputRules) -> bool:
    if kind is not TarKind.DIRECTORY:
        return False
    return not name or (rules.allow_pose and name.rstrip(b"/") == b"pose")


def _check_member(member: TarMember, name: bytes, rules: OutputRules) -> None:
    if member.kind is not TarKind.FILE:
        raise _Broken(Diagnostic.OUTPUT_KIND, f"{_shown(name)} is a {member.kind}")
    if member.size_bytes > rules.file_bytes:
        raise _Broken(
            Diagnostic.OUTPUT_TOO_LARGE,
            f"{_shown(name)} has {member.size_bytes} bytes, more than {rules.file_bytes}",
        )


def _walk(stream: TarStream, rules: OutputRules) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    total = 0
    for member in stream.members():
        name = relative_name(member.name, b"output")
        if _is_folder(name, member.kind, rules):
            continue
        _check_member(member, name, rules)
        accepted = _accepted_name(name, rules)
        total += member.size_bytes
        if accepted in found:
            raise _Broken(Diagnostic.OUTPUT_NAME, f"{accepted} stands twice")
        if len(found) == rules.files:
            raise _Broken(Diagnostic.OUTPUT_TOO_MANY, f"more than {rules.files} files")
        if total > rules.total_bytes:
            raise _Broken(Diagnostic.OUTPUT_TOO_LARGE, f"more than {rules.total_bytes} bytes")
        found[accepted] = b"".join(stream.data())
    return found


def collect_output(chunks: Iterable[bytes], rules: OutputRules) -> CollectedFiles | OutputViolation:
    """Collect the files of a tar of `/output`; stop reading at the first violation.

    Only plain files at depth one with names of `[A-Za-z0-9._-]{1,64}` are accepted, and
    `pose/<clip>.npy` where the track has poses. Returns a violation as a value: it is the
    entrant's doing. At most `total_bytes` are held.
    """
    try:
        return CollectedFiles(_walk(TarStream(chunks), rules))
    except _Broken as broken:
        return broken.violation
    except TarError as error:
        return OutputViolation(Diagnostic.OUTPUT_KIND, str(error))


def hash_tree(chunks: Iterable[bytes], root: bytes = b"") -> dict[bytes, str]:
    """Return name → SHA-256 of every file in a tar of our own making.

    `root` is the folder that the names lie below; it is taken off. Raises TarError for anything
    but files and folders.
    """
    stream = TarStream(chunks)
    digests: dict[bytes, str] = {}
    for member in stream.members():
        name = relative_name(member.name, root) if root else member.name.removeprefix(b"./")
        if member.kind is TarKind.DIRECTORY:
            continue
        if member.kind is not TarKind.FILE or name in digests:
            raise TarError(f"{_shown(name)} is a {member.kind}, or stands twice")
        digest = hashlib.sha256()
        for piece in stream.data():
            digest.update(piece)
        digests[name] = digest.hexdigest()
    return digests
