"""`kill -9` at each step of a certified run: the next command puts everything right."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from manifests.outcomes import Diagnostic, Outcome
from manifests.statements import RunVoided
from orchestrator.images.python.python_image import BuiltImage
from orchestrator.runs.run_evidence import has_evidence, load_record
from orchestrator.support.reporter import Step
from tests.support.certify_fixtures import EDITION, Organizer, piste

pytestmark = pytest.mark.docker

CHILD = """
import os, signal, sys
from pathlib import Path
from orchestrator.wiring import workspaces as wiring
from orchestrator.support.reporter import SilentReporter, Step
from orchestrator.runs.certify import certify
from orchestrator.runs.certify import CertifyRequest

root, edition, team, image, at, within = sys.argv[1:]

class Killer(SilentReporter):
    def step(self, step):
        if step.name == at and not int(within):
            os.kill(os.getpid(), signal.SIGKILL)

    def progress(self, step, done, total, unit):
        if step.name == at and int(within) and done:
            os.kill(os.getpid(), signal.SIGKILL)

request = CertifyRequest(edition=edition, team=team, image=image)
host = wiring.run_host(wiring.docker_engine())
certify(wiring.open_workspace(Path(root)), host, request, Killer())
"""

NOTHING_YET: list[str] = []
RESERVED = ["run-reserved", "run-voided", "image-removed"]
STARTED = ["run-reserved", "run-started", "run-voided", "image-removed"]
FINISHED = ["run-reserved", "run-started", "run-finished", "image-removed"]
SCORED = [*FINISHED, "run-scored"]

STORIES = {
    Step.LOAD: NOTHING_YET,
    Step.SELF_TEST: NOTHING_YET,
    Step.RESOLVE: NOTHING_YET,
    Step.PULL: NOTHING_YET,
    Step.RESERVE: NOTHING_YET,
    Step.CREATE: RESERVED,
    Step.PROVIDE: RESERVED,
    Step.AUDIT: RESERVED,
    Step.START: RESERVED,
    Step.RUN: STARTED,
    Step.CLASSIFY: STARTED,
    Step.COLLECT: STARTED,
    Step.RECHECK: STARTED,
    Step.VALIDATE: STARTED,
    Step.KEEP: STARTED,
    Step.FINISH: STARTED,
    Step.REMOVE_IMAGE: FINISHED,
    Step.SCORE: SCORED,
    Step.EVIDENCE: SCORED,
}
AT_THE_ENGINE = (Step.PROVIDE, Step.AUDIT, Step.START, Step.RUN, Step.CLASSIFY, Step.COLLECT)
"""Where a dead process surely leaves containers and volumes."""


def kill_at(
    organizer: Organizer, team: str, image: Path, step: Step, *, within: bool = False
) -> None:
    arguments = (organizer.root, EDITION, team, image, step.name, int(within))
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def test_every_step_of_a_run_is_tried() -> None:
    assert set(STORIES) == set(Step) - {Step.SEAL, Step.REVEAL}


@pytest.mark.parametrize("step", list(STORIES), ids=lambda step: step.name.lower())
def test_a_kill_at_any_step_neither_loses_nor_invents_a_run(
    step: Step,
    organizer: Organizer,
    honest_archive: BuiltImage,
    silent_archive: BuiltImage,
) -> None:
    team, scored = organizer.new_team(), STORIES[step] is SCORED
    image = honest_archive if scored else silent_archive
    kill_at(organizer, team, image.path, step)
    held = [
        name
        for run_id in organizer.run_ids(team)
        for name in organizer.engine.list_containers(f"piste-{run_id}")
    ]
    assert bool(held) >= (step in AT_THE_ENGINE)
    reaped = piste("runs", "reap", "--json", workspace=organizer.root)
    assert reaped.returncode == 0, reaped.stderr
    assert organizer.story(team) == STORIES[step]
    quota = organizer.quota(team)
    counts = scored or STORIES[step] is FINISHED
    assert (quota.used, quota.pending) == (int(counts), 0)
    assert quota.attempts_used == len(organizer.run_ids(team))
    assert organizer.leftovers(team, image.image_id) == []
    for run_id in organizer.run_ids(team):
        assert has_evidence(organizer.workspace.store, run_id)
        record = load_record(organizer.workspace, run_id)
        assert record.image_removed is True
        ended = Outcome.COMPLETED if scored else Outcome.NO_PREDICTIONS
        assert record.outcome is (ended if counts else Outcome.PLATFORM_FAULT)
        assert (record.voided is None) == counts
        assert counts or Diagnostic.ORCHESTRATOR_DIED in record.diagnostics


@pytest.mark.parametrize("step", [Step.PULL, Step.PROVIDE, Step.RUN], ids=lambda s: s.name.lower())
def test_a_kill_in_the_middle_of_a_step_is_picked_up_by_the_next_certified_run(
    step: Step, organizer: Organizer, honest_archive: BuiltImage
) -> None:
    team = organizer.new_team()
    kill_at(organizer, team, honest_archive.path, step, within=True)
    run = organizer.certify(honest_archive.path, team=team)
    assert run.record.outcome is Outcome.COMPLETED
    assert (run.quota.used, run.quota.pending) == (1, 0)
    assert organizer.leftovers(team, honest_archive.image_id) == []
    voids = [s for s in organizer.statements(team) if isinstance(s, RunVoided)]
    assert [void.by for void in voids] == ["tool"] * (step is not Step.PULL)
    assert all("died" in void.reason for void in voids)
