"""Image references: `registry/repository@sha256:…` and, where a tag will do, `…:tag`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from manifests.digests import is_oci_digest
from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

DOCKER_HUB = "docker.io"

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*", re.ASCII)
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:]+\])(?::(?P<port>[0-9]{{1,5}}))?")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_ID_LIKE = re.compile(r"[0-9a-f]{64}")
_LONGEST_NAME = 255
_LONGEST_TEXT = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReference:
    """A place in a registry and either a digest, which pins, or a tag, which can move."""

    registry: str
    """Host and, where given, port: `docker.io`, `127.0.0.1:5000`."""
    repository: str
    """Path in the registry, as `library/debian`."""
    digest: str | None = None
    tag: str | None = None

    @property
    def name(self) -> str:
        """Registry and repository, without tag or digest."""
        return f"{self.registry}/{self.repository}"

    def pinned(self, digest: str) -> str:
        """Return the reference that names exactly the content with this digest."""
        return f"{self.name}@{digest}"

    def __str__(self) -> str:
        """Return the full reference."""
        return self.pinned(self.digest) if self.digest else f"{self.name}:{self.tag}"


def _refuse(text: str, fact: str) -> MalformedDocument:
    return MalformedDocument(
        f'the image "{escape_untrusted(text)}" {fact}; expected registry/repository@sha256:<64 hex>'
        " or the path of an archive (.tar)"
    )


def _split_registry(name: str) -> tuple[str, str]:
    """Split as engines do: the first part is a host when it has a dot, a colon or is localhost."""
    first, slash, rest = name.partition("/")
    if slash and (first == "localhost" or any(mark in first for mark in ".:[")):
        return first, rest
    return DOCKER_HUB, name if slash else f"library/{name}"


def _split_tag(text: str) -> tuple[str, str | None]:
    head, colon, tail = text.rpartition(":")
    return (head, tail) if colon and "/" not in tail else (text, None)


def _is_host(text: str) -> bool:
    match = _HOST.fullmatch(text)
    return match is not None and (match["port"] is None or 0 < int(match["port"]) < 65536)


def parse_reference(text: str) -> ImageReference:
    """Parse an image reference; without digest and tag the tag is `latest`.

    Raises:
        MalformedDocument: for anything else, a tag beside a digest and a name like an id included.

    """
    if len(text) > _LONGEST_TEXT:
        raise _refuse(text, f"has more than {_LONGEST_TEXT} characters")
    head, at, digest = text.partition("@")
    if at and not is_oci_digest(digest):
        raise _refuse(text, "has no sha256 digest of 64 lower-case hex digits after the @")
    name, tag = _split_tag(head)
    if at and tag is not None:
        raise _refuse(text, "names a tag and a digest; leave the tag out")
    registry, repository = _split_registry(name)
    if not _is_host(registry):
        raise _refuse(text, "has no valid registry host and port")
    if not _PATH.fullmatch(repository) or len(registry) + len(repository) >= _LONGEST_NAME:
        raise _refuse(text, "has no valid repository name")
    if _ID_LIKE.fullmatch(name):
        raise _refuse(text, "looks like an image id; an id names no place to pull from")
    if tag is not None and not _TAG.fullmatch(tag):
        raise _refuse(text, "has no valid tag")
    return ImageReference(
        registry=registry,
        repository=repository,
        digest=digest or None,
        tag=None if at else tag or "latest",
    )
