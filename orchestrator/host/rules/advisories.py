"""Known escapes of container runtimes, by version: shown, and left to the edition to forbid."""

from __future__ import annotations

import re
from typing import Final

_FIXED_IN: Final = {(1, 2): 8, (1, 3): 3}
"""Release line of runc → first patch release without the escapes below."""

_ESCAPES: Final = "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881"
_VERSION: Final = re.compile(r"^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")


def runc_advisory(version: str) -> str | None:
    """Return what to tell about this runc, or None where nothing is known against it.

    Distributions backport fixes under older numbers: the text says what the number says.
    """
    found = _VERSION.match(version)
    if found is None:
        return "the runc version is unknown: known escapes cannot be ruled out"
    line, patch = (int(found[1]), int(found[2])), int(found[3] or 0)
    if line >= (1, 4) or patch >= _FIXED_IN.get(line, 10**6):
        return None
    return (
        f"runc {version} is older than 1.2.8 and 1.3.3, which close {_ESCAPES}; update it, or see "
        "whether your distribution has closed them in this package"
    )
