"""Ctrl+C, SIGTERM and SIGHUP in the middle of a certified run: refunded, and everything removed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from manifests.outcomes import Diagnostic
from manifests.statements import RunVoided
from orchestrator.runs.run_evidence import has_evidence
from orchestrator.sandbox.parts import architecture_of
from orchestrator.sandbox.rules.elf import pause_elf
from orchestrator.sandbox.rules.tiny_image import tiny_image
from tests.support.certify_fixtures import EDITION, PISTE, Organizer
from tests.support.hostile_image import HERE

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_mid_run_gives_the_run_back_and_removes_everything(
    number: signal.Signals, organizer: Organizer, tmp_path: Path
) -> None:
    architecture = architecture_of(HERE)
    image = tiny_image(
        {"sleep": pause_elf(architecture), "mark": os.urandom(16)},
        entrypoint=("/sleep",),
        architecture=architecture,
    )
    (tmp_path / "sleep.tar").write_bytes(image.archive)
    team = organizer.new_team()
    arguments = ["certify", "--edition", EDITION, "--team", team, str(tmp_path / "sleep.tar")]
    process = subprocess.Popen(
        [*PISTE, *arguments, "--workspace", str(organizer.root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_it_runs(organizer, team, process)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 4, told
    assert "interrupted" in told
    assert "Traceback" not in told
    assert organizer.story(team) == ["run-reserved", "run-started", "run-voided", "image-removed"]
    (void,) = [s for s in organizer.statements(team) if isinstance(s, RunVoided)]
    assert (void.by, void.reason) == ("tool", "interrupted by the operator")
    assert void.diagnostics == (Diagnostic.INTERRUPTED,)
    assert (organizer.quota(team).used, organizer.quota(team).attempts_used) == (0, 1)
    assert has_evidence(organizer.workspace.store, organizer.run_ids(team)[0])
    assert organizer.leftovers(team, image.image_id) == []


def wait_until_it_runs(
    organizer: Organizer, team: str, process: subprocess.Popen[str], timeout_s: float = 60
) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and process.poll() is None:
        for run_id in organizer.run_ids(team):
            found = organizer.engine.inspect_container(f"piste-{run_id}-entrant")
            if found is not None and found["State"]["Running"]:
                return
        time.sleep(0.2)
    pytest.fail(f"it never ran: {process.communicate(timeout=10)}")
