"""Build an entrant's image from a folder and this machine's Python, without any registry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from orchestrator.images.image_builder_port import ImageBuilder

_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEntry:
    """An archive that `piste dry-run` and `piste certify` take."""

    path: Path
    image_id: str
    files: int


def build_image(
    folder: Path,
    destination: Path,
    *,
    builder: ImageBuilder,
    main: str = "main.py",
    distributions: tuple[str, ...] = (),
) -> BuiltEntry:
    """Put `folder` into an image under `/app`; its entrypoint runs `main` with this Python.

    `distributions` are installed ones to bring along, as `numpy`, with what they require.

    Raises:
        MalformedDocument: when `main` is not in the folder, a name is no distribution, or one is
            not installed.
        PlatformFault: when a file cannot be read or written.

    """
    for name in distributions:
        if not _DISTRIBUTION.fullmatch(name):
            raise MalformedDocument(f'"{escape_untrusted(name)}" is no distribution name')
    entries = builder.read_folder(folder)
    program = f"/app/{main}"
    if program not in {entry.path for entry in entries}:
        raise MalformedDocument(
            f"{folder}: holds no {escape_untrusted(main)}; the image has to start with something"
        )
    image_id = builder.build_program(
        entries, destination, distributions=distributions, entrypoint=(program,)
    )
    return BuiltEntry(path=destination, image_id=image_id, files=len(entries))
