"""The format of `sha256sum`: a digest and a file name per line, checkable with `sha256sum -c`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9._/-]{1,255})", re.ASCII)
_SALT = re.compile(r"# salt: ([0-9a-f]{64})", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._/-]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sums:
    """Digests by file name, sorted bytewise; `salt` (64 hex digits) only in `clips.sha256`.

    The salt keeps the published digest of the whole file from being guessed by somebody who owns
    the clips; `sha256sum` skips its comment line.
    """

    digests: tuple[tuple[str, str], ...]
    """`(name, sha256)` pairs."""
    salt: str | None = None

    def by_name(self) -> dict[str, str]:
        """Return the digests as a mapping."""
        return dict(self.digests)


def render_sums(digests: Mapping[str, str], *, salt: str | None = None) -> bytes:
    """Return the file that lists `digests` (SHA-256 hex by name), sorted bytewise by name.

    Raises:
        MalformedDocument: for a name, digest or salt that the format cannot carry.

    """
    lines = [] if salt is None else [f"# salt: {salt}"]
    if salt is not None and not _HEX.fullmatch(salt):
        raise MalformedDocument("sums: the salt is not 64 hex digits")
    for name in sorted(digests):
        fault = _name_fault(name)
        if fault is not None or not _HEX.fullmatch(digests[name]):
            shown = escape_untrusted(name, 60)
            raise MalformedDocument(f"sums: {shown}: {fault or 'digest is not 64 hex digits'}")
        lines.append(f"{digests[name]}  {name}")
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def parse_sums(data: bytes, *, source: str, salted: bool = False) -> Sums:
    """Parse a file that `render_sums` wrote; every deviation is an error.

    With `salted` the first line must be `# salt: <64 hex digits>`; without it, none may be.

    Raises:
        MalformedDocument: with source, line, fact and bound.

    """
    lines = _lines(data, source)
    salt = _salt(lines[0] if lines else "", source) if salted else None
    digests: list[tuple[str, str]] = []
    for number, line in enumerate(lines[salted:], start=1 + salted):
        name, digest = _entry(line, f"{source}:{number}")
        if digests and name <= digests[-1][0]:
            raise MalformedDocument(
                f"{source}:{number}: {name} stands twice or out of order; sort the names bytewise"
            )
        digests.append((name, digest))
    return Sums(tuple(digests), salt)


def _lines(data: bytes, source: str) -> list[str]:
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MalformedDocument(f"{source}:{line}: not ASCII at byte {error.start}") from error
    if text and not text.endswith("\n"):
        raise MalformedDocument(f"{source}: the last line has no end; the file was cut")
    return text.split("\n")[:-1]


def _salt(line: str, source: str) -> str:
    match = _SALT.fullmatch(line)
    if match is None:
        raise MalformedDocument(f"{source}:1: expected `# salt: ` and 64 hex digits")
    return match[1]


def _entry(line: str, place: str) -> tuple[str, str]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise MalformedDocument(
            f"{place}: {escape_untrusted(line, 60)!r} is not 64 hex digits, two spaces and a name "
            "of the characters A-Z a-z 0-9 . _ / -"
        )
    fault = _name_fault(match[2])
    if fault is not None:
        raise MalformedDocument(f"{place}: {fault}")
    return match[2], match[1]


def _name_fault(name: str) -> str | None:
    if not _NAME.fullmatch(name):
        return "a name has 1 to 255 of the characters A-Z a-z 0-9 . _ / -"
    if name.startswith("-") or any(part in {"", ".", ".."} for part in name.split("/")):
        return f"the name {name} is not a plain relative path"
    return None
