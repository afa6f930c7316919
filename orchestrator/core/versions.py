"""Compare the version numbers that engines report."""

from __future__ import annotations

import re

_LEADING = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})")


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading dotted numbers of a version: `20.10.24+dfsg1` gives (20, 10, 24)."""
    leading = _LEADING.match(text)
    return tuple(int(number) for number in leading[1].split(".")) if leading else ()


def is_older(found: str, minimum: str) -> bool:
    """Tell whether version `found` is older than `minimum`; one that cannot be read is."""
    numbers = version_numbers(found)
    return not numbers or numbers < version_numbers(minimum)
