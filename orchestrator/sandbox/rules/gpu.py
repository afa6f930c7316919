"""GPUs: what is asked of the engine, who may run without one, and what a start error means."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, assert_never

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.text import escape_untrusted

QUERY_FIELDS: Final = (
    "uuid",
    "name",
    "driver_version",
    "memory.total",
    "compute_cap",
    "mig.mode.current",
    "ecc.mode.current",
    "power.limit",
    "clocks.max.sm",
    "vbios_version",
    "pci.bus_id",
)
"""The columns of `nvidia-smi --query-gpu`, in this order, `--format=csv,noheader,nounits`."""

QUERY_COMMAND: Final = (
    "nvidia-smi",
    f"--query-gpu={','.join(QUERY_FIELDS)}",
    "--format=csv,noheader,nounits",
)

_DEVICE_ID: Final = re.compile(r"(GPU|MIG)-[0-9A-Za-z/-]{1,100}")
_CDI_NAME: Final = re.compile(r"[a-z0-9.-]{1,60}/[a-z0-9_-]{1,30}=[0-9A-Za-z:_-]{1,100}")
_NO_GPU_MESSAGES: Final = (
    "could not select device driver",
    "unresolvable cdi devices",
    "cdi device injection failed",
    "nvidia-container-cli",
    "failed to discover gpu",
    "no known gpu vendor",
)


class GpuKind(StrEnum):
    """How the engine is told which device."""

    UUID = "uuid"
    CDI = "cdi"


class GpuPolicy(StrEnum):
    """What the edition says of GPUs."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRequest:
    """Named devices, never a count: a count of nothing gives a container without a GPU."""

    kind: GpuKind
    devices: tuple[str, ...]

    def __post_init__(self) -> None:
        pattern = _DEVICE_ID if self.kind is GpuKind.UUID else _CDI_NAME
        wrong = [device for device in self.devices if pattern.fullmatch(device) is None]
        if wrong or not self.devices:
            shown = escape_untrusted(wrong[0], 60) if wrong else "nothing"
            raise RefusedByPolicy(
                f"{shown} names no GPU; give a UUID as GPU-… or MIG-…, or a CDI name as "
                "nvidia.com/gpu=0"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU as `nvidia-smi` shows it, in `QUERY_FIELDS` order; text, for some are `[N/A]`."""

    uuid: str
    name: str
    driver_version: str
    memory_total_mib: str
    compute_capability: str
    mig_mode: str
    ecc_mode: str
    power_limit_w: str
    clocks_max_sm_mhz: str
    vbios_version: str
    pci_bus_id: str

    def document(self) -> dict[str, str]:
        """Return the facts for the record."""
        return asdict(self)


def device_requests(request: GpuRequest | None) -> list[dict[str, Any]]:
    """Return the engine API's `DeviceRequests`; `utility` lets NVML in."""
    if request is None:
        return []
    if request.kind is GpuKind.CDI:
        return [{"Driver": "cdi", "DeviceIDs": list(request.devices)}]
    return [
        {
            "Driver": "",
            "Count": 0,
            "DeviceIDs": list(request.devices),
            "Capabilities": [["gpu", "compute", "utility"]],
            "Options": {},
        }
    ]


def parse_nvidia_smi(text: str) -> tuple[GpuFacts, ...]:
    """Parse the answer to `QUERY_COMMAND`, one GPU a line.

    Raises:
        MalformedDocument: with the line whose columns are not those that were asked for.

    """
    found = []
    for number, row in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), start=1):
        if not row:
            continue
        values = [escape_untrusted(value.strip(), 100) for value in row]
        if len(values) != len(QUERY_FIELDS) or _DEVICE_ID.fullmatch(values[0]) is None:
            shown = escape_untrusted(",".join(row), 120)
            raise MalformedDocument(
                f"nvidia-smi line {number}: expected {len(QUERY_FIELDS)} columns that begin with "
                f"a GPU's UUID, got: {shown}"
            )
        found.append(GpuFacts(**dict(zip(GpuFacts.__slots__, values, strict=True))))
    return tuple(found)


def choose_gpus(
    policy: GpuPolicy, available: Sequence[str], *, kind: GpuKind = GpuKind.UUID
) -> GpuRequest | None:
    """Decide which of the host's GPUs a run gets: the first, for a run is one team's alone.

    Raises:
        RefusedByPolicy: when the edition requires a GPU and there is none; never a CPU instead.

    """
    match policy:
        case GpuPolicy.FORBIDDEN:
            return None
        case GpuPolicy.OPTIONAL:
            return GpuRequest(kind=kind, devices=(available[0],)) if available else None
        case GpuPolicy.REQUIRED:
            if not available:
                raise RefusedByPolicy(
                    "the edition requires a GPU and this host offers the engine none; "
                    "see `piste doctor`; nothing was spent"
                )
            return GpuRequest(kind=kind, devices=(available[0],))
        case _:
            assert_never(policy)


def is_gpu_error(engine_message: str) -> bool:
    """Tell whether the engine's start error means that the GPU could not be given."""
    lowered = engine_message.lower()
    return any(message in lowered for message in _NO_GPU_MESSAGES)


def gpu_lost(before: Sequence[GpuFacts], after: Sequence[GpuFacts]) -> bool:
    """Tell whether a GPU of before the run is missing or another one after it."""
    identity = {(gpu.uuid, gpu.driver_version, gpu.pci_bus_id) for gpu in before}
    return identity != {(gpu.uuid, gpu.driver_version, gpu.pci_bus_id) for gpu in after}
