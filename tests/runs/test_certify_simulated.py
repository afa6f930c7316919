"""The rules of a certified run, on a simulated engine: order, quota, refunds, refusals."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.outcomes import Diagnostic, Outcome
from manifests.statements import RunFinished, RunReserved, RunStarted, RunVoided
from orchestrator.engine.ports import EngineUnavailable
from orchestrator.runs.list_runs import list_runs, run_row, show_run, void_by_organizer
from orchestrator.runs.recover_runs import recover_runs
from orchestrator.support.interruption import Interrupted
from orchestrator.support.reporter import Step
from tests.support.simulated_certify import (
    EDITION,
    TEAM,
    Simulation,
    WatchingReporter,
    answers,
    honest,
    seal_workspace,
    simulate,
)
from tests.support.simulated_world import SimulatedEnd, sleeps_for_ever
from tests.support.small_exams import register


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a sealed edition, to be copied: sealing is not what is tested here."""
    return seal_workspace(tmp_path_factory.mktemp("sealed"))


@pytest.fixture
def simulation(sealed: Path, tmp_path: Path) -> Simulation:
    shutil.copytree(sealed, tmp_path / "workspace")
    return simulate(tmp_path)


def fails(_files: Mapping[str, bytes]) -> SimulatedEnd:
    return SimulatedEnd(exit_code=3, runs_s=1.0)


def test_a_run_goes_through_its_steps_and_statements_in_order(simulation: Simulation) -> None:
    run = simulation.certify()
    assert run.record.outcome is Outcome.COMPLETED
    assert run.record.certified_run == 1
    assert run.card is not None
    assert simulation.story() == [
        "run-reserved",
        "run-started",
        "run-finished",
        "image-removed",
        "run-scored",
    ]
    certify_steps = [step for step in Step if step in simulation.reporter.steps]
    assert simulation.reporter.steps == [
        Step.LOAD,
        Step.SELF_TEST,
        Step.RESOLVE,
        Step.PULL,
        Step.RESERVE,
        Step.CREATE,
        Step.PROVIDE,
        Step.AUDIT,
        Step.START,
        Step.RUN,
        Step.CLASSIFY,
        Step.COLLECT,
        Step.RECHECK,
        Step.VALIDATE,
        Step.KEEP,
        Step.FINISH,
        Step.REMOVE_IMAGE,
        Step.SCORE,
        Step.EVIDENCE,
    ]
    assert len(certify_steps) == len(simulation.reporter.steps)
    assert simulation.left() == []


def test_the_log_is_kept_encrypted_and_told_to_nobody(simulation: Simulation) -> None:
    run = simulation.certify()
    for path in Path(run.folder).rglob("*"):
        assert path.is_dir() or b"clip bytes" not in path.read_bytes()
    assert "clip bytes" not in run.record.model_dump_json()
    assert (Path(run.folder) / "log.age").read_bytes().startswith(b"age-encryption.org/v1")


def test_three_runs_are_all_that_a_team_gets_and_a_failed_one_counts(
    simulation: Simulation,
) -> None:
    for number, entrant in enumerate((honest, fails, sleeps_for_ever), start=1):
        run = simulation.certify(entrant)
        assert (run.record.certified_run, run.quota.used) == (number, number)
    before = simulation.story()
    calls = len(simulation.engine.calls)
    with pytest.raises(RefusedByPolicy, match="nova has used 3 of 3 runs in simulated-final; none"):
        simulation.certify()
    assert simulation.story() == before
    assert "load_archive" not in simulation.engine.calls[calls:]
    finished = [s.outcome for s in simulation.statements() if isinstance(s, RunFinished)]
    assert finished == [Outcome.COMPLETED, Outcome.NONZERO_EXIT, Outcome.TIMED_OUT]


def test_another_team_has_its_own_runs(simulation: Simulation) -> None:
    register(simulation.workspace, "orion")
    simulation.certify()
    run = simulation.certify(team="orion")
    assert (run.quota.used, simulation.quota.used) == (1, 1)


def test_attempts_bound_what_is_refunded_too(tmp_path: Path) -> None:
    seal_workspace(tmp_path, extra="quota: {certified_runs: 2, attempts: 3}\n")
    simulation = simulate(tmp_path)
    for _ in range(3):
        simulation.reporter = WatchingReporter({Step.CREATE: lambda: _send(signal.SIGTERM)})
        with pytest.raises(Interrupted):
            simulation.certify()
    assert (simulation.quota.used, simulation.quota.voided) == (0, 3)
    simulation.reporter = WatchingReporter()
    with pytest.raises(RefusedByPolicy, match="3 of 3 attempts"):
        simulation.certify()
    attempts = [s.attempt for s in simulation.statements() if isinstance(s, RunReserved)]
    assert attempts == [1, 2, 3]


def _send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (signal.SIGINT, Step.PULL),
        (signal.SIGTERM, Step.RESERVE),
        (signal.SIGHUP, Step.PROVIDE),
        (signal.SIGINT, Step.START),
        (signal.SIGTERM, Step.RUN),
        (signal.SIGHUP, Step.RUN),
        (signal.SIGINT, Step.KEEP),
        (signal.SIGTERM, Step.FINISH),
    ],
)
def test_an_interruption_at_any_step_is_refunded_and_leaves_nothing(
    simulation: Simulation, number: signal.Signals, step: Step
) -> None:
    simulation.reporter = WatchingReporter({step: lambda: _send(number)})
    with pytest.raises(Interrupted) as interruption:
        simulation.certify()
    assert interruption.value.exit_code == 4
    voids = [s for s in simulation.statements() if isinstance(s, RunVoided)]
    assert len(voids) == len(simulation.run_ids())
    assert all(void.diagnostics == (Diagnostic.INTERRUPTED,) for void in voids)
    assert (simulation.quota.used, simulation.quota.pending) == (0, 0)
    assert simulation.left() == []


@pytest.mark.parametrize("step", [Step.REMOVE_IMAGE, Step.SCORE, Step.EVIDENCE])
def test_an_interruption_after_the_end_leaves_a_run_that_the_next_command_completes(
    simulation: Simulation, step: Step
) -> None:
    simulation.reporter = WatchingReporter({step: lambda: _send(signal.SIGTERM)})
    with pytest.raises(Interrupted):
        simulation.certify()
    assert "run-finished" in simulation.story()
    recovered = recover_runs(simulation.workspace, simulation.engine, WatchingReporter())
    assert list(recovered) == simulation.run_ids()
    assert simulation.story() == [
        "run-reserved",
        "run-started",
        "run-finished",
        "image-removed",
        "run-scored",
    ]
    assert simulation.quota.used == 1
    assert simulation.left() == []


METHODS = (
    "describe",
    "list_image_ids",
    "load_archive",
    "inspect_image",
    "create_volume",
    "create_container",
    "put_archive",
    "start_container",
    "wait_for_exit",
    "inspect_container",
    "saw_oom",
    "read_log",
    "get_archive",
    "remove_container",
    "remove_volume",
    "list_containers",
    "remove_image",
)


@pytest.mark.parametrize("method", METHODS)
def test_an_engine_lost_at_any_call_neither_costs_a_run_nor_leaves_anything(
    simulation: Simulation, method: str
) -> None:
    simulation.engine.lose_at(method)
    with contextlib.suppress(EngineUnavailable):
        simulation.certify()
    simulation.engine.restart()
    recover_runs(simulation.workspace, simulation.engine, WatchingReporter())
    assert simulation.left() == []
    finished = [s for s in simulation.statements() if isinstance(s, RunFinished)]
    ours = [s for s in finished if s.outcome is not Outcome.PLATFORM_FAULT]
    assert simulation.quota.used == len(ours)
    assert simulation.quota.pending == 0
    assert not any(run.open for run in list_runs(simulation.workspace))
    again = simulation.certify()
    assert again.record.outcome is Outcome.COMPLETED


def test_a_container_that_differs_from_the_profile_is_never_started(
    simulation: Simulation,
) -> None:
    simulation.engine.alter_inspection = lambda found: found["HostConfig"].update(
        NetworkMode="bridge"
    )
    with pytest.raises(RefusedByPolicy, match=r"not started: NetworkMode"):
        simulation.certify()
    assert simulation.story() == ["run-reserved", "run-voided", "image-removed"]
    assert (simulation.quota.used, simulation.quota.attempts_used) == (0, 1)
    assert simulation.left() == []


def test_one_run_at_a_time_on_a_host(simulation: Simulation) -> None:
    refusals: list[RefusedByPolicy] = []

    def another() -> None:
        with pytest.raises(RefusedByPolicy, match="another process is at work") as refusal:
            simulation.certify()
        refusals.append(refusal.value)

    simulation.reporter = WatchingReporter({Step.AUDIT: another})
    simulation.certify()
    assert len(refusals) == 1
    assert simulation.quota.attempts_used == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edition": "no-such-edition"}, "no-such-edition"),
        ({"team": "unknown"}, "unknown"),
        ({"image": "engine:latest"}, "only this machine knows it"),
        ({"repeat": 11}, "from 1 to 10"),
    ],
)
def test_a_refusal_comes_before_the_reservation(
    simulation: Simulation, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(RefusedByPolicy, match=words) as refusal:
        simulation.certify(**changes)  # type: ignore[arg-type]  # fields of the request
    assert refusal.value.exit_code == 3
    assert simulation.story() == []
    assert "load_archive" not in simulation.engine.calls


@pytest.mark.parametrize("days", [-30, 120], ids=["before", "after"])
def test_a_closed_edition_takes_no_runs(simulation: Simulation, days: int) -> None:
    simulation.engine.clock.advance(days * 86400)
    with pytest.raises(RefusedByPolicy, match=EDITION):
        simulation.certify()
    assert simulation.story() == []


def test_an_archive_that_is_none_is_malformed_and_costs_nothing(simulation: Simulation) -> None:
    simulation.archive.write_bytes(b"no tar at all" * 100)
    with pytest.raises(MalformedDocument) as error:
        simulation.certify()
    assert error.value.exit_code == 2
    assert simulation.archive.name in str(error.value)
    assert simulation.story() == []


def test_an_organizer_gives_a_run_back_once_with_a_public_reason(simulation: Simulation) -> None:
    run_id = simulation.certify(fails).record.run_id
    record = void_by_organizer(simulation.workspace, run_id, reason="a clip was broken")
    assert record.voided is not None
    assert (record.voided.by, record.voided.reason) == ("organizer", "a clip was broken")
    assert record.certified_run is None
    assert (simulation.quota.used, simulation.quota.voided, simulation.quota.left) == (0, 1, 3)
    with pytest.raises(RefusedByPolicy, match="voided already"):
        void_by_organizer(simulation.workspace, run_id, reason="once more")
    assert simulation.certify().record.certified_run == 1


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "x" * 301, "\x1b[2J"])
def test_a_reason_is_one_printable_line(simulation: Simulation, reason: str) -> None:
    run_id = simulation.certify(fails).record.run_id
    with pytest.raises(MalformedDocument, match="--reason"):
        void_by_organizer(simulation.workspace, run_id, reason=reason)
    assert simulation.quota.used == 1


def test_a_run_that_nobody_knows_can_neither_be_shown_nor_voided(simulation: Simulation) -> None:
    for act in (show_run, lambda w, r: void_by_organizer(w, r, reason="why")):
        with pytest.raises(RefusedByPolicy, match="piste runs list"):
            act(simulation.workspace, "\x1b[2J")


def test_a_host_without_label_keys_leaves_the_run_unscored_and_says_how_to_go_on(
    simulation: Simulation,
    tmp_path: Path,
) -> None:
    (tmp_path / "workspace" / "keys" / "labels.agekey").unlink()
    run = simulation.certify()
    assert run.card is None
    assert run.record.outcome is Outcome.COMPLETED
    assert any("piste rescore --edition simulated-final" in n for n in simulation.reporter.notes)
    assert simulation.story()[-1] == "image-removed"
    assert (Path(run.folder) / "run.dsse.json").is_file()


def test_repeats_of_one_run_are_compared(simulation: Simulation) -> None:
    same = simulation.certify(repeat=2)
    assert same.record.repeats_agree is True
    assert same.quota.used == 1
    count = iter(range(9))

    def wavers(files: Mapping[str, bytes]) -> SimulatedEnd:
        data = answers(files)
        first = json.loads(data.splitlines()[0])
        first["signs"][0] = {"candidates": ["YOU"], "confidence": next(count) / 10}
        lines = [json.dumps(first).encode(), *data.splitlines()[1:]]
        return SimulatedEnd(files={"predictions.jsonl": b"\n".join(lines)}, runs_s=1.0)

    other = simulation.certify(wavers, repeat=3)
    assert other.record.repeats_agree is False
    assert Diagnostic.PREDICTIONS_DISAGREE in other.record.diagnostics
    assert other.record.outcome is Outcome.COMPLETED
    assert other.quota.used == 2


def test_invalid_predictions_are_kept_encrypted_and_not_scored(simulation: Simulation) -> None:
    secret = b'{"clip_id": "0001", "signs": ["smuggled", "smuggled"], "clip": "bytes"}\n'

    def smuggles(_files: Mapping[str, bytes]) -> SimulatedEnd:
        return SimulatedEnd(files={"predictions.jsonl": secret}, runs_s=1.0)

    run = simulation.certify(smuggles)
    assert run.record.outcome is Outcome.INVALID_PREDICTIONS
    assert run.record.predictions_sha256 is None
    assert run.card is None
    folder = Path(run.folder)
    assert not (folder / "predictions.jsonl").exists()
    assert (folder / "predictions.raw.age").read_bytes().startswith(b"age-encryption.org/v1")
    for path in folder.iterdir():
        assert b"smuggled" not in path.read_bytes()


def test_the_statements_say_what_was_asked_and_what_ran(simulation: Simulation) -> None:
    run = simulation.certify()
    reserved, started = simulation.statements()[:2]
    assert isinstance(reserved, RunReserved)
    assert isinstance(started, RunStarted)
    assert (reserved.team, reserved.attempt, reserved.host) == (TEAM, 1, "host-1")
    assert reserved.image.config_digest == simulation.image_id
    assert started.environment["runtime"] == "runc"
    assert run.record.effective_sha256 == started.effective_sha256
    row = run_row(list_runs(simulation.workspace)[0])
    assert (row["state"], row["outcome"], row["counts"]) == ("finished", "completed", True)
    shown = show_run(simulation.workspace, run.record.run_id)
    assert shown.record == run.record
    assert shown.card is not None
