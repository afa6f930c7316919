"""The GPU probe inside a container, on the simulated engine; advisories on runtimes."""

from __future__ import annotations

import pytest

from manifests.errors import PlatformFault
from orchestrator.host.rules.advisories import runc_advisory
from orchestrator.sandbox.gpu_probe import (
    GpuUnavailable,
    gpu_probe_options,
    probe_gpus,
)
from orchestrator.sandbox.rules.container_options import EntrantSpec
from orchestrator.sandbox.rules.elf import Architecture
from orchestrator.sandbox.rules.gpu import QUERY_COMMAND, GpuKind, GpuRequest
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.support.reporter import SilentReporter
from sandbox_profiles.profile import load_profile
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import SimulatedClock, SimulatedEnd

HELPER = tiny_image({"x": b"x"}, entrypoint=("/x",), architecture=Architecture.AMD64)
SPEC = EntrantSpec(
    run_id="0123456789abcdef",
    image_id=HELPER.image_id,
    platform="linux/amd64",
    input_volume="none",
    output_volume="none",
    profile=load_profile("certified"),
    gpu=GpuRequest(kind=GpuKind.UUID, devices=("GPU-1",)),
)
ANSWER = b"GPU-1, A100, 550.54, 40960, 8.0, Disabled, Enabled, 400.00, 1410, 92.0, 0000:07:00.0\n"


@pytest.fixture
def engine() -> EngineSimulator:
    made = EngineSimulator(SimulatedClock())
    made.gpu_driver = True
    made.load_archive([HELPER.archive], len(HELPER.archive), SilentReporter())
    return made


def answering(engine: EngineSimulator, end: SimulatedEnd) -> None:
    engine.script(HELPER.image_id, lambda _files: end)


def test_the_probe_asks_for_the_device_with_all_of_an_entrants_limits() -> None:
    options = gpu_probe_options(SPEC)
    assert [*options["Entrypoint"], *options["Cmd"]] == list(QUERY_COMMAND)
    host = options["HostConfig"]
    assert host["DeviceRequests"][0]["DeviceIDs"] == ["GPU-1"]
    assert host["Mounts"] == []
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True


def test_the_answer_inside_the_container_counts_and_nothing_stays(engine: EngineSimulator) -> None:
    answering(engine, SimulatedEnd(log=ANSWER))
    (gpu,) = probe_gpus(engine, SPEC)
    assert (gpu.uuid, gpu.driver_version) == ("GPU-1", "550.54")
    assert engine.list_containers("piste-") == ()


@pytest.mark.parametrize(
    "end",
    [
        SimulatedEnd(exit_code=9, log=b"couldn't communicate with the NVIDIA driver"),
        SimulatedEnd(log=b""),
    ],
)
def test_a_container_without_a_gpu_is_refused(engine: EngineSimulator, end: SimulatedEnd) -> None:
    answering(engine, end)
    with pytest.raises(GpuUnavailable, match="nothing was spent"):
        probe_gpus(engine, SPEC)
    assert engine.list_containers("piste-") == ()


def test_an_engine_without_a_driver_is_refused_in_its_own_words(engine: EngineSimulator) -> None:
    engine.gpu_driver = False
    with pytest.raises(GpuUnavailable, match="could not select device driver") as refused:
        probe_gpus(engine, SPEC)
    assert refused.value.exit_code == 3
    assert engine.list_containers("piste-") == ()


@pytest.mark.parametrize("end", [SimulatedEnd(log=b"?"), SimulatedEnd(runs_s=None)])
def test_a_probe_that_makes_no_sense_is_our_fault(
    engine: EngineSimulator, end: SimulatedEnd
) -> None:
    answering(engine, end)
    with pytest.raises(PlatformFault):
        probe_gpus(engine, SPEC)
    assert engine.list_containers("piste-") == ()


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("1.1.5+ds1", True),
        ("1.2.7", True),
        ("1.2.8", False),
        ("1.3.2", True),
        ("1.3.3", False),
        ("1.4.0", False),
        ("v1.10.0", False),
        ("2.0.0", False),
        ("unknown", True),
    ],
)
def test_runtimes_with_known_escapes_are_told(version: str, known: bool) -> None:
    assert (runc_advisory(version) is not None) is known
