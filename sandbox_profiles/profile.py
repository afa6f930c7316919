"""The limits of a sandbox as typed data. No field switches a guarantee off."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from importlib import resources
from typing import Annotated, Any, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from manifests.encoding import canonical_json
from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from sandbox_profiles.seccomp import SocketFamily, seccomp_document

_SIZE = re.compile(r"([0-9]{1,15}) ?(B|KiB|MiB|GiB|TiB)", re.ASCII)
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class ShippedProfile(StrEnum):
    """The profiles that come with piste."""

    CERTIFIED = "certified"
    STRICT = "strict"
    GVISOR = "gvisor"


class Boundary(StrEnum):
    """Which kernel answers an entrant's system calls, and thus what keeps them from the host."""

    HOST_KERNEL = "host-kernel"
    """The host's own, behind our system-call filter."""
    SENTRY = "sentry"
    """gVisor's, a program that makes few calls to the host's and filters those by itself."""


def boundary_of(runtime: str) -> Boundary:
    """Return what a runtime of this name puts between the entrant and the host.

    gVisor is `runsc`, or a second registration of it as `runsc-kvm`; the self-test shows that it is
    one.
    """
    is_gvisor = runtime == "runsc" or runtime.startswith("runsc-")
    return Boundary.SENTRY if is_gvisor else Boundary.HOST_KERNEL


def _parse_size(value: object) -> object:
    """Read `1GiB` as a number of bytes; anything but text passes on to the type check."""
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value)
    if found is None:
        raise ValueError("a size is a number of bytes or as 512MiB, 1GiB")
    return int(found[1]) * _UNITS[found[2]]


Bytes = Annotated[int, BeforeValidator(_parse_size), Field(strict=True, ge=4096, le=2**44)]
"""A size; in YAML plain bytes or with a binary unit."""

Count = Annotated[int, Field(strict=True, ge=1, le=2**22)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
VariableValue = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]{0,255}$")]


class SandboxProfile(BaseModel):
    """What an entrant's container may use; the guarantees themselves are not negotiable.

    Sizes are in bytes, times in seconds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    runtime: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9.-]{0,63}$")]
    memory_bytes: Bytes
    cpus: Annotated[int, Field(strict=True, ge=1, le=1024)]
    cpuset: Annotated[str, StringConstraints(pattern=r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$")]
    pids: Annotated[int, Field(strict=True, ge=16, le=2**22)]
    tmp_bytes: Bytes
    tmp_inodes: Count
    shm_bytes: Bytes | None
    """Size of a private `/dev/shm`; None: there is none."""
    input_headroom_bytes: Bytes
    """What the input volume is larger than its files, for directories and rounding."""
    output_bytes: Bytes
    output_inodes: Count
    output_files: Count
    """Files that are collected at most; more is an outcome."""
    output_file_bytes: Bytes
    """Size of one collected file at most."""
    file_size_bytes: Bytes
    """RLIMIT_FSIZE, for every file of the container; it must leave room for `/dev/shm`."""
    nofile: Count
    deadline_s: Annotated[int, Field(strict=True, ge=1, le=7 * 86400)]
    log_file_bytes: Bytes
    log_files: Annotated[int, Field(strict=True, ge=1, le=10)]
    socket_families: Annotated[tuple[SocketFamily, ...], Field(min_length=1)]
    environment: dict[VariableName, VariableValue | None]
    """Variables set over the image's own; None takes the image's variable away."""
    thread_variables: tuple[VariableName, ...]
    """Variables that are set to the number of CPUs, which a CPU quota does not show."""

    @model_validator(mode="after")
    def _fits_in_memory(self) -> Self:
        """Refuse tmpfs sizes that turn a full disk into a memory kill: their pages are charged."""
        charged = self.tmp_bytes + (self.shm_bytes or 0) + self.output_bytes
        if charged >= self.memory_bytes:
            raise ValueError(
                f"tmp_bytes + shm_bytes + output_bytes is {charged}, and memory_bytes of "
                f"{self.memory_bytes} must be more: those pages are charged to the container"
            )
        if self.shm_bytes is not None and self.file_size_bytes < self.shm_bytes:
            raise ValueError("file_size_bytes must not be less than shm_bytes")
        return self

    @property
    def boundary(self) -> Boundary:
        """Return what the profile's runtime puts between the entrant and the host."""
        return boundary_of(self.runtime)

    @property
    def log_bytes(self) -> int:
        """Return how much of the log the engine keeps at most."""
        return self.log_file_bytes * self.log_files

    def variables(self) -> dict[str, str | None]:
        """Return the environment, thread counts included."""
        threads = {name: str(self.cpus) for name in self.thread_variables}
        return dict(sorted((self.environment | threads).items()))

    def seccomp(self) -> dict[str, Any]:
        """Return the system-call filter as the engine reads it."""
        return seccomp_document(self.socket_families)

    def document(self) -> dict[str, Any]:
        """Return all that the profile says, the system-call filter included."""
        return {**self.model_dump(mode="json"), "seccomp": self.seccomp()}

    def sha256(self) -> str:
        """Return the SHA-256 of the canonical JSON of `document`, in hex."""
        return hashlib.sha256(canonical_json(self.document())).hexdigest()


def _line_of(node: yaml.Node | None, field: object) -> str:
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if key.value == field:
                return f" line {key.start_mark.line + 1}"
    return ""


def _read_yaml(data: bytes, source: str) -> tuple[Any, yaml.Node | None]:
    try:
        return yaml.safe_load(data), yaml.compose(data, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        fact = escape_untrusted(" ".join(str(error).split()), 200)
        raise MalformedDocument(f"{source}: not YAML: {fact}") from error


def parse_profile(data: bytes, source: str) -> SandboxProfile:
    """Parse a profile from YAML. `source` names the file in messages.

    Raises:
        MalformedDocument: with the line and the field that is wrong, unknown or missing.

    """
    values, node = _read_yaml(data, source)
    if not isinstance(values, dict):
        raise MalformedDocument(f"{source}: expected a mapping of fields")
    if isinstance(node, yaml.MappingNode) and len(node.value) != len(values):
        raise MalformedDocument(f"{source}: a field stands twice; write each field once")
    try:
        return SandboxProfile.model_validate(values)
    except ValidationError as error:
        # An unknown field is often a misspelt one: name it before the one that then is missing.
        first = min(error.errors(), key=lambda fact: fact["type"] != "extra_forbidden")
        where = escape_untrusted(".".join(str(part) for part in first["loc"]) or "profile", 80)
        line = _line_of(node, first["loc"][0] if first["loc"] else None)
        fact = escape_untrusted(first["msg"], 300)
        raise MalformedDocument(f"{source}{line}: {where}: {fact}") from error


def load_profile(name: str) -> SandboxProfile:
    """Load a shipped profile by its name.

    Raises:
        MalformedDocument: when there is none of that name.

    """
    if name not in set(ShippedProfile):
        shipped = ", ".join(ShippedProfile)
        raise MalformedDocument(
            f"no sandbox profile named {escape_untrusted(name, 60)}; piste ships {shipped}"
        )
    data = resources.files("sandbox_profiles").joinpath(f"{name}.yaml").read_bytes()
    return parse_profile(data, f"{name}.yaml")
