"""Compare what the engine made of a container with what was asked, before it starts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from manifests.text import escape_untrusted
from orchestrator.images.rules.image_config import NeutralConfig

_MASKED_PATHS: Final = frozenset(
    {"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware"}
)
_READONLY_PATHS: Final = frozenset(
    {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)
_AT_LEAST: Final = {"MaskedPaths": _MASKED_PATHS, "ReadonlyPaths": _READONLY_PATHS}
_ENGINE_DEFAULTS: Final[Mapping[str, tuple[object, ...]]] = {
    "ShmSize": (64 * 2**20,),
    "MemorySwappiness": (-1,),
    "Isolation": ("default",),
    "IpcMode": ("private",),
    "Runtime": ("runc", "io.containerd.runc.v2"),
    "PidsLimit": (-1,),
}
"""What an engine fills in for a field that was not asked for, beside nothing."""

_OWN_CONFIG: Final = (
    "User",
    "Hostname",
    "Domainname",
    "Tty",
    "OpenStdin",
    "StdinOnce",
    "AttachStdin",
    "AttachStdout",
    "AttachStderr",
    "Healthcheck",
    "StopSignal",
)


def _pruned(value: object) -> object:
    """Return None for what means nothing: engines spell an unset field as null, zero or empty."""
    if isinstance(value, Mapping):
        kept = {key: _pruned(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None} or None
    if isinstance(value, list | tuple):
        items = [_pruned(item) for item in value]
        return items if any(item is not None for item in items) else None
    return value or None


def _shown(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    if "seccomp=" in text:
        text = f"… with a system-call filter, sha256 {hashlib.sha256(text.encode()).hexdigest()}"
    return escape_untrusted(text, 160)


def _difference(field: str, asked: object, found: object) -> str:
    return f"{field}: asked for {_shown(asked)}, the engine has {_shown(found)}"


def _host_differences(asked: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    for field, value in asked.items():
        if _pruned(value) != _pruned(found.get(field)):
            yield _difference(field, value, found.get(field))
    for field in sorted(set(found) - set(asked)):
        value = found[field]
        if field in _AT_LEAST:
            missing = sorted(_AT_LEAST[field] - set(value or ()))
            if missing:
                yield f"{field}: {', '.join(missing)} is not covered"
        elif _pruned(value) not in (None, *_ENGINE_DEFAULTS.get(field, ())):
            yield f"{field}: not asked for, the engine has {_shown(value)}"


def expected_environment(asked: list[str], image: tuple[str, ...]) -> list[str]:
    """Return the environment that the engine must show: ours, and the image's other variables."""
    own = {variable.partition("=")[0] for variable in asked}
    return sorted([*asked, *(item for item in image if item.partition("=")[0] not in own)])


def _own(config: Mapping[str, Any], field: str) -> object:
    """Return a field as it is compared.

    The engine fills a health check's intervals in from the image; with the test NONE they are idle.
    """
    value = config.get(field)
    return value.get("Test") if field == "Healthcheck" and isinstance(value, Mapping) else value


def _config_differences(
    options: Mapping[str, Any], image: NeutralConfig, found: Mapping[str, Any]
) -> Iterator[str]:
    for field in _OWN_CONFIG:
        if _pruned(_own(options, field)) != _pruned(_own(found, field)):
            yield _difference(field, options.get(field), found.get(field))
    expected = {
        "Env": expected_environment(options["Env"], image.environment),
        "Entrypoint": list(image.entrypoint),
        "Cmd": list(image.command),
    }
    for field, value in expected.items():
        have = found.get(field) or []
        if value != (sorted(have) if field == "Env" else have):
            yield _difference(field, value, have)
    labels = found.get("Labels") or {}
    for name, value in options["Labels"].items():
        if labels.get(name) != value:
            yield _difference(f"label {name}", value, labels.get(name))


def _mount_differences(options: Mapping[str, Any], found: list[Mapping[str, Any]]) -> Iterator[str]:
    """Compare the exact set: one mount more is where sealed clips could stay behind."""
    host = options["HostConfig"]
    asked = {
        (mount["Type"], mount["Source"], mount["Target"], not mount["ReadOnly"])
        for mount in host["Mounts"]
    }
    covered = host.get("Tmpfs") or {}
    have = [
        (mount.get("Type"), mount.get("Name"), mount.get("Destination"), mount.get("RW"))
        for mount in found
        if not (mount.get("Type") == "tmpfs" and mount.get("Destination") in covered)
    ]
    if set(have) != asked or len(have) != len(asked):
        yield _difference("Mounts", sorted(asked), sorted(have, key=str))


def differences(
    options: Mapping[str, Any], image: NeutralConfig, inspected: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return every difference between the asked `options` and the engine's inspection.

    `image` is the neutral reading of the image's own configuration. Nothing that was not asked for
    may be set, so that a new option of an engine cannot slip in.
    """
    found: list[str] = []
    if inspected.get("Image") != options["Image"]:
        found.append(_difference("Image", options["Image"], inspected.get("Image")))
    found += _host_differences(options["HostConfig"], inspected.get("HostConfig") or {})
    found += _config_differences(options, image, inspected.get("Config") or {})
    found += _mount_differences(options, list(inspected.get("Mounts") or []))
    return tuple(found)


def _without_filter_text(options: list[str]) -> list[str]:
    """Replace the system-call filter's text by its digest."""
    return [
        f"seccomp-sha256={hashlib.sha256(option[8:].encode()).hexdigest()}"
        if option.startswith("seccomp=")
        else option
        for option in options
    ]


def effective_document(inspected: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the record keeps of an inspection: image, limits, environment, mounts."""
    host = inspected.get("HostConfig") or {}
    set_fields = {name: host[name] for name in sorted(host) if _pruned(host[name]) is not None}
    set_fields["SecurityOpt"] = _without_filter_text(host.get("SecurityOpt") or [])
    config = inspected.get("Config") or {}
    kept = ("Env", "Entrypoint", "Cmd", "WorkingDir", "User", "StopSignal", "Healthcheck", "Labels")
    return {
        "image_id": inspected.get("Image"),
        "apparmor_profile": inspected.get("AppArmorProfile") or None,
        "host_config": set_fields,
        "config": {field: config[field] for field in kept if config.get(field)},
        "mounts": [
            {
                "type": mount.get("Type"),
                "name": mount.get("Name"),
                "destination": mount.get("Destination"),
                "writable": mount.get("RW"),
            }
            for mount in inspected.get("Mounts") or []
        ],
    }
