"""Editions that ship with piste, to start an own one from."""

from __future__ import annotations

from importlib import resources
from typing import Literal

ExampleName = Literal[
    "recognition-final", "recognition-qualifier", "translation-final", "segmentation-final"
]


def read_example(name: ExampleName) -> bytes:
    """Return the bytes of a shipped `edition.yaml`."""
    return resources.files(__name__).joinpath(f"{name}.yaml").read_bytes()
