"""Judge what an engine says of itself: versions, store, limits; its deeds are probed elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from manifests.text import escape_untrusted
from orchestrator.engine.ports import EngineDescription
from orchestrator.host.rules.advisories import runc_advisory
from orchestrator.host.rules.host_findings import HostFinding, Status, Topic, judged

OLDEST_API: Final = (1, 41)
"""The first that knows private cgroup namespaces; engine 20.10 speaks it."""
_SLOW_STORES: Final = frozenset({"vfs", "devicemapper", "aufs"})
_CLOCK_DIFFERENCE_S: Final = 10
_API: Final = re.compile(r"(\d{1,5})\.(\d{1,5})")
_SECONDS: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")


def engine_findings(engine: EngineDescription, *, now: datetime) -> Iterator[HostFinding]:
    """Yield one finding for each thing that an engine says; `now` is this host's time."""
    yield _api(engine)
    yield _runc(engine)
    yield judged(Topic.ENGINE, "kernel", _shown(f"{engine.operating_system}, {engine.kernel}"))
    yield judged(
        Topic.ENGINE,
        "storage",
        _shown(engine.store),
        holds=engine.store.rpartition("/")[2] not in _SLOW_STORES,
        otherwise=Status.WARN,
        remedy="it copies whole images for each container; set storage-driver overlay2",
    )
    yield _cgroup(engine)
    yield _limits(engine)
    yield judged(
        Topic.ENGINE,
        "system-call filter",
        "seccomp" if _has(engine, "seccomp") else "none",
        holds=_has(engine, "seccomp"),
        remedy="install an engine that is built with seccomp, on a kernel with CONFIG_SECCOMP",
    )
    yield judged(Topic.ENGINE, "runtimes", _shown(", ".join(engine.runtimes)))
    difference = _clock_difference(engine, now)
    if difference is not None:
        yield difference


def _shown(text: str) -> str:
    return escape_untrusted(text, 160)


def _has(engine: EngineDescription, option: str) -> bool:
    return any(option in each for each in engine.security_options)


def _api(engine: EngineDescription) -> HostFinding:
    found = _API.match(engine.api)
    known = found is not None and (int(found[1]), int(found[2])) >= OLDEST_API
    return judged(
        Topic.ENGINE,
        "engine",
        _shown(f"Docker {engine.docker}, API {engine.api}, containerd {engine.containerd}"),
        holds=known,
        remedy="update the engine: 20.10 or later is needed (API 1.41)",
    )


def _runc(engine: EngineDescription) -> HostFinding:
    advisory = runc_advisory(engine.runc)
    return judged(
        Topic.ENGINE,
        "runc",
        _shown(engine.runc),
        holds=advisory is None,
        otherwise=Status.WARN,
        remedy=None if advisory is None else escape_untrusted(advisory, 300),
    )


def _cgroup(engine: EngineDescription) -> HostFinding:
    rootless = _has(engine, "rootless")
    return judged(
        Topic.ENGINE,
        "cgroup",
        f"version {_shown(engine.cgroup_version)}" + (", rootless" if rootless else ""),
        holds=engine.cgroup_version == "2" or not rootless,
        remedy="a rootless engine limits nothing here: boot with systemd and cgroup version 2",
    )


def _limits(engine: EngineDescription) -> HostFinding:
    missing = [name for name, able in engine.limits.items() if not able]
    claimed = ", ".join(name for name, able in engine.limits.items() if able)
    return judged(
        Topic.ENGINE,
        "limits it claims",
        claimed or "none",
        holds=not missing,
        remedy=f"enable the cgroup controllers for {', '.join(missing)}; for swap on cgroup "
        "version 1 boot with cgroup_enable=memory swapaccount=1",
    )


def _clock_difference(engine: EngineDescription, now: datetime) -> HostFinding | None:
    """Compare clocks where the engine tells its time: it may be another machine."""
    found = _SECONDS.fullmatch(str(engine.raw.get("SystemTime", "")))
    if found is None:
        return None
    told = datetime.fromisoformat(found[1] + found[2].replace("Z", "+00:00"))
    seconds = round(abs((told - now).total_seconds()))
    return judged(
        Topic.CLOCK,
        "engine's clock",
        "agrees with this host's"
        if seconds <= _CLOCK_DIFFERENCE_S
        else f"{seconds} s away from this host's",
        holds=seconds <= _CLOCK_DIFFERENCE_S,
        otherwise=Status.WARN,
        remedy="synchronise both hosts' clocks: records carry this host's time",
    )
