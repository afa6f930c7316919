"""Take the power out of what an image's own configuration asks for (sandbox notes, 1.3)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from manifests.errors import RefusedByPolicy
from manifests.text import escape_untrusted

MAX_VOLUMES: Final = 32
"""More VOLUME entries than this are an attack on the engine, not a program's need."""

_OURS: Final = frozenset({"/input", "/output", "/tmp"})  # noqa: S108 - a path in the container
_RESERVED_TREES: Final = frozenset({"/proc", "/sys", "/dev"})
_RESERVED: Final = frozenset({"/", "/etc", "/sbin", "/usr", "/usr/sbin"})
"""The engine mounts into these itself; a cover would break the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeutralConfig:
    """What is left of an image's configuration, and what has to be covered."""

    covered_volumes: tuple[str, ...]
    """Normalised paths of VOLUME entries: each gets a read-only tmpfs of one page."""
    environment: tuple[str, ...]
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    working_directory: str
    ignored: tuple[str, ...]
    """Fields that the image sets and the sandbox overrides."""


def _refuse(path: str, fact: str) -> RefusedByPolicy:
    shown = escape_untrusted(path, 100)
    return RefusedByPolicy(f'the image declares VOLUME "{shown}", {fact}; build it without')


def _normalised(path: str) -> str:
    """Return the path as the engine resolves it; raw spellings slip past a cover."""
    if not path.startswith("/"):
        raise _refuse(path, "which is not an absolute path")
    if not path.isprintable():
        raise _refuse(path, "which holds control characters")
    return "/" + posixpath.normpath(path).lstrip("/")


def _covered(path: str) -> str | None:
    """Return the path to cover, or None where one of our own mounts covers it."""
    normal = _normalised(path)
    top = "/" + normal.split("/")[1]
    if normal in _OURS:
        return None
    if top in _OURS:
        raise _refuse(path, f"inside {top}, which belongs to the sandbox")
    if normal in _RESERVED or top in _RESERVED_TREES:
        raise _refuse(path, "which belongs to the engine")
    return normal


def _strings(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise RefusedByPolicy("the image's configuration is not well formed; build it again")
    return tuple(value)


def _ignored_fields(config: Mapping[str, Any]) -> tuple[str, ...]:
    fields = ("User", "Healthcheck", "StopSignal", "ExposedPorts", "OnBuild", "Labels", "Volumes")
    return tuple(field for field in fields if config.get(field))


def declares_volume(config: Mapping[str, Any], path: str) -> bool:
    """Tell whether an image's `Config` object declares a VOLUME at this very path."""
    return path in map(_normalised, config.get("Volumes") or {})


def neutralise(config: Mapping[str, Any]) -> NeutralConfig:
    """Read an image's `Config` object and say what has to be covered.

    Raises:
        RefusedByPolicy: when there is nothing to run, or a VOLUME cannot be covered.

    """
    volumes = config.get("Volumes") or {}
    if len(volumes) > MAX_VOLUMES:
        raise RefusedByPolicy(
            f"the image declares {len(volumes)} VOLUME entries, more than {MAX_VOLUMES}; "
            "build it without"
        )
    entrypoint, command = _strings(config.get("Entrypoint")), _strings(config.get("Cmd"))
    if not entrypoint and not command:
        raise RefusedByPolicy("the image has neither ENTRYPOINT nor CMD: there is nothing to run")
    covered = {path for path in map(_covered, volumes) if path is not None}
    return NeutralConfig(
        covered_volumes=tuple(sorted(covered)),
        environment=_strings(config.get("Env")),
        entrypoint=entrypoint,
        command=command,
        working_directory=str(config.get("WorkingDir") or ""),
        ignored=_ignored_fields(config),
    )
