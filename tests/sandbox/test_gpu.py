"""GPU policy, requests, and what nvidia-smi says."""

from __future__ import annotations

import pytest

from manifests.errors import MalformedDocument, RefusedByPolicy
from orchestrator.sandbox.rules.gpu import (
    GpuKind,
    GpuPolicy,
    GpuRequest,
    choose_gpus,
    device_requests,
    gpu_lost,
    is_gpu_error,
    parse_nvidia_smi,
)

LINE = (
    "GPU-8f6f1e0c-0000-1111-2222-333344445555, NVIDIA A100-SXM4-40GB, 550.54.15, 40960, 8.0, "
    "Disabled, Enabled, 400.00, 1410, 92.00.45.00.03, 00000000:07:00.0\n"
)
UUID = "GPU-8f6f1e0c-0000-1111-2222-333344445555"


def test_the_answer_of_nvidia_smi_is_parsed_by_column() -> None:
    (gpu,) = parse_nvidia_smi(LINE)
    assert gpu.uuid == UUID
    assert gpu.name == "NVIDIA A100-SXM4-40GB"
    assert gpu.memory_total_mib == "40960"
    assert gpu.pci_bus_id == "00000000:07:00.0"
    assert gpu.document()["mig_mode"] == "Disabled"


def test_no_gpu_is_no_line() -> None:
    assert parse_nvidia_smi("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "No devices were found\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        LINE.replace(UUID, "0"),
        LINE.rsplit(",", 1)[0],
        LINE.replace("Disabled", "a, b"),
    ],
)
def test_any_other_answer_is_malformed(text: str) -> None:
    with pytest.raises(MalformedDocument, match="nvidia-smi line 1"):
        parse_nvidia_smi(text)


def test_required_without_a_gpu_is_refused_before_anything_is_spent() -> None:
    with pytest.raises(RefusedByPolicy, match="nothing was spent") as refused:
        choose_gpus(GpuPolicy.REQUIRED, [])
    assert refused.value.exit_code == 3


def test_each_policy_chooses_one_gpu_or_none() -> None:
    chosen = GpuRequest(kind=GpuKind.UUID, devices=(UUID,))
    assert choose_gpus(GpuPolicy.REQUIRED, [UUID, "GPU-2"]) == chosen
    assert choose_gpus(GpuPolicy.OPTIONAL, [UUID]) == chosen
    assert choose_gpus(GpuPolicy.OPTIONAL, []) is None
    assert choose_gpus(GpuPolicy.FORBIDDEN, [UUID]) is None


def test_cdi_devices_are_asked_for_by_their_names() -> None:
    request = GpuRequest(kind=GpuKind.CDI, devices=("nvidia.com/gpu=0:1",))
    assert device_requests(request) == [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0:1"]}]
    assert device_requests(None) == []


@pytest.mark.parametrize(
    ("kind", "devices"),
    [
        (GpuKind.UUID, ()),
        (GpuKind.UUID, ("all",)),
        (GpuKind.UUID, ("0",)),
        (GpuKind.UUID, ("nvidia.com/gpu=0",)),
        (GpuKind.CDI, (UUID,)),
        (GpuKind.CDI, ("nvidia.com/gpu=0\n",)),
    ],
)
def test_a_request_names_devices(kind: GpuKind, devices: tuple[str, ...]) -> None:
    with pytest.raises(RefusedByPolicy, match="names no GPU"):
        GpuRequest(kind=kind, devices=devices)


def test_a_gpu_that_changed_or_went_is_lost() -> None:
    before = parse_nvidia_smi(LINE)
    assert not gpu_lost(before, before)
    assert gpu_lost(before, ())
    assert gpu_lost(before, parse_nvidia_smi(LINE.replace("550.54.15", "560.1")))
    assert not gpu_lost((), ())


def test_the_engines_words_for_a_missing_gpu_are_known() -> None:
    assert is_gpu_error('could not select device driver "" with capabilities: [[gpu]]')
    assert is_gpu_error("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0")
    assert not is_gpu_error("no such file or directory")
