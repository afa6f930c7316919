"""The vocabulary of an exam: the glosses that are scored, one per line."""

from __future__ import annotations

from collections.abc import Iterable

from manifests.errors import MalformedDocument
from manifests.glosses import label_gloss_fault

MAX_BYTES = 8 * 1024 * 1024


def parse_vocabulary(data: bytes, *, source: str) -> tuple[str, ...]:
    """Parse a vocabulary file: UTF-8, one gloss per line, in the order of the file.

    Raises:
        MalformedDocument: with source and line, for a blank line, a gloss that is not one safe
            word, UNKNOWN, a gloss that stands twice, or an empty file.

    """
    if len(data) > MAX_BYTES:
        raise MalformedDocument(f"{source}: {len(data)} bytes; at most {MAX_BYTES} are read")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MalformedDocument(f"{source}:{line}: not UTF-8; save the file as UTF-8") from error
    lines = text.removesuffix("\n").split("\n") if text else []
    if not lines:
        raise MalformedDocument(f"{source}: no gloss; write one per line")
    return _checked([line.removesuffix("\r") for line in lines], source)


def _checked(glosses: list[str], source: str) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    for number, gloss in enumerate(glosses, start=1):
        fault = label_gloss_fault(gloss)
        if fault is not None:
            raise MalformedDocument(f"{source}:{number}: {fault}")
        if gloss in seen:
            raise MalformedDocument(
                f"{source}:{number}: {gloss} stands on line {seen[gloss]} already; keep one"
            )
        seen[gloss] = number
    return tuple(seen)


def render_vocabulary(glosses: Iterable[str]) -> bytes:
    """Return the file that holds `glosses`, one per line."""
    return "".join(f"{gloss}\n" for gloss in glosses).encode("utf-8")
