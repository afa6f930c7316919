"""A container engine, as the sandbox needs it. Every method lets out only PisteErrors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from manifests.errors import PlatformFault
from orchestrator.support.reporter import Reporter


class EngineUnavailable(PlatformFault):
    """No engine answers, or it was lost in mid-call."""


class EngineError(PlatformFault):
    """The engine answered and refused. `engine_message` is its own text, not to be shown as is."""

    def __init__(self, message: str, *, engine_message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.engine_message = engine_message
        self.status = status


class StartRefused(EngineError):  # noqa: N818
    """The engine would not start a created container."""


class PullFailed(EngineError):  # noqa: N818
    """The registry or the engine would not bring in an image; nothing was spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDescription:
    """What the engine says of itself."""

    engine_id: str
    docker: str
    api: str
    default_runtime: str
    runtimes: tuple[str, ...]
    runc: str
    containerd: str
    kernel: str
    architecture: str
    operating_system: str
    store: str
    cgroup_version: str
    security_options: tuple[str, ...]
    limits: Mapping[str, bool]
    """memory, swap, pids, cpu: what the engine claims to be able to limit."""
    data_root: str
    cpus: int
    memory_bytes: int
    cdi_devices: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSpec:
    """A size-limited tmpfs volume; sizes in bytes, ids as inside the container."""

    name: str
    size_bytes: int
    inodes: int
    uid: int
    gid: int
    mode: int
    noswap: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSample:
    """What a running container uses at one moment."""

    memory_bytes: int
    memory_peak_bytes: int
    processes: int
    cpu_s: float


class ChangeKind(StrEnum):
    """What a container did to a path of its image."""

    MODIFIED = "modified"
    ADDED = "added"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A path on which a container's root differs from its image; the path is untrusted."""

    path: str
    kind: ChangeKind


class ContainerEngine(Protocol):
    """A real Docker engine, or its simulator. Names are exact; images are named by full id only."""

    def describe(self) -> EngineDescription:
        """Return what the engine is. Raises EngineUnavailable with the remedy."""

    def pull(
        self, repository: str, manifest_digest: str, platform: str, reporter: Reporter
    ) -> None:
        """Pull `repository@manifest_digest`, reporting bytes."""

    def load_archive(
        self, archive: Iterable[bytes], size_bytes: int, reporter: Reporter
    ) -> tuple[str, ...]:
        """Load a docker-archive whose manifest.json names no tag.

        Returns the full ids that the engine says it loaded.
        """

    def inspect_image(self, image_id: str) -> Mapping[str, Any] | None:
        """Return the engine's inspection of the image with this full id, or None."""

    def list_image_ids(self) -> tuple[str, ...]:
        """Return the full ids of all images, intermediate ones included."""

    def save_image(self, image_id: str) -> Iterator[bytes]:
        """Stream the image as a docker-archive."""

    def remove_image(self, image_id: str) -> None:
        """Remove by id, force; an absent image is fine."""

    def create_volume(self, spec: VolumeSpec) -> None:
        """Create a tmpfs volume; a name that exists is a PlatformFault."""

    def remove_volume(self, name: str) -> None:
        """Remove by name; an absent volume is fine."""

    def list_volumes(self, prefix: str) -> tuple[str, ...]:
        """Return the names of volumes that start with `prefix`."""

    def create_container(self, name: str, options: Mapping[str, Any]) -> str:
        """Create from the engine API's own body (`Image`, `Cmd`, `Env`, `HostConfig` …).

        `options["Platform"]`, when given, becomes the query parameter. Returns the full id.
        """

    def inspect_container(self, container: str) -> Mapping[str, Any] | None:
        """Return the engine's inspection, or None where there is none."""

    def list_containers(self, prefix: str) -> tuple[str, ...]:
        """Return the names of all containers, stopped ones included, that start with `prefix`."""

    def start_container(self, container: str) -> None:
        """Start. Raises StartRefused when the engine will not."""

    def wait_for_exit(self, container: str, timeout_s: float) -> bool:
        """Return True when the container has ended, False after `timeout_s` seconds."""

    def kill_container(self, container: str) -> None:
        """Send SIGKILL; a container that has ended is fine."""

    def remove_container(self, container: str) -> None:
        """Remove with its anonymous volumes, force; an absent container is fine."""

    def put_archive(self, container: str, path: str, chunks: Iterable[bytes]) -> None:
        """Unpack a tar stream at `path`; chunks are sent as they come."""

    def get_archive(self, container: str, path: str) -> Iterator[bytes]:
        """Stream `path` as a tar."""

    def read_log(self, container: str, limit_bytes: int) -> bytes:
        """Return at most `limit_bytes` of stdout and stderr, stdout and stderr interleaved."""

    def follow_log(self, container: str) -> Iterator[bytes]:
        """Yield pieces of the log as they are written, until the container ends."""

    def sample_usage(self, container: str) -> UsageSample | None:
        """Return the present use, or None when the container has ended."""

    def saw_oom(self, container: str) -> bool:
        """Tell whether the engine reported an out-of-memory event or flag for this container."""

    def changes(self, container: str) -> tuple[Change, ...]:
        """Return how the container's root differs from its image; mounts are not part of it."""
