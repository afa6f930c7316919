"""An engine in memory behind the same port: entrants are Python functions, time is simulated.

It passes the contract suite that the real engine passes. Volumes behave as memory volumes do: when
the last running container that uses one ends, its contents are gone.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.engine.ports import (
    Change,
    ChangeKind,
    EngineDescription,
    StartRefused,
    UsageSample,
    VolumeSpec,
)
from tests.support import simulated_archives as archives
from tests.support.simulated_images import SimulatedImages, refusal
from tests.support.simulated_world import (
    Entrant,
    SimulatedClock,
    SimulatedEnd,
    simulated_description,
    sleeps_for_ever,
)

_KILLED: Final = 137


@dataclass(slots=True, kw_only=True)
class _Volume:
    spec: VolumeSpec
    files: dict[str, bytes] = field(default_factory=dict)
    archive: bytes | None = None


@dataclass(slots=True, kw_only=True)
class _Container:
    container_id: str
    name: str
    options: Mapping[str, Any]
    created_s: float
    status: str = "created"
    started_s: float | None = None
    end: SimulatedEnd | None = None
    exit_code: int = 0
    root: tuple[str, ...] = ()
    """What was unpacked into its root."""


class EngineSimulator(SimulatedImages):
    """A container engine in memory. `description` may be replaced by a test."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self.clock = clock
        self.description = simulated_description()
        self.gpu_driver = False
        self.noswap = True
        self.alter_inspection: Callable[[dict[str, Any]], None] = lambda _inspection: None
        self._entrants: dict[str, Entrant] = {}
        self._volumes: dict[str, _Volume] = {}
        self._containers: dict[str, _Container] = {}

    def script(self, image_id: str, entrant: Entrant) -> None:
        """Say what containers of this image do."""
        self._entrants[image_id] = entrant

    def restart(self) -> None:
        """Answer again, as after a restart of the engine: what ran was killed with 143."""
        self._lost, self._lose_at = False, None
        for container in self._containers.values():
            if container.status == "running":
                self._ended(container, 143)

    def describe(self) -> EngineDescription:
        """Return the description."""
        self._called("describe")
        return self.description

    def create_volume(self, spec: VolumeSpec) -> None:
        """Remember an empty volume."""
        self._called("create_volume")
        if spec.name in self._volumes:
            raise refusal(f"a volume named {spec.name} is there already", 409)
        self._volumes[spec.name] = _Volume(spec=spec)

    def remove_volume(self, name: str) -> None:
        """Forget the volume; one in use is refused."""
        self._called("remove_volume")
        if any(name in self._mounts(item).values() for item in self._containers.values()):
            raise refusal("volume is in use", 409)
        self._volumes.pop(name, None)

    def list_volumes(self, prefix: str) -> tuple[str, ...]:
        """Return the matching names."""
        self._called("list_volumes")
        return tuple(sorted(name for name in self._volumes if name.startswith(prefix)))

    def create_container(self, name: str, options: Mapping[str, Any]) -> str:
        """Remember a container; a name that exists or an unknown image is refused."""
        self._called("create_container")
        if any(container.name == name for container in self._containers.values()):
            raise refusal("name in use", 409)
        if options["Image"] not in self._images:
            raise refusal("no such image", 404)
        container_id = hashlib.sha256(f"{name} {len(self.calls)}".encode()).hexdigest()
        self._containers[container_id] = _Container(
            container_id=container_id,
            name=name,
            options=copy.deepcopy(dict(options)),
            created_s=self.clock.seconds,
        )
        return container_id

    def _find(self, container: str) -> _Container | None:
        for item in self._containers.values():
            if container in {item.container_id, item.name}:
                return item
        return None

    def _must_find(self, container: str) -> _Container:
        found = self._find(container)
        if found is None:
            raise refusal("no such container", 404)
        return found

    @staticmethod
    def _mounts(container: _Container) -> dict[str, str]:
        mounts = container.options["HostConfig"].get("Mounts", [])
        return {str(mount["Target"]): str(mount["Source"]) for mount in mounts}

    def _volume_at(self, container: _Container, path: str) -> _Volume:
        return self._volumes[self._mounts(container)[path]]

    def inspect_container(self, container: str) -> Mapping[str, Any] | None:
        """Return what a real engine would show of the options and the state."""
        self._called("inspect_container")
        found = self._find(container)
        if found is None:
            return None
        self._look(found)
        image = self._images[found.options["Image"]]
        inspection = archives.inspection(found.options, image)
        started = found.started_s
        inspection |= {
            "Id": found.container_id,
            "Name": f"/{found.name}",
            "State": {
                "Status": found.status,
                "Running": found.status == "running",
                "ExitCode": found.exit_code,
                "OOMKilled": found.end is not None and found.end.out_of_memory,
                "StartedAt": "" if started is None else f"{started:.9f}",
            },
        }
        self.alter_inspection(inspection)
        return inspection

    def list_containers(self, prefix: str) -> tuple[str, ...]:
        """Return the matching names."""
        self._called("list_containers")
        names = (container.name for container in self._containers.values())
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def start_container(self, container: str) -> None:
        """Let the entrant do what it does; its output is there when its time is over."""
        self._called("start_container")
        found = self._must_find(container)
        if found.options["HostConfig"].get("DeviceRequests") and not self.gpu_driver:
            message = 'could not select device driver "" with capabilities: [[gpu]]'
            raise StartRefused("no GPU; see `piste doctor`", engine_message=message, status=500)
        if not self.noswap and any(
            self._volumes[v].spec.noswap for v in self._mounts(found).values()
        ):
            raise StartRefused(
                "cannot mount; see `piste doctor`", engine_message="invalid argument", status=500
            )
        found.status, found.started_s = "running", self.clock.seconds
        entrant = self._entrants.get(found.options["Image"], sleeps_for_ever)
        files = self._volume_at(found, "/input").files if "/input" in self._mounts(found) else {}
        found.end = entrant(dict(files))

    def _look(self, container: _Container) -> None:
        """Notice that a container's time is over."""
        end, started = container.end, container.started_s
        if container.status != "running" or end is None or started is None:
            return
        if end.runs_s is None or started + end.runs_s > self.clock.seconds:
            return
        if "/output" in self._mounts(container):
            volume = self._volume_at(container, "/output")
            volume.files |= end.files
            volume.archive = end.output_archive
        self._ended(container, end.exit_code)

    def _ended(self, container: _Container, exit_code: int) -> None:
        container.status, container.exit_code = "exited", exit_code
        running = [item for item in self._containers.values() if item.status == "running"]
        used = {name for item in running for name in self._mounts(item).values()}
        for name in set(self._mounts(container).values()) - used:
            self._volumes[name].files.clear()
            self._volumes[name].archive = None

    def wait_for_exit(self, container: str, timeout_s: float) -> bool:
        """Let time pass until the container ends, at most `timeout_s`."""
        self._called("wait_for_exit")
        found = self._find(container)
        if found is None:
            return True
        self._look(found)
        if found.status != "running":
            return found.status == "exited"
        assert found.end is not None
        assert found.started_s is not None
        left = timeout_s
        if found.end.runs_s is not None:
            left = min(timeout_s, found.started_s + found.end.runs_s - self.clock.seconds)
        self.clock.advance(left)
        self._look(found)
        return found.status == "exited"

    def kill_container(self, container: str) -> None:
        """End it with 137."""
        self._called("kill_container")
        found = self._find(container)
        if found is not None and found.status == "running":
            self._ended(found, _KILLED)

    def remove_container(self, container: str) -> None:
        """End it and forget it."""
        self._called("remove_container")
        found = self._find(container)
        if found is None:
            return
        if found.status == "running":
            self._ended(found, _KILLED)
        del self._containers[found.container_id]

    def put_archive(self, container: str, path: str, chunks: Iterable[bytes]) -> None:
        """Unpack into the volume at `path`, or into a root that is not read-only."""
        self._called("put_archive")
        found = self._must_find(container)
        if path == "/" and not found.options["HostConfig"].get("ReadonlyRootfs"):
            found.root += archives.paths(b"".join(chunks))
            return
        volume = self._volume_at(found, path)
        volume.files |= archives.unpack(b"".join(chunks))
        if sum(map(len, volume.files.values())) > volume.spec.size_bytes:
            raise refusal("no space left on device", 500)

    def get_archive(self, container: str, path: str) -> Iterator[bytes]:
        """Stream the volume at `path`."""
        self._called("get_archive")
        found = self._must_find(container)
        if path not in self._mounts(found):
            raise refusal("no such path", 404)
        volume = self._volume_at(found, path)
        if volume.archive is not None:
            return iter((volume.archive,))
        return iter((archives.pack(path.removeprefix("/"), volume.files),))

    def read_log(self, container: str, limit_bytes: int) -> bytes:
        """Return the beginning of the log."""
        self._called("read_log")
        end = self._must_find(container).end
        return b"" if end is None else end.log[:limit_bytes]

    def follow_log(self, container: str) -> Iterator[bytes]:
        """Yield the log at once."""
        self._called("follow_log")
        end = self._must_find(container).end
        return iter(() if end is None or not end.log else (end.log,))

    def sample_usage(self, container: str) -> UsageSample | None:
        """Return fixed figures for whatever runs."""
        self._called("sample_usage")
        found = self._find(container)
        if found is None or found.status != "running":
            return None
        return UsageSample(
            memory_bytes=2**20, memory_peak_bytes=2**21, processes=1, cpu_s=self.clock.seconds
        )

    def saw_oom(self, container: str) -> bool:
        """Tell what the script says."""
        self._called("saw_oom")
        found = self._find(container)
        return found is not None and found.end is not None and found.end.out_of_memory

    def changes(self, container: str) -> tuple[Change, ...]:
        """Return what the script adds to a root that is not read-only."""
        self._called("changes")
        found = self._must_find(container)
        if found.end is None or found.options["HostConfig"].get("ReadonlyRootfs"):
            return ()
        paths = sorted({*found.root, *found.end.changed})
        return tuple(Change(path=path, kind=ChangeKind.ADDED) for path in paths)
