"""Compare the version numbers that engines report."""

from __future__ import annotations

import re
from itertools import zip_longest

_LEADING = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})")


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading dotted numbers of a version: `20.10.24+dfsg1` gives (20, 10, 24)."""
    leading = _LEADING.match(text)
    return tuple(int(number) for number in leading[1].split(".")) if leading else ()


def is_older(found: str, minimum: str) -> bool:
    """Tell whether version `found` is older than `minimum`; one that cannot be read is.

    Numbers that are not written count as 0: 28.5 is 28.5.0.
    """
    numbers, needed = version_numbers(found), version_numbers(minimum)
    pairs = zip_longest(numbers, needed, fillvalue=0)
    return not numbers or next((a < b for a, b in pairs if a != b), False)
