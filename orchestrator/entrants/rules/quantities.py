"""Write sizes as people read them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def size_text(size_bytes: int) -> str:
    """Return a size with a binary unit and at most one decimal, as `1.5 GiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in _UNITS:
        value /= 1024
        if value < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"
