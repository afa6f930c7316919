"""The scorer string: one line that names everything a figure depends on."""

from __future__ import annotations

import numpy as np


def scorer_string(name: str, version: str, parameters: dict[str, str | int | float]) -> str:
    """Join a scorer's name, version and parameters as sacreBLEU joins its signature.

    Parameters stand in the order given; NumPy's version comes last. Raise ``ValueError`` for
    a part that holds the separator or whitespace, which would make two strings ambiguous.
    """
    pairs = {"version": version, **parameters, "numpy": np.__version__}
    parts = [name, *(f"{key}:{value}" for key, value in pairs.items())]
    for part in parts:
        if "|" in part or any(c.isspace() for c in part):
            raise ValueError(f"{part!r} cannot stand in a scorer string: '|' or whitespace")
    return "|".join(parts)
