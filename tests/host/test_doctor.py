"""`doctor` judges a host by what it says and does, and has a remedy for whatever fails."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from manifests.errors import PlatformFault, RefusedByPolicy
from orchestrator.cli.views.doctor_view import doctor_document, doctor_view
from orchestrator.engine.ports import ContainerEngine, VolumeSpec
from orchestrator.host import doctor_sandbox
from orchestrator.host.doctor import DoctorReport, Examination, examine_host
from orchestrator.host.doctor_host import (
    GIB,
)
from orchestrator.host.doctor_sandbox import sandbox_findings, try_profile
from orchestrator.host.linux.linux_host import LinuxHost
from orchestrator.host.ports import HostFacts
from orchestrator.host.rules.host_findings import HostFinding, Status, Topic
from orchestrator.sandbox.ports import NoGpus
from orchestrator.sandbox.rules.gpu import GpuFacts, GpuKind, GpuRequest, parse_nvidia_smi
from orchestrator.sandbox.self_test import CheckResult
from orchestrator.workspace.files.workspace_files import open_workspace
from sandbox_profiles.profile import load_profile
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import SimulatedClock

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
FACTS = HostFacts(core_pattern="core", swap_areas=(), clock_is_synchronised=True, time_zone="UTC")
CERTIFIED = load_profile("certified")


def named(findings: object, name: str) -> HostFinding:
    assert isinstance(findings, list | tuple)
    found = [each for each in findings if each.name == name]
    assert len(found) == 1, f"{len(found)} findings are named {name}"
    assert isinstance(found[0], HostFinding)
    return found[0]


def result(name: str, *, holds: bool = True, seen: str = "0") -> CheckResult:
    return CheckResult(name=name, holds=holds, expected="0", seen=seen)


ALL_HOLD = tuple(result(name) for name in (*doctor_sandbox._ROWS, "getuid", "clone3: refused"))


@pytest.mark.parametrize("name", doctor_sandbox._ROWS)
def test_each_limit_that_does_not_act_fails_with_its_own_remedy(name: str) -> None:
    results = tuple(replace(each, holds=each.name != name) for each in ALL_HOLD)
    failed = [each for each in sandbox_findings(CERTIFIED, results) if each.status is Status.FAIL]
    assert len(failed) == 1
    assert failed[0].seen.startswith(f"{name}: expected 0, saw 0")
    assert failed[0].remedy
    assert failed[0].profile == "certified"


def test_a_smaller_check_that_fails_is_named_in_the_common_row() -> None:
    results = (*ALL_HOLD, result("bpf: refused", holds=False, seen="3"))
    found = named(list(sandbox_findings(CERTIFIED, results)), "identity and system calls")
    assert found.status is Status.FAIL
    assert found.seen == "1 of 3 checks fail: bpf: refused: saw 3"


class Host:
    def __init__(self, facts: HostFacts = FACTS, free: int | None = 100 * GIB) -> None:
        self._facts, self._free = facts, free

    def facts(self) -> HostFacts:
        return self._facts

    def free_bytes(self, folder: str) -> int | None:
        assert folder.startswith("/")
        return self._free


@pytest.fixture
def simulator() -> EngineSimulator:
    return EngineSimulator(SimulatedClock())


Probes = Callable[[tuple[CheckResult, ...]], None]


@pytest.fixture
def probes_answer(monkeypatch: pytest.MonkeyPatch) -> Probes:
    """The real probe needs a kernel; tests/host/test_doctor_limits.py has it."""

    def answer(results: tuple[CheckResult, ...]) -> None:
        monkeypatch.setattr(doctor_sandbox, "probe_sandbox", lambda *_args, **_rest: results)
        monkeypatch.setattr(doctor_sandbox, "probe_limits", lambda *_args, **_rest: ())

    answer(ALL_HOLD)
    return answer


def examination(engine: ContainerEngine, **changes: object) -> Examination:
    numbers = iter(range(100))
    made = Examination(
        engine=engine,
        host=Host(),
        gpus=NoGpus(),
        clock=SimulatedClock(),
        new_run_id=lambda: f"{next(numbers):016x}",
        folder=Path("/srv/piste"),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields of Examination


def examined(engine: ContainerEngine, *profiles: str, **changes: object) -> DoctorReport:
    loaded = tuple(load_profile(name) for name in profiles or ("certified", "strict", "gvisor"))
    return examine_host(examination(engine, **changes), loaded)


def shown(report: DoctorReport, first: str = "certified") -> str:
    output = io.StringIO()
    Console(file=output, width=100, highlight=False).print(doctor_view(report, first=first))
    return " ".join(output.getvalue().split())


def test_a_sound_host_may_do_certified_runs(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    report = examined(simulator)
    assert [report.may_run(name) for name in ("certified", "strict", "gvisor")] == [True] * 3
    assert "This host may do certified runs (profile certified)." in shown(report)
    assert simulator.list_containers("piste-") == ()
    assert simulator.list_volumes("piste-") == ()


def test_a_missing_runtime_bars_its_profile_alone(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    simulator.description = replace(simulator.description, runtimes=("runc",))
    report = examined(simulator)
    assert report.may_run("certified")
    assert not report.may_run("gvisor")
    assert "gvisor" in shown(report)
    assert "it has no runtime runsc" in shown(report)
    alone = examined(simulator, "gvisor")
    assert "This host may not do certified runs (profile gvisor)." in shown(alone, "gvisor")


def test_one_limit_that_does_not_act_bars_certified_runs(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    probes_answer((*ALL_HOLD[1:], replace(ALL_HOLD[0], holds=False)))
    report = examined(simulator)
    assert not report.may_run("certified")
    assert "may not run: memory" in shown(report)


def test_a_host_fault_bars_every_profile(simulator: EngineSimulator, probes_answer: Probes) -> None:
    report = examined(simulator, host=Host(free=0))
    assert not report.may_run("certified")
    assert all(trial.may_run for trial in report.trials)
    assert "workspace: /srv/piste: 0.0 GiB free" in shown(report)


def test_without_an_engine_the_host_is_examined_all_the_same(simulator: EngineSimulator) -> None:
    simulator.lose_at("describe")
    report = examined(simulator)
    assert report.engine is None
    assert report.trials == ()
    assert not report.may_run("certified")
    topics = {each.topic for each in report.findings}
    assert {Topic.ENGINE, Topic.DISK, Topic.CLOCK, Topic.HOST} <= topics
    assert named(report.findings, "engine").remedy
    assert "no Docker engine answers" in shown(report)


def test_a_probe_that_the_engine_refuses_is_a_finding_not_a_crash(
    simulator: EngineSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (PlatformFault("it did not start: why; do this"), RefusedByPolicy("other: x")):

        def refuse(*_args: object, error: Exception = error, **_rest: object) -> None:
            raise error

        monkeypatch.setattr(doctor_sandbox, "probe_sandbox", refuse)
        trial = try_profile(
            simulator,
            CERTIFIED,
            description=simulator.description,
            new_run_id=lambda: "0" * 16,
        )
        assert not trial.may_run
        assert trial.reasons == (str(error),)


def test_a_host_with_less_memory_than_a_run_gets_is_warned(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    simulator.description = replace(simulator.description, memory_bytes=2 * GIB)
    report = examined(simulator, "certified")
    found = named(report.trials[0].findings, "host's memory")
    assert found.status is Status.WARN
    assert report.may_run("certified")


class OneGpu:
    """A list with one GPU; what a container sees of it is another matter."""

    kind = GpuKind.UUID

    def __init__(
        self, inside: tuple[GpuFacts, ...] = (), error: PlatformFault | None = None
    ) -> None:
        self._inside, self._error = inside, error

    def available(self) -> tuple[str, ...]:
        return ("GPU-1",)

    def probe(self, request: GpuRequest) -> tuple[GpuFacts, ...]:
        assert request.devices == ("GPU-1",)
        if self._error is not None:
            raise self._error
        return self._inside


def test_a_gpu_that_a_container_sees_is_shown_with_its_driver(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    columns = "GPU-1, A100, 550.1, 81920, 8.0, Disabled, Enabled, 400, 1410, 92, 00000000:01:00.0"
    report = examined(simulator, "certified", gpus=OneGpu(parse_nvidia_smi(columns)))
    found = named(report.findings, "inside a container")
    assert (found.status, found.seen) == (Status.OK, "A100, driver 550.1")


def test_a_gpu_that_no_container_sees_has_a_remedy_and_bars_nothing(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    error = PlatformFault("no GPU inside; see `piste doctor`; nothing was spent")
    report = examined(simulator, "certified", gpus=OneGpu(error=error))
    found = named(report.findings, "inside a container")
    assert found.status is Status.WARN
    assert "container toolkit" in (found.remedy or "")
    assert report.may_run("certified")


def test_live_and_abandoned_runs_of_the_workspace_are_known(
    simulator: EngineSimulator, probes_answer: Probes, workspace_root: Path
) -> None:
    store = open_workspace(workspace_root)
    live, dead = "a" * 16, "b" * 16
    for run in (live, dead):
        store.write_intent(run, {"brought_in": []})
    with store.lock_run(live):
        report = examined(simulator, "certified", store=store, folder=workspace_root)
    assert named(report.findings, "runs that died").seen == dead


def test_parts_that_no_run_here_owns_are_named_with_the_way_to_remove_them(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    name = f"piste-{'d' * 16}-input"
    simulator.create_volume(
        VolumeSpec(name=name, size_bytes=4096, inodes=4, uid=0, gid=0, mode=0o700)
    )
    report = examined(simulator, "certified")
    found = named(report.findings, "parts of other runs")
    assert (found.status, found.seen) == (Status.WARN, "d" * 16)
    assert name in (found.remedy or "")
    assert report.may_run("certified")
    assert simulator.list_volumes("piste-") == (name,), "doctor repairs nothing"


def test_the_document_holds_every_profile_s_rows_and_the_verdicts(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    document = json.loads(json.dumps(doctor_document(examined(simulator))))
    assert document["engine"]["docker"] == "20.10.24"
    assert set(document["profiles"]) == {"certified", "strict", "gvisor"}
    assert document["profiles"]["strict"] == {"may_run": True, "reasons": []}
    profiles = {each["profile"] for each in document["findings"]}
    assert profiles == {None, "certified", "strict", "gvisor"}
    assert all(
        each["remedy"] for each in document["findings"] if each["status"] in {"warn", "fail"}
    )


def test_an_engine_s_words_reach_the_terminal_escaped(
    simulator: EngineSimulator, probes_answer: Probes
) -> None:
    simulator.description = replace(
        simulator.description, operating_system="\x1b[31mevil[bold]", store="\x07x"
    )
    text = shown(examined(simulator))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[31mevil[bold]" in text


def test_this_machine_answers_what_a_host_is_asked() -> None:
    facts = LinuxHost().facts()
    assert facts.core_pattern is not None
    assert facts.swap_areas is not None
    assert facts.clock_is_synchronised in {True, False}
    assert LinuxHost().free_bytes("/") is not None
    assert LinuxHost().free_bytes("/not/there") is None
