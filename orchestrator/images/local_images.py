"""Find an image that the engine has, by name or id, without the engine's own guessing.

An engine resolves a short id to an image that is *tagged* with these digits; here both are seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from orchestrator.engine.ports import ContainerEngine

_HEX_START = re.compile(r"(?:sha256:)?([0-9a-f]{12,64})", re.ASCII)


def _spellings(name: str) -> frozenset[str]:
    """Return the spellings under which an engine may list `name`."""
    familiar = name.removeprefix("docker.io/").removeprefix("library/")
    has_tag = "@" in familiar or ":" in familiar.rpartition("/")[2]
    return frozenset({name, familiar} if has_tag else {f"{name}:latest", f"{familiar}:latest"})


def _matches(engine: ContainerEngine, name: str) -> Iterator[str]:
    spellings, digits = _spellings(name), _HEX_START.fullmatch(name)
    for image_id in engine.list_image_ids():
        if digits is not None and image_id.removeprefix("sha256:").startswith(digits[1]):
            yield image_id
            continue
        inspection = engine.inspect_image(image_id) or {}
        listed = [*(inspection.get("RepoTags") or ()), *(inspection.get("RepoDigests") or ())]
        if not spellings.isdisjoint(listed):
            yield image_id


def find_local_image(engine: ContainerEngine, name: str) -> str:
    """Return the full id of the one image with this name, id or start of an id (12 digits or more).

    Raises:
        MalformedDocument: when there is none, or more than one.

    """
    found = tuple(dict.fromkeys(_matches(engine, name)))
    if len(found) == 1:
        return found[0]
    shown = escape_untrusted(name)
    if not found:
        raise MalformedDocument(
            f"engine:{shown}: the engine has no such image; see `docker images`"
        )
    raise MalformedDocument(
        f"engine:{shown}: means {len(found)} images ({', '.join(found[:3])}); give the full id"
    )
