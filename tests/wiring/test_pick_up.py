"""What a dead process left is picked up by the next command, whatever that command is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.statements import RunReserved
from orchestrator.board.settle_submissions import staged_file
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.engine.ports import ContainerEngine, VolumeSpec
from orchestrator.runs.list_runs import list_runs
from orchestrator.runs.recover_runs import RunIntent, remember_run
from orchestrator.sandbox.parts import PartNames
from orchestrator.support.reporter import SilentReporter
from orchestrator.wiring import workspaces as wiring
from orchestrator.wiring.pick_up import pick_up
from orchestrator.workspace.workspace import Workspace
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import SimulatedClock
from tests.support.small_exams import (
    SetClock,
    new_workspace,
    predictions,
    recognition_answers,
    register,
    seal_edition,
)
from tests.support.synthetic_ledger import image_identity

EDITION = "exam-final"
RUN = "00000000000000aa"


class Notes(SilentReporter):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    made = new_workspace(folder / "workspace")
    seal_edition(made, folder / "exam", EDITION)
    register(made, "nova")
    return made.store.root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    root = shutil.copytree(template, tmp_path / "workspace")
    return replace(wiring.open_workspace(root), clock=SetClock())


@pytest.fixture
def engine() -> EngineSimulator:
    return EngineSimulator(SimulatedClock())


def no_engine() -> ContainerEngine:
    raise AssertionError("the engine was asked for, and no run needs it")


def abandon_run(workspace: Workspace, engine: EngineSimulator) -> str:
    """Leave what a process leaves that is killed when its run is reserved; return a volume."""
    sealed = load_sealed_edition(EDITION, store=workspace.store, ledger=workspace.ledger).statement
    remember_run(workspace, RunIntent(run_id=RUN, brought_in=()))
    workspace.ledger.append(
        RunReserved(
            at=workspace.clock.now(),
            run_id=RUN,
            edition=EDITION,
            team="nova",
            attempt=1,
            host="host-1",
            image=image_identity(),
            profile_sha256=sealed.profile_sha256,
            clip_set_sha256=sealed.clip_set_sha256,
            deadline_s=60,
        )
    )
    volume = PartNames.of(RUN, "").input
    engine.create_volume(
        VolumeSpec(name=volume, size_bytes=1, inodes=1, uid=0, gid=0, mode=0o700, noswap=True)
    )
    return volume


def test_where_nothing_is_left_the_engine_is_not_asked_for(workspace: Workspace) -> None:
    notes = Notes()
    pick_up(workspace, no_engine, notes)
    assert (notes.notes, notes.warnings) == ([], [])


def test_a_run_whose_process_died_is_voided_and_its_volume_removed(
    workspace: Workspace, engine: EngineSimulator
) -> None:
    volume = abandon_run(workspace, engine)
    assert engine.list_volumes(volume) == (volume,)
    notes = Notes()
    pick_up(workspace, lambda: engine, notes)
    (run,) = list_runs(workspace)
    assert (run.state.value, run.counts) == ("voided", False)
    assert engine.list_volumes("piste-") == ()
    assert notes.notes == [f"run {RUN} was picked up after its process had died"]
    assert workspace.store.intents() == {}
    pick_up(workspace, no_engine, notes)
    assert len(notes.notes) == 1


def test_a_run_whose_process_lives_is_left_alone(
    workspace: Workspace, engine: EngineSimulator
) -> None:
    volume = abandon_run(workspace, engine)
    with workspace.store.lock_run(RUN):
        pick_up(workspace, no_engine, Notes())
    (run,) = list_runs(workspace)
    assert run.state.value == "reserved"
    assert engine.list_volumes(volume) == (volume,)


def test_without_an_engine_the_ledger_is_settled_and_the_rest_waits(
    workspace: Workspace, engine: EngineSimulator
) -> None:
    abandon_run(workspace, engine)
    engine.lose_at("list_containers")
    notes = Notes()
    pick_up(workspace, lambda: engine, notes)
    (warning,) = notes.warnings
    assert warning.startswith("something of an interrupted command is left: the simulated engine")
    (run,) = list_runs(workspace)
    assert run.state.value == "voided"
    assert list(workspace.store.intents()) == [RUN]
    engine.restart()
    pick_up(workspace, lambda: engine, notes)
    assert (engine.list_volumes("piste-"), workspace.store.intents()) == ((), {})
    assert len(notes.warnings) == 1


def test_a_submission_that_was_never_recorded_is_thrown_away(workspace: Workspace) -> None:
    data = predictions(workspace, EDITION, recognition_answers(wrong=0))
    workspace.store.create(staged_file(RUN), data)
    pick_up(workspace, no_engine, Notes())
    assert not workspace.store.exists(staged_file(RUN))
    assert list_runs(workspace) == []


def test_an_edition_whose_sealing_died_is_finished_if_the_ledger_knows_it(
    workspace: Workspace,
) -> None:
    editions = workspace.store.root / "editions"
    (editions / EDITION).rename(editions / f".sealing-{EDITION}")  # as a kill before the rename
    with workspace.store.stage_edition("never-sealed") as staged:
        staged.add("seal.json", b"{}")
    notes = Notes()
    pick_up(workspace, no_engine, notes)
    assert [path.name for path in editions.iterdir()] == [EDITION]
    assert notes.notes == [f"edition {EDITION} was finished after its sealing had been interrupted"]
    load_sealed_edition(EDITION, store=workspace.store, ledger=workspace.ledger)
