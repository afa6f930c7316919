"""What an engine says of its runtimes: how one is registered, and how to register gVisor's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from manifests.encoding import Json, canonical_json
from sandbox_profiles.profile import Boundary, SandboxProfile

_DEFINING: Final = ("path", "runtimeArgs", "runtimeType", "shim", "options")
"""The fields that decide what is run; newer engines add what the runtime can do."""
_NO_LIMITS: Final = "ignore-cgroups"
_GPU_PASSAGE: Final = "nvproxy"
_SECOND_NAMESPACE_CHECK: Final = "network enabled in root network namespace"

GVISOR_REGISTRATION: Final = (
    '{"runtimes": {"runsc": {"path": "/usr/bin/runsc", "runtimeArgs": ["--network=none"]}}}'
)
"""What `/etc/docker/daemon.json` needs.

Entrants have no network in any case. Without the argument, releases of runsc before 2024 take every
namespace of a Linux after 6.1 for the host's, and start nothing.
"""
GVISOR_NEXT_STEP: Final = (
    f"install runsc (apt-get install runsc), write {GVISOR_REGISTRATION} into "
    "/etc/docker/daemon.json and reload the engine (sudo systemctl reload docker)"
)


def runtime_definition(info: Mapping[str, Any], runtime: str) -> dict[str, Json] | None:
    """Return path and arguments by which an engine starts a runtime, and their hash.

    `info` is the engine's own description. The hash is the SHA-256 of the canonical JSON of all
    that defines the runtime. None where the engine tells nothing.
    """
    found = (info.get("Runtimes") or {}).get(runtime)
    if not isinstance(found, Mapping):
        return None
    defining = {name: found[name] for name in _DEFINING if found.get(name)}
    if not defining:
        return None
    return {
        "path": str(defining["path"]) if "path" in defining else None,
        "args": [str(argument) for argument in defining.get("runtimeArgs", ())],
        "sha256": hashlib.sha256(canonical_json(defining)).hexdigest(),
    }


def gives_up_limits(info: Mapping[str, Any], profile: SandboxProfile) -> bool:
    """Tell whether gVisor is registered so that none of its limits acts."""
    return profile.boundary is Boundary.SENTRY and _is_set(info, profile.runtime, _NO_LIMITS)


def hides_gpus(info: Mapping[str, Any], profile: SandboxProfile) -> bool:
    """Tell whether gVisor is registered so that no GPU shows inside, whatever the engine gives."""
    return profile.boundary is Boundary.SENTRY and not _is_set(info, profile.runtime, _GPU_PASSAGE)


def _is_set(info: Mapping[str, Any], runtime: str, flag: str) -> bool:
    """Tell whether a runtime is registered with a flag of gVisor's."""
    definition = runtime_definition(info, runtime) or {}
    arguments = definition.get("args", [])
    assert isinstance(arguments, list)
    flags = (str(argument).lstrip("-").partition("=") for argument in arguments)
    return any(name == flag and value != "false" for name, _, value in flags)


def start_remedy(engine_message: str) -> str | None:
    """Return what helps against a runtime's refusal to start, where it is known."""
    if _SECOND_NAMESPACE_CHECK not in engine_message:
        return None
    return (
        "this runsc is older than the kernel and takes the container's network namespace for the "
        f"host's: register it as {GVISOR_REGISTRATION} in /etc/docker/daemon.json and reload the "
        "engine (sudo systemctl reload docker)"
    )
