"""The vendor's list of GPUs: taken where it is well formed, empty wherever it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.sandbox.nvidia import nvidia_smi
from orchestrator.sandbox.nvidia.nvidia_smi import list_gpu_uuids

FIRST = "GPU-5f1c2d3e-0000-1111-2222-333344445555"
SLICE = "MIG-aa1c2d3e-0000-1111-2222-333344445555"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called nvidia-smi, the only one in PATH; a test writes its script."""
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "nvidia-smi"
    path.touch(mode=0o755)
    return path


def test_every_uuid_is_returned_in_the_tools_order(tool: Path) -> None:
    tool.write_text(f'#!/bin/sh\necho "$*" > "$0.asked"\necho {SLICE}\necho {FIRST}\n')
    assert list_gpu_uuids() == (SLICE, FIRST)
    assert tool.with_name("nvidia-smi.asked").read_text() == (
        "--query-gpu=uuid --format=csv,noheader\n"
    )


def test_without_the_tool_there_are_none(tool: Path) -> None:
    tool.unlink()
    assert list_gpu_uuids() == ()


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\necho 'NVIDIA-SMI has failed: no driver'\n",
        f"#!/bin/sh\necho {FIRST}\nexit 9\n",
        "#!/bin/sh\nprintf '\\033[31mGPU-red\\n'\n",
        "#!/nowhere/sh\n",
        "",
    ],
    ids=["an error on stdout", "an exit code", "a control character", "no interpreter", "empty"],
)
def test_a_tool_that_fails_offers_none(tool: Path, script: str) -> None:
    tool.write_text(script)
    assert list_gpu_uuids() == ()


def test_a_tool_that_hangs_is_given_up(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool.write_text(f"#!/bin/sh\necho {FIRST}\nexec /bin/sleep 60\n")
    monkeypatch.setattr(nvidia_smi, "_TIMEOUT_S", 0.2)
    assert list_gpu_uuids() == ()
