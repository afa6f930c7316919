"""One executor: certified, dry and replayed runs cannot differ in how an image is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.sandbox.gpu_probe import GpuUnavailable
from orchestrator.sandbox.rules.gpu import GpuFacts, GpuKind, GpuRequest
from tests.support.simulated_certify import Simulation, honest, seal_workspace, simulate
from tests.support.simulated_world import SimulatedEnd

ROOT = Path(__file__).parents[2]
GPU = GpuFacts(**{each.name: f"its {each.name}" for each in fields(GpuFacts)})


@pytest.fixture
def simulation(tmp_path: Path) -> Simulation:
    seal_workspace(tmp_path)
    return simulate(tmp_path)


class OneGpu:
    """A host with one GPU, whose probes answer in turn."""

    kind = GpuKind.UUID

    def __init__(self, *answers: tuple[GpuFacts, ...] | Exception) -> None:
        self._answers = iter(answers)

    def available(self) -> tuple[str, ...]:
        return ("GPU-1",)

    def probe(self, request: GpuRequest) -> tuple[GpuFacts, ...]:
        assert request.devices == ("GPU-1",)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def callers(function: str) -> set[str]:
    """Return the modules of the product that call `function`, relative to the project."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "orchestrator").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == function
    }


def test_images_of_entrants_are_run_by_the_executor_alone() -> None:
    users = {
        "orchestrator/runs/certify.py",
        "orchestrator/runs/replay.py",
        "orchestrator/entrants/dry_run.py",
    }
    assert callers("run_in_sandbox") == {"orchestrator/runs/execute_run.py"}
    assert callers("execute_run") == users
    assert callers("prepare_run") == users


@pytest.mark.parametrize(
    "after",
    [
        GpuUnavailable("nvidia-smi ended with 9 inside a container"),
        (replace(GPU, driver_version="another"),),
        (),
    ],
)
def test_a_gpu_that_is_lost_during_a_run_is_our_fault_and_refunded(
    simulation: Simulation, after: tuple[GpuFacts, ...] | Exception
) -> None:
    simulation.engine.gpu_driver = True
    simulation.host = replace(simulation.host, gpus=OneGpu((GPU,), after))
    run = simulation.certify()
    assert run.record.outcome is Outcome.PLATFORM_FAULT
    assert Diagnostic.GPU_LOST in run.record.diagnostics
    assert run.record.voided is not None
    assert simulation.quota.used == 0
    assert simulation.left() == []


def test_a_gpu_that_stays_as_it_was_is_recorded_before_and_after(simulation: Simulation) -> None:
    simulation.engine.gpu_driver = True
    simulation.host = replace(simulation.host, gpus=OneGpu((GPU,), (GPU,)))
    run = simulation.certify()
    assert run.record.outcome is Outcome.COMPLETED
    shown = GPU.document()
    assert run.record.gpu == {"requested": ["GPU-1"], "before": [shown], "after": [shown]}


def invalid(text: Callable[[], bytes]) -> Callable[[Mapping[str, bytes]], SimulatedEnd]:
    return lambda _files: SimulatedEnd(files={"predictions.jsonl": text()})


def test_invalid_answers_that_differ_between_repeats_do_not_agree(simulation: Simulation) -> None:
    """A dry run has always said so; a certified run compared only what it could read."""
    wavering = iter([b"{", b"["])
    run = simulation.certify(invalid(lambda: next(wavering)), repeat=2)
    assert run.record.outcome is Outcome.INVALID_PREDICTIONS
    assert run.record.repeats_agree is False
    assert Diagnostic.PREDICTIONS_DISAGREE in run.record.diagnostics
    assert simulation.certify(invalid(lambda: b"{"), repeat=2).record.repeats_agree is True
    assert simulation.certify(honest, repeat=2).record.repeats_agree is True
