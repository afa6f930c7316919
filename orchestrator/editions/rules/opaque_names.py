"""Opaque clip names: numbers in a random order, so that a name says nothing of its clip. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from manifests.encoding import canonical_json, parse_json_object
from manifests.errors import MalformedDocument

MINIMUM_DIGITS = 4

Shuffle = Callable[[list[str]], None]
"""Shuffles in place, with randomness that nobody can guess."""


def assign_opaque_names(clip_ids: Sequence[str], *, shuffle: Shuffle) -> dict[str, str]:
    """Return the opaque name of each clip: `0001`, `0002` … in the order of their names."""
    order = sorted(clip_ids)
    shuffle(order)
    digits = max(MINIMUM_DIGITS, len(str(len(order))))
    return {clip_id: f"{number:0{digits}d}" for number, clip_id in enumerate(order, start=1)}


def render_names(names: Mapping[str, str]) -> bytes:
    """Return the file that maps original names to opaque ones. It is secret: encrypt it."""
    return canonical_json({"clips": dict(names)}) + b"\n"


def parse_names(data: bytes, *, source: str) -> dict[str, str]:
    """Parse what `render_names` wrote.

    Raises:
        MalformedDocument: with the fact that is wrong.

    """
    names = parse_json_object(data, source=source).get("clips")
    if not isinstance(names, dict) or not names:
        raise MalformedDocument(f"{source}: holds no map of clip names")
    found = {key: value for key, value in names.items() if isinstance(value, str)}
    if len(found) != len(names) or len(set(found.values())) != len(names):
        raise MalformedDocument(f"{source}: two clips share an opaque name, or one is no text")
    return found
