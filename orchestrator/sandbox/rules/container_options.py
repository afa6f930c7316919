"""What the engine is asked for: pure functions from a specification to the API's own body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from manifests.names import ENTRANT_ID
from orchestrator.sandbox.rules.gpu import GpuRequest, device_requests
from sandbox_profiles.profile import SandboxProfile

INPUT: Final = "/input"
OUTPUT: Final = "/output"
RUN_LABEL: Final = "piste.run"
"""For people who list containers. Nothing is decided by it: an image can carry it too."""

_ENTRANT: Final = f"{ENTRANT_ID}:{ENTRANT_ID}"
_HOLDER_MEMORY_BYTES: Final = 64 * 2**20
_OOM_SCORE_ADJ: Final = 500
_COVER: Final = "ro,noexec,nosuid,nodev,size=4k,mode=0555"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantSpec:
    """A certified container: always offline, its root always read-only."""

    run_id: str
    image_id: str
    platform: str
    input_volume: str
    output_volume: str
    profile: SandboxProfile
    covered_volumes: tuple[str, ...] = ()
    gpu: GpuRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderSpec:
    """The container that keeps the two memory volumes mounted around an entrant's life."""

    run_id: str
    image_id: str
    platform: str
    input_volume: str
    output_volume: str
    seccomp: Mapping[str, Any]


def seccomp_option(document: Mapping[str, Any]) -> str:
    """Return the security option with the filter's JSON text: the engine takes no path."""
    return "seccomp=" + json.dumps(document, sort_keys=True, separators=(",", ":"))


def _volume(name: str, target: str, *, read_only: bool) -> dict[str, Any]:
    return {
        "Type": "volume",
        "Source": name,
        "Target": target,
        "ReadOnly": read_only,
        "VolumeOptions": {"NoCopy": True},
    }


def _ulimit(name: str, value: int) -> dict[str, Any]:
    return {"Name": name, "Soft": value, "Hard": value}


def _environment(spec: EntrantSpec) -> list[str]:
    """Return `NAME=value`, and a bare `NAME` where the image's variable is taken away."""
    variables = spec.profile.variables()
    if spec.gpu is None:
        # A default runtime of the vendor would honour the image's own wish otherwise.
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"
    return [
        name if value is None else f"{name}={value}" for name, value in sorted(variables.items())
    ]


def _tmpfs(spec: EntrantSpec) -> dict[str, str]:
    """Mount `/tmp` with exec, for noexec is no boundary and breaks compiled caches.

    The ids are spelled out because runc takes the mode from a directory of the image.
    """
    profile = spec.profile
    tmp = (
        f"rw,exec,nosuid,nodev,size={profile.tmp_bytes},uid={ENTRANT_ID},gid={ENTRANT_ID},"
        f"mode=1777,nr_inodes={profile.tmp_inodes}"
    )
    return {"/tmp": tmp} | dict.fromkeys(spec.covered_volumes, _COVER)  # noqa: S108


def _isolation(seccomp: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "Privileged": False,
        "CapAdd": [],
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true", seccomp_option(seccomp)],
        "CgroupnsMode": "private",
        "PidMode": "",
        "UTSMode": "",
        "UsernsMode": "",
        "PublishAllPorts": False,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
    }


def _entrant_limits(profile: SandboxProfile) -> dict[str, Any]:
    shm = {"IpcMode": "none"} if profile.shm_bytes is None else {"IpcMode": "private"}
    if profile.shm_bytes is not None:
        shm |= {"ShmSize": profile.shm_bytes}  # type: ignore[dict-item]
    return {
        **shm,
        "Memory": profile.memory_bytes,
        "MemorySwap": profile.memory_bytes,
        "NanoCpus": profile.cpus * 10**9,
        "CpusetCpus": profile.cpuset,
        "PidsLimit": profile.pids,
        "OomScoreAdj": _OOM_SCORE_ADJ,
        "OomKillDisable": False,
        "Ulimits": [
            _ulimit("core", 0),
            _ulimit("nofile", profile.nofile),
            _ulimit("fsize", profile.file_size_bytes),
        ],
        "LogConfig": {
            "Type": "json-file",
            "Config": {
                "max-size": str(profile.log_file_bytes),
                "max-file": str(profile.log_files),
            },
        },
    }


def _process(run_id: str, hostname: str) -> dict[str, Any]:
    return {
        "User": _ENTRANT,
        "Hostname": hostname,
        "Domainname": "",
        "Tty": False,
        "OpenStdin": False,
        "StdinOnce": False,
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGTERM",
        "Labels": {RUN_LABEL: run_id},
    }


def entrant_options(spec: EntrantSpec) -> dict[str, Any]:
    """Return the body of the engine's create call for an entrant's container.

    ENTRYPOINT and CMD stay the image's own. `Platform` is the query parameter.
    """
    return {
        "Image": spec.image_id,
        "Platform": spec.platform,
        "Env": _environment(spec),
        **_process(spec.run_id, "entrant"),
        "HostConfig": {
            **_isolation(spec.profile.seccomp()),
            **_entrant_limits(spec.profile),
            "Runtime": spec.profile.runtime,
            "Init": True,
            "Tmpfs": _tmpfs(spec),
            "Mounts": [
                _volume(spec.input_volume, INPUT, read_only=True),
                _volume(spec.output_volume, OUTPUT, read_only=False),
            ],
            "DeviceRequests": device_requests(spec.gpu),
        },
    }


def holder_options(spec: HolderSpec) -> dict[str, Any]:
    """Return the body of the engine's create call for the holder: our own image, no limits to tune.

    Its memory leaves room for the runtime's own start; the program needs one page.
    """
    return {
        "Image": spec.image_id,
        "Platform": spec.platform,
        "Env": [],
        **_process(spec.run_id, "holder"),
        "HostConfig": {
            **_isolation(spec.seccomp),
            "IpcMode": "none",
            "Memory": _HOLDER_MEMORY_BYTES,
            "MemorySwap": _HOLDER_MEMORY_BYTES,
            "PidsLimit": 16,
            "Init": False,
            "Ulimits": [_ulimit("core", 0)],
            "LogConfig": {"Type": "none", "Config": {}},
            "Mounts": [
                _volume(spec.input_volume, INPUT, read_only=False),
                _volume(spec.output_volume, OUTPUT, read_only=False),
            ],
        },
    }
