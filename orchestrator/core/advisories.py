"""Engines and runtimes with published escapes: recorded and shown, refused only by an edition."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"\d+")
_RUNC_CVES = "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881"


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading dotted numbers of a version: `20.10.24+dfsg1` gives (20, 10, 24)."""
    leading = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(int(number) for number in _NUMBERS.findall(leading[1])) if leading else ()


def is_older(found: str, minimum: str) -> bool:
    """Tell whether version `found` is older than `minimum`; one that cannot be read is."""
    numbers = version_numbers(found)
    return not numbers or numbers < version_numbers(minimum)


def runtime_advisories(runc: str) -> tuple[str, ...]:
    """Return what is known to be wrong with this runc (sandbox notes, 1.10).

    A distribution may have mended it under an old number: the text says so.
    """
    numbers = version_numbers(runc)
    fixed = numbers >= (1, 3, 3) or (1, 2, 8) <= numbers < (1, 3)
    if not numbers or fixed:
        return ()
    fact = f"runc {runc}: {_RUNC_CVES}, mended in 1.2.8 and 1.3.3"
    return (f"{fact}, unless your distribution mended this build",)
