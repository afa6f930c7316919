"""Which platform an engine runs: what it calls its processor, in the words of an image."""

from __future__ import annotations

from manifests.errors import RefusedByPolicy
from manifests.text import escape_untrusted

_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def engine_platform(architecture: str) -> str:
    """Return the platform that an engine on this processor runs, as `linux/amd64`.

    Raises:
        RefusedByPolicy: for a processor that the sandbox has no filter for.

    """
    known = _MACHINES.get(architecture)
    if known is None:
        shown = escape_untrusted(architecture, 40)
        raise RefusedByPolicy(f"the engine runs on {shown}; certified runs need amd64 or arm64")
    return f"linux/{known}"
