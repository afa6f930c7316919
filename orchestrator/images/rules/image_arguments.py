"""Tell the three ways apart in which a command names an image."""

from __future__ import annotations

from dataclasses import dataclass

from manifests.errors import MalformedDocument
from manifests.references import ImageReference, parse_reference

_ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz", ".oci")
_PATH_STARTS = ("/", "./", "../", "~/")
_ENGINE_PREFIX = "engine:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePath:
    """An archive on disk."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineName:
    """A name or id that the local engine knows."""

    name: str


ImageArgument = ImageReference | ArchivePath | EngineName


def parse_image_argument(text: str) -> ImageArgument:
    """Parse `repo@sha256:…`, `repo:tag`, a path that looks like one, or `engine:NAME`.

    Raises:
        MalformedDocument: for anything else.

    """
    if text.startswith(_ENGINE_PREFIX):
        name = text.removeprefix(_ENGINE_PREFIX)
        if not name or name.startswith("-") or not name.isascii() or not name.isprintable():
            raise MalformedDocument("engine: needs the name or id of a local image behind it")
        return EngineName(name=name)
    if text.startswith(_PATH_STARTS) or text.endswith(_ARCHIVE_ENDINGS):
        return ArchivePath(path=text)
    return parse_reference(text)
