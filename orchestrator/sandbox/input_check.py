"""See that the clips in the input volume are still what was provided."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.engine.ports import ContainerEngine
from orchestrator.sandbox.rules.collector import hash_tree
from orchestrator.sandbox.rules.container_options import INPUT
from orchestrator.support.tar.tar_stream import TarError


def input_has_changed(engine: ContainerEngine, holder: str, sums: Mapping[str, str]) -> bool:
    """Read the input back from the volume; tell whether it is exactly the files of `sums`.

    `sums` is name → SHA-256.
    """
    wanted = {name.encode(): digest for name, digest in sums.items()}
    try:
        return hash_tree(engine.get_archive(holder, INPUT), b"input") != wanted
    except TarError:
        return True
