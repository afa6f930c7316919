"""The scorer string: one line that names everything a figure depends on."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import numpy as np

_LITERAL = "!\"#$&'()*+,/:;<=>?@[\\]^`{}"


def scorer_string(name: str, version: str, parameters: Mapping[str, str | int | float]) -> str:
    """Join a scorer's name, version and parameters as sacreBLEU joins its signature.

    Parameters stand in the order given; NumPy's version comes last. The separator, ``%``,
    whitespace and whatever is not ASCII are percent-encoded, so that one line stays one line
    and equal strings mean equal parameters.
    """
    pairs = {"version": version, **parameters, "numpy": np.__version__}
    parts = [name, *(f"{key}:{value}" for key, value in pairs.items())]
    return "|".join(quote(part, safe=_LITERAL) for part in parts)
