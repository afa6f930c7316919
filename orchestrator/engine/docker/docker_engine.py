"""A real Docker engine behind the port. The only place where an engine is talked to."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from orchestrator.engine.docker import containers as engine_containers
from orchestrator.engine.docker import images as engine_images
from orchestrator.engine.docker.images import gathered
from orchestrator.engine.docker.session import EngineSession, engine_error
from orchestrator.engine.docker.usage_stream import UsageStream
from orchestrator.engine.ports import (
    Change,
    EngineDescription,
    EngineError,
    StartRefused,
    UsageSample,
    VolumeSpec,
)
from orchestrator.support.reporter import Reporter

_DESCRIPTION_S: Final = 5.0
"""How long a description is believed: a run asks a dozen times, at 15 ms each."""
_REMAPPED_ROOT: Final = re.compile(r"/(\d+)\.(\d+)/?$")


def _store(info: Mapping[str, Any]) -> str:
    """Return the image store; ids of a containerd store are no config digests."""
    kinds = dict(entry for entry in info.get("DriverStatus") or [] if len(entry) == 2)
    driver = str(info.get("Driver", "unknown"))
    if "containerd" in str(kinds.get("driver-type", "")):
        return f"containerd/{driver}"
    return driver


def _component(version: Mapping[str, Any], name: str) -> str:
    for component in version.get("Components") or []:
        if component.get("Name") == name:
            return str(component.get("Version", "unknown"))
    return "unknown"


def _describe(info: Mapping[str, Any], version: Mapping[str, Any]) -> EngineDescription:
    devices = info.get("DiscoveredDevices") or []
    return EngineDescription(
        engine_id=str(info.get("ID", "unknown")),
        docker=str(version.get("Version", "unknown")),
        api=str(version.get("ApiVersion", "unknown")),
        default_runtime=str(info.get("DefaultRuntime", "unknown")),
        runtimes=tuple(sorted(info.get("Runtimes") or {})),
        runc=_component(version, "runc"),
        containerd=_component(version, "containerd"),
        kernel=str(info.get("KernelVersion", "unknown")),
        architecture=str(info.get("Architecture", "unknown")),
        operating_system=str(info.get("OperatingSystem", "unknown")),
        store=_store(info),
        cgroup_version=str(info.get("CgroupVersion", "unknown")),
        security_options=tuple(info.get("SecurityOptions") or ()),
        limits={
            "memory": bool(info.get("MemoryLimit")),
            "swap": bool(info.get("SwapLimit")),
            "pids": bool(info.get("PidsLimit")),
            "cpu": bool(info.get("CpuCfsQuota")) and bool(info.get("CPUSet")),
        },
        data_root=str(info.get("DockerRootDir", "unknown")),
        cpus=int(info.get("NCPU", 0)),
        memory_bytes=int(info.get("MemTotal", 0)),
        cdi_devices=tuple(str(item["ID"]) for item in devices if item.get("Source") == "cdi"),
        raw=info,
    )


class DockerEngine:
    """The engine that `DOCKER_HOST` names, or the one on the default socket."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Take the connection's settings from `environment`; connect at the first call."""
        self._session = EngineSession(environment)
        self._id_offset: int | None = None
        self._usage: dict[str, UsageStream] = {}
        self._description: EngineDescription | None = None
        self._described_s = 0.0

    def describe(self) -> EngineDescription:
        """Return what the engine is, as it told within the last seconds."""
        now = time.monotonic()
        if self._description is not None and now - self._described_s < _DESCRIPTION_S:
            return self._description
        info = self._session.answer("GET", "/info", action="describe itself").json()
        version = self._session.answer("GET", "/version", action="tell its version").json()
        self._description, self._described_s = _describe(info, version), now
        return self._description

    def pull(
        self, repository: str, manifest_digest: str, platform: str, reporter: Reporter
    ) -> None:
        """Pull `repository@manifest_digest`, with the login of Docker's own configuration."""
        engine_images.pull(self._session, repository, manifest_digest, platform, reporter)

    def load_archive(
        self, archive: Iterable[bytes], size_bytes: int, reporter: Reporter
    ) -> tuple[str, ...]:
        """Load a docker-archive; return the ids that the engine names."""
        return engine_images.load(self._session, archive, size_bytes, reporter)

    def inspect_image(self, image_id: str) -> Mapping[str, Any] | None:
        """Return the image's inspection, or None."""
        return engine_images.inspect(self._session, image_id)

    def list_image_ids(self) -> tuple[str, ...]:
        """Return the full ids of all images."""
        return engine_images.list_ids(self._session)

    def save_image(self, image_id: str) -> Iterator[bytes]:
        """Stream the image as a docker-archive."""
        return engine_images.save(self._session, image_id)

    def remove_image(self, image_id: str) -> None:
        """Remove by id, with all names."""
        engine_images.remove(self._session, image_id)

    def _host_id(self, container_id: int) -> int:
        """Return the host's number of an id inside the container.

        Options of a volume are read on the host's side, where user namespaces shift ids; the
        offset is in the name of the data root.
        """
        if self._id_offset is None:
            description = self.describe()
            found = _REMAPPED_ROOT.search(description.data_root)
            remapped = any("userns" in option for option in description.security_options)
            self._id_offset = int(found[1]) if remapped and found else 0
        return container_id + self._id_offset

    def create_volume(self, spec: VolumeSpec) -> None:
        """Create a tmpfs volume of the local driver; it is mounted when a container uses it."""
        if self._exists_volume(spec.name):
            raise engine_error("create a volume", f"a volume named {spec.name} is there already")
        options = [
            f"size={spec.size_bytes}",
            f"nr_inodes={spec.inodes}",
            f"uid={self._host_id(spec.uid)}",
            f"gid={self._host_id(spec.gid)}",
            f"mode={spec.mode:04o}",
            "noexec,nosuid,nodev",
            *(["noswap"] if spec.noswap else []),
        ]
        self._session.answer(
            "POST",
            "/volumes/create",
            action="create a volume",
            json={
                "Name": spec.name,
                "Driver": "local",
                "DriverOpts": {"type": "tmpfs", "device": "tmpfs", "o": ",".join(options)},
            },
        )

    def _exists_volume(self, name: str) -> bool:
        found = self._session.call(
            "GET", f"/volumes/{name}", action="inspect a volume", absent_is_none=True
        )
        return found is not None

    def remove_volume(self, name: str) -> None:
        """Remove by name."""
        self._session.call(
            "DELETE", f"/volumes/{name}", action="remove a volume", absent_is_none=True
        )

    def list_volumes(self, prefix: str) -> tuple[str, ...]:
        """Return the names of volumes that start with `prefix`."""
        response = self._session.answer("GET", "/volumes", action="list volumes")
        names = [str(volume["Name"]) for volume in response.json().get("Volumes") or []]
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def create_container(self, name: str, options: Mapping[str, Any]) -> str:
        """Create from the API's own body."""
        body = {key: value for key, value in options.items() if key != "Platform"}
        params = {"name": name}
        if "Platform" in options:
            params["platform"] = options["Platform"]
        response = self._session.answer(
            "POST", "/containers/create", action="create a container", params=params, json=body
        )
        return str(response.json()["Id"])

    def inspect_container(self, container: str) -> Mapping[str, Any] | None:
        """Return the container's inspection, or None."""
        return engine_containers.inspect(self._session, container)

    def list_containers(self, prefix: str) -> tuple[str, ...]:
        """Return the names of all containers that start with `prefix`."""
        response = self._session.answer(
            "GET", "/containers/json", action="list containers", params={"all": 1}
        )
        names = [name.removeprefix("/") for item in response.json() for name in item["Names"]]
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def start_container(self, container: str) -> None:
        """Start it."""
        try:
            self._session.answer(
                "POST", f"/containers/{container}/start", action="start a container"
            )
        except EngineError as error:
            raise StartRefused(
                str(error), engine_message=error.engine_message, status=error.status
            ) from error

    def wait_for_exit(self, container: str, timeout_s: float) -> bool:
        """Return True when the container has ended, False after `timeout_s` seconds."""
        return engine_containers.wait_for_exit(self._session, container, timeout_s)

    def kill_container(self, container: str) -> None:
        """Send SIGKILL; 409 means that it does not run."""
        try:
            self._session.call(
                "POST",
                f"/containers/{container}/kill",
                action="kill a container",
                params={"signal": "KILL"},
                absent_is_none=True,
            )
        except EngineError as error:
            if error.status != 409:
                raise

    def remove_container(self, container: str) -> None:
        """Remove with anonymous volumes, force, and see that it is gone."""
        self._usage.pop(container, None)
        engine_containers.remove(self._session, container)

    def put_archive(self, container: str, path: str, chunks: Iterable[bytes]) -> None:
        """Unpack a tar stream at `path`, sent as it comes."""
        self._session.answer(
            "PUT",
            f"/containers/{container}/archive",
            action=f"unpack files at {path}",
            params={"path": path, "noOverwriteDirNonDir": 1},
            data=gathered(chunks),
            headers={"Content-Type": "application/x-tar"},
            timeout_s=None,
        )

    def get_archive(self, container: str, path: str) -> Iterator[bytes]:
        """Stream `path` as a tar; closing the iterator ends the transfer."""
        response = self._session.answer(
            "GET",
            f"/containers/{container}/archive",
            action=f"read files at {path}",
            params={"path": path},
            stream=True,
        )
        return self._session.chunks(response)

    def _logs(self, container: str, *, follow: bool) -> Iterator[bytes]:
        response = self._session.call(
            "GET",
            f"/containers/{container}/logs",
            action="read a log",
            params={"stdout": 1, "stderr": 1, "follow": int(follow)},
            stream=True,
            timeout_s=None,
            absent_is_none=True,
        )
        return iter(()) if response is None else self._session.frames(response)

    def read_log(self, container: str, limit_bytes: int) -> bytes:
        """Return at most `limit_bytes` of the log."""
        found = bytearray()
        for piece in self._logs(container, follow=False):
            found += piece[: limit_bytes - len(found)]
            if len(found) == limit_bytes:
                break
        return bytes(found)

    def follow_log(self, container: str) -> Iterator[bytes]:
        """Yield the log as it is written, until the container ends."""
        return self._logs(container, follow=True)

    def sample_usage(self, container: str) -> UsageSample | None:
        """Return the present use, or None when the container has ended."""
        if engine_containers.has_ended(self._session, container):
            self._usage.pop(container, None)
            return None
        if container in self._usage:
            return self._usage[container].newest
        self._usage[container] = UsageStream(self._session, container)
        return self._usage[container].begin()

    def saw_oom(self, container: str) -> bool:
        """Tell whether the engine saw an out-of-memory kill."""
        return engine_containers.saw_oom(self._session, container)

    def changes(self, container: str) -> tuple[Change, ...]:
        """Return how the container's root differs from its image."""
        return engine_containers.changes(self._session, container)
