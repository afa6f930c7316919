"""Which GPUs a host offers, and by which name: the engine's own, or the vendor's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.sandbox.gpu_probe import GpuUnavailable
from orchestrator.sandbox.host_gpus import HostGpus
from orchestrator.sandbox.rules.elf import Architecture
from orchestrator.sandbox.rules.gpu import GpuKind, GpuRequest
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.support.reporter import SilentReporter
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import SimulatedClock

UUID = "GPU-5f1c2d3e-0000-1111-2222-333344445555"


def host(
    *, cdi: tuple[str, ...] = (), runtimes: tuple[str, ...] = ("runc",)
) -> tuple[HostGpus, EngineSimulator]:
    engine = EngineSimulator(SimulatedClock())
    engine.description = replace(engine.description, cdi_devices=cdi, runtimes=runtimes)
    helper = tiny_image({"run": b"x"}, entrypoint=("/run",), architecture=Architecture.AMD64)

    def load_helper() -> str:
        engine.load_archive([helper.archive], len(helper.archive), SilentReporter())
        return helper.image_id

    return HostGpus(engine, list_uuids=lambda: (UUID,), load_helper=load_helper), engine


def test_where_the_engine_knows_cdi_devices_they_are_named() -> None:
    names = ("nvidia.com/gpu=all", "nvidia.com/gpu=1", "vendor.com/net=0", "nvidia.com/gpu=0")
    gpus, _ = host(cdi=names, runtimes=("runc", "nvidia"))
    assert gpus.kind is GpuKind.CDI
    assert gpus.available() == ("nvidia.com/gpu=0", "nvidia.com/gpu=1")


def test_else_the_vendors_uuids_are_if_the_engine_has_its_runtime() -> None:
    gpus, _ = host(runtimes=("runc", "nvidia"))
    assert (gpus.kind, gpus.available()) == (GpuKind.UUID, (UUID,))


@pytest.mark.parametrize("cdi", [(), ("vendor.com/net=0",), ("nvidia.com/gpu=all",)])
def test_a_gpu_that_the_engine_cannot_give_is_none(cdi: tuple[str, ...]) -> None:
    gpus, _ = host(cdi=cdi)
    assert (gpus.kind, gpus.available()) == (GpuKind.UUID, ())


def test_a_probe_that_cannot_start_is_refused_and_leaves_nothing() -> None:
    gpus, engine = host(runtimes=("runc", "nvidia"))
    with pytest.raises(GpuUnavailable, match="nothing was spent"):
        gpus.probe(GpuRequest(kind=GpuKind.UUID, devices=(UUID,)))
    assert engine.list_containers("piste-") == ()
    assert engine.list_volumes("piste-") == ()
