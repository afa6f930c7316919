"""A disk that fills up while an entrant runs: the run is given back, and nothing is left of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.errors import DiskFull, PlatformFault
from manifests.outcomes import Diagnostic, Outcome
from manifests.statements import RunVoided
from orchestrator.engine.ports import EngineError
from orchestrator.support.reporter import Step
from tests.support.simulated_certify import (
    Simulation,
    WatchingReporter,
    honest,
    seal_workspace,
    simulate,
)
from tests.support.simulated_world import SimulatedEnd

DISK_BYTES = 256 << 20
SPARE_BYTES = 256 << 10
FILLER = "filler"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, as small as it can be."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "piste-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"needs to mount a file system: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path, *, spare_bytes: int = SPARE_BYTES) -> Path:
    """Leave so much room and no more."""
    found = os.statvfs(disk)
    filler = disk / FILLER
    filler.write_bytes(bytes(found.f_bavail * found.f_frsize - spare_bytes))
    return filler


def talkative(files: Mapping[str, bytes]) -> SimulatedEnd:
    """Answer well, and write a log that does not fit any more."""
    return replace(honest(files), log=os.urandom(2 * SPARE_BYTES))


def void_of(simulation: Simulation) -> RunVoided:
    (found,) = (s for s in simulation.statements() if isinstance(s, RunVoided))
    return found


def test_a_disk_that_fills_up_gives_the_run_back_and_says_so(disk: Path) -> None:
    seal_workspace(disk)
    simulation = simulate(disk)
    filler = disk / FILLER
    simulation.reporter = WatchingReporter({Step.RUN: lambda: fill(disk)})
    with pytest.raises(DiskFull, match=r"log\.age: cannot write: the disk is full: free space"):
        simulation.certify(talkative)
    void = void_of(simulation)
    assert (void.by, void.diagnostics) == ("tool", (Diagnostic.DISK_FULL,))
    assert (simulation.quota.used, simulation.quota.voided) == (0, 1)
    assert simulation.left() == []
    filler.unlink()
    simulation.reporter = WatchingReporter()
    run = simulation.certify(talkative)
    assert (run.record.outcome, run.quota.used) == (Outcome.COMPLETED, 1)


def test_a_run_that_might_not_fit_is_refused_before_anything_is_spent(disk: Path) -> None:
    seal_workspace(disk)
    simulation = simulate(disk)
    filler = fill(disk, spare_bytes=100 << 20)
    calls = len(simulation.engine.calls)
    with pytest.raises(DiskFull, match="are free, and what is kept of a run may take"):
        simulation.certify()
    assert (simulation.story(), simulation.left()) == ([], [])
    assert simulation.engine.calls[calls:].count("load_archive") == 0
    filler.unlink()
    assert simulation.certify().record.outcome is Outcome.COMPLETED


def test_a_disk_without_room_for_a_statement_leaves_the_run_to_the_next_command(
    disk: Path,
) -> None:
    seal_workspace(disk)
    simulation = simulate(disk)
    filler = disk / FILLER
    simulation.reporter = WatchingReporter({Step.KEEP: lambda: fill(disk, spare_bytes=0)})
    with pytest.raises(DiskFull):
        simulation.certify()
    assert any("next command tries again" in warning for warning in simulation.reporter.warnings)
    filler.unlink()
    simulation.reporter = WatchingReporter()
    run = simulation.certify()
    assert (run.record.outcome, run.quota.used) == (Outcome.COMPLETED, 1)
    assert (simulation.quota.voided, simulation.quota.pending) == (1, 0)
    assert simulation.left() == []


def test_an_engine_without_room_is_a_full_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_workspace(tmp_path)
    simulation = simulate(tmp_path)
    text = "write /var/lib/docker/tmp/x: no space left on device"

    def refuse(*_given: object, **_named: object) -> None:
        raise EngineError(f"the engine could not create a container: {text}", engine_message=text)

    monkeypatch.setattr(simulation.engine, "create_volume", refuse)
    with pytest.raises(PlatformFault, match="no space left"):
        simulation.certify()
    assert void_of(simulation).diagnostics == (Diagnostic.DISK_FULL,)
    assert (simulation.quota.used, simulation.quota.voided) == (0, 1)
