"""One execution, step by step, on the simulated engine."""

from __future__ import annotations

import io
import os
import signal
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from manifests.digests import sha256_hex
from manifests.errors import RefusedByPolicy
from manifests.outcomes import Diagnostic, Outcome
from orchestrator.engine.ports import EngineUnavailable, UsageSample
from orchestrator.keys.sealing_port import SealedFileChanged
from orchestrator.sandbox.engine_fitness import require_fit_engine
from orchestrator.sandbox.entrant_container import ConfigurationDiffers
from orchestrator.sandbox.parts import (
    architecture_of,
    list_leftovers,
    remove_leftovers,
)
from orchestrator.sandbox.request import SandboxRequest, SandboxResult, StartFacts
from orchestrator.sandbox.rules.elf import Architecture
from orchestrator.sandbox.rules.gpu import GpuKind, GpuRequest
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.sandbox.run_in_sandbox import run_in_sandbox
from orchestrator.support.interruption import Interrupted
from orchestrator.support.reporter import SilentReporter, Step
from sandbox_profiles.profile import load_profile
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import Entrant, SimulatedClock, SimulatedEnd

RUN = "0123456789abcdef"
PROFILE = load_profile("certified")
IMAGE = tiny_image({"run": b"x"}, entrypoint=("/run",), architecture=Architecture.AMD64)
CLIPS = {"exam.json": b"{}", "keypoints/0001.npy": b"clip"}
GOOD = SimulatedEnd(files={"predictions.jsonl": b"{}"}, runs_s=3.0, log=b"said")


class StepReporter(SilentReporter):
    """Remembers the steps, and may do something at one of them."""

    def __init__(self, at: Step | None = None, act: Callable[[], object] = lambda: None) -> None:
        self.steps: list[Step] = []
        self.warnings: list[str] = []
        self.shown: list[tuple[float, float | None, str]] = []
        self._at, self._act = at, act

    def step(self, step: Step) -> None:
        self.steps.append(step)
        if step is self._at:
            self._act()

    def progress(self, step: Step, done: float, total: float | None, unit: str) -> None:
        self.shown.append((done, total, unit))

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def engine() -> EngineSimulator:
    made = EngineSimulator(SimulatedClock())
    made.load_archive([IMAGE.archive], len(IMAGE.archive), SilentReporter())
    return made


def entrant(end: SimulatedEnd) -> Entrant:
    return lambda _files: end


def run(
    engine: EngineSimulator,
    script: Entrant,
    *,
    reporter: StepReporter | None = None,
    **changes: Any,
) -> SandboxResult:
    engine.script(IMAGE.image_id, script)
    request = SandboxRequest(
        run_id=RUN,
        image_id=IMAGE.image_id,
        image_config={"Entrypoint": ["/run"]},
        platform="linux/amd64",
        profile=PROFILE,
        input_members=lambda: (tar_of(CLIPS),),
        input_bytes=100,
        input_sums=sums_of(CLIPS),
        before_start=lambda _facts: None,
    )
    asked = replace(request, **changes)
    return run_in_sandbox(engine, engine.clock, reporter or StepReporter(), request=asked)


def sums_of(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: sha256_hex(data) for name, data in files.items()}


def tar_of(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def nothing_left(engine: EngineSimulator) -> bool:
    return not engine.list_containers("piste-") and not engine.list_volumes("piste-")


def test_a_good_entrant_sees_the_clips_and_its_files_are_kept(engine: EngineSimulator) -> None:
    seen: dict[str, bytes] = {}

    def script(files: Mapping[str, bytes]) -> SimulatedEnd:
        seen.update(files)
        return GOOD

    result = run(engine, script)
    assert seen == CLIPS
    assert (result.outcome, result.diagnostics) == (Outcome.COMPLETED, ())
    assert result.files == {"predictions.jsonl": b"{}"}
    assert result.log == b"said"
    assert result.elapsed_s == pytest.approx(3.0)
    assert result.usage.memory_bytes == 2**21
    assert result.effective["profile_sha256"] == PROFILE.sha256()
    assert result.effective["memory_volumes_noswap"] is True
    assert result.leftovers == ()
    assert nothing_left(engine)


def test_the_steps_come_in_the_order_of_a_runs_life(engine: EngineSimulator) -> None:
    reporter = StepReporter()
    run(engine, entrant(GOOD), reporter=reporter)
    assert reporter.steps == [
        Step.CREATE,
        Step.PROVIDE,
        Step.AUDIT,
        Step.START,
        Step.RUN,
        Step.CLASSIFY,
        Step.COLLECT,
        Step.RECHECK,
    ]
    assert reporter.shown[0] == (0.0, float(PROFILE.deadline_s), "s")


def test_the_start_is_announced_when_all_is_ready_and_nothing_runs_yet(
    engine: EngineSimulator,
) -> None:
    announced: list[StartFacts] = []

    def announce(facts: StartFacts) -> None:
        inspected = engine.inspect_container(facts.container_id)
        assert inspected is not None
        assert inspected["State"]["Status"] == "created"
        announced.append(facts)

    result = run(engine, entrant(GOOD), before_start=announce)
    assert [facts.container_id for facts in announced] == [result.container_id]


def test_a_start_that_is_refused_by_the_caller_leaves_nothing(engine: EngineSimulator) -> None:
    def refuse(_facts: StartFacts) -> None:
        raise RefusedByPolicy("team nova has used 3 of 3 runs")

    with pytest.raises(RefusedByPolicy, match="3 of 3"):
        run(engine, entrant(GOOD), before_start=refuse)
    assert "start_container" in engine.calls  # the holder's
    assert engine.calls.count("start_container") == 1
    assert nothing_left(engine)


def test_a_container_that_differs_is_never_started(engine: EngineSimulator) -> None:
    def with_network(inspection: dict[str, Any]) -> None:
        inspection["HostConfig"]["NetworkMode"] = "bridge"

    engine.alter_inspection = with_network
    announced: list[StartFacts] = []
    with pytest.raises(ConfigurationDiffers, match=r"NetworkMode.*bridge") as refused:
        run(engine, entrant(GOOD), before_start=announced.append)
    assert refused.value.exit_code == 3
    assert announced == []
    assert engine.calls.count("start_container") == 1
    assert nothing_left(engine)


def test_the_deadline_kills(engine: EngineSimulator) -> None:
    end = SimulatedEnd(runs_s=None)
    result = run(engine, entrant(end), profile=PROFILE.model_copy(update={"deadline_s": 60}))
    assert result.outcome is Outcome.TIMED_OUT
    assert Diagnostic.KILLED_AT_DEADLINE in result.diagnostics
    assert result.elapsed_s == pytest.approx(60.0)
    assert nothing_left(engine)


def test_memory_is_judged_by_the_flag(engine: EngineSimulator) -> None:
    result = run(engine, entrant(replace(GOOD, out_of_memory=True)))
    assert result.outcome is Outcome.OUT_OF_MEMORY
    assert result.files == {"predictions.jsonl": b"{}"}


def test_predictions_of_a_failed_run_are_kept(engine: EngineSimulator) -> None:
    result = run(engine, entrant(replace(GOOD, exit_code=9)))
    assert (result.outcome, result.facts.exit_code) == (Outcome.NONZERO_EXIT, 9)
    assert result.files == {"predictions.jsonl": b"{}"}


@pytest.mark.parametrize(
    "method",
    [
        "wait_for_exit",
        "sample_usage",
        "saw_oom",
        "read_log",
        "get_archive",
    ],
)
def test_an_engine_lost_after_the_start_is_an_outcome(engine: EngineSimulator, method: str) -> None:
    reporter = StepReporter()
    engine.lose_at(method)
    result = run(engine, entrant(GOOD), reporter=reporter)
    assert result.outcome is Outcome.PLATFORM_FAULT
    assert Diagnostic.ENGINE_LOST in result.diagnostics
    assert len(result.leftovers) == 4
    assert "piste runs reap" in reporter.warnings[0]
    engine.restart()
    assert set(list_leftovers(engine)) == {RUN}
    assert remove_leftovers(engine, RUN) == ()
    assert nothing_left(engine)


@pytest.mark.parametrize("method", ["create_volume", "put_archive", "create_container"])
def test_an_engine_lost_before_the_start_raises(engine: EngineSimulator, method: str) -> None:
    engine.lose_at(method)
    with pytest.raises(EngineUnavailable):
        run(engine, entrant(GOOD))
    engine.restart()
    remove_leftovers(engine, RUN)
    assert nothing_left(engine)


def test_an_engine_that_restarted_is_not_the_entrants_failure(engine: EngineSimulator) -> None:
    forever = SimulatedEnd(runs_s=3600.0 * 24)
    restarted: list[UsageSample] = []

    class Observer:
        def started(self, container_id: str) -> None: ...

        def log(self, piece: bytes) -> None: ...

        def usage(self, sample: UsageSample) -> None:
            restarted.append(sample)
            engine.restart()

    result = run(engine, entrant(forever), observer=Observer())
    assert result.facts.exit_code == 143
    assert (result.outcome, result.diagnostics) == (
        Outcome.PLATFORM_FAULT,
        (Diagnostic.HOLDER_LOST,),
    )
    assert nothing_left(engine)


def test_an_input_that_changed_under_the_run_is_a_platform_fault(engine: EngineSimulator) -> None:
    def tamper() -> None:
        engine.put_archive(f"piste-{RUN}-holder", "/input", (tar_of({"exam.json": b"[]"}),))

    result = run(engine, entrant(GOOD), reporter=StepReporter(Step.COLLECT, tamper))
    assert (result.outcome, result.diagnostics) == (
        Outcome.PLATFORM_FAULT,
        (Diagnostic.INPUT_CHANGED,),
    )


def test_hostile_output_is_a_violation_as_a_value(engine: EngineSimulator) -> None:
    broken = replace(GOOD, output_archive=b"no tar at all" * 100)
    result = run(engine, entrant(broken))
    assert result.outcome is Outcome.OUTPUT_LIMIT
    assert result.files == {}
    assert result.violation is not None


def test_a_gpu_that_cannot_be_given_is_no_run_of_the_entrants(engine: EngineSimulator) -> None:
    gpu = GpuRequest(kind=GpuKind.UUID, devices=("GPU-1",))
    result = run(engine, entrant(GOOD), gpu=gpu)
    assert (result.outcome, result.diagnostics) == (
        Outcome.PLATFORM_FAULT,
        (Diagnostic.GPU_UNAVAILABLE,),
    )
    assert result.engine_message is not None
    assert nothing_left(engine)
    engine.gpu_driver = True
    assert run(engine, entrant(GOOD), gpu=gpu).outcome is Outcome.COMPLETED


def test_a_gpu_lost_in_mid_run_is_a_platform_fault(engine: EngineSimulator) -> None:
    result = run(engine, entrant(GOOD), gpu_is_lost=lambda: True)
    assert result.diagnostics == (Diagnostic.GPU_LOST,)


def test_a_kernel_without_noswap_is_recorded(engine: EngineSimulator) -> None:
    engine.noswap = False
    result = run(engine, entrant(GOOD))
    assert result.outcome is Outcome.COMPLETED
    assert result.effective["memory_volumes_noswap"] is False
    assert nothing_left(engine)


def test_an_observer_sees_log_and_use(engine: EngineSimulator) -> None:
    class Observer:
        pieces: list[bytes] = []  # noqa: RUF012 - one instance
        samples: list[UsageSample] = []  # noqa: RUF012
        containers: list[str] = []  # noqa: RUF012

        def started(self, container_id: str) -> None:
            self.containers.append(container_id)

        def log(self, piece: bytes) -> None:
            self.pieces.append(piece)

        def usage(self, sample: UsageSample) -> None:
            self.samples.append(sample)

    observer = Observer()
    result = run(engine, entrant(GOOD), observer=observer)
    assert observer.containers == [result.container_id]
    assert b"".join(observer.pieces) == b"said"
    assert observer.samples


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("step", [Step.PROVIDE, Step.AUDIT, Step.RUN, Step.COLLECT])
def test_a_signal_at_any_step_leaves_nothing_behind(
    engine: EngineSimulator, number: signal.Signals, step: Step
) -> None:
    before = signal.getsignal(number)
    reporter = StepReporter(step, lambda: os.kill(os.getpid(), number))
    with pytest.raises(Interrupted, match=number.name):
        run(engine, entrant(GOOD), reporter=reporter)
    assert nothing_left(engine)
    assert signal.getsignal(number) == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_a_finalizer_drops_still_ends_the_run(engine: EngineSimulator) -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted, match="SIGTERM"):
        run(engine, entrant(GOOD), reporter=StepReporter(Step.RUN, [Finalized()].clear))
    assert nothing_left(engine)


def test_repeats_have_their_own_names(engine: EngineSimulator) -> None:
    names: list[str] = []

    def remember(_facts: StartFacts) -> None:
        names.extend(engine.list_containers("piste-"))

    run(engine, entrant(GOOD), before_start=remember, suffix="2")
    assert names == [f"piste-{RUN}-entrant2", f"piste-{RUN}-holder2"]


def test_an_input_that_is_not_the_sums_files_is_a_platform_fault(engine: EngineSimulator) -> None:
    other = CLIPS | {"exam.json": b"{ }"}
    ended = run(engine, entrant(GOOD), input_members=lambda: (tar_of(other),))
    assert ended.outcome is Outcome.PLATFORM_FAULT
    assert ended.diagnostics == (Diagnostic.INPUT_CHANGED,)
    more = run(engine, entrant(GOOD), input_sums=sums_of(CLIPS | {"keypoints/x.npy": b""}))
    assert more.diagnostics == (Diagnostic.INPUT_CHANGED,)


def test_a_clip_that_does_not_open_ends_it_before_the_start(engine: EngineSimulator) -> None:
    def cut_short() -> Iterator[bytes]:
        yield tar_of(CLIPS)[:512]
        raise SealedFileChanged("keypoints/0001.age: cut short")

    started: list[StartFacts] = []
    with pytest.raises(SealedFileChanged, match="cut short"):
        run(engine, entrant(GOOD), input_members=cut_short, before_start=started.append)
    assert not started
    assert nothing_left(engine)


def test_a_platform_without_our_own_parts_is_refused() -> None:
    assert architecture_of("linux/arm64/v8") is Architecture.ARM64
    with pytest.raises(RefusedByPolicy, match="linux/riscv64"):
        architecture_of("linux/riscv64")


def test_a_weak_engine_is_refused_with_every_shortcoming(engine: EngineSimulator) -> None:
    require_fit_engine(engine.describe(), PROFILE)
    weak = replace(
        engine.describe(),
        runtimes=("crun",),
        limits={"memory": True, "swap": False, "pids": False, "cpu": True},
        cpus=1,
        security_options=(),
    )
    with pytest.raises(RefusedByPolicy) as refused:
        require_fit_engine(weak, PROFILE)
    for fact in ("runtime runc", "swap, pids", "1 CPUs", "system calls", "nothing was spent"):
        assert fact in str(refused.value)
