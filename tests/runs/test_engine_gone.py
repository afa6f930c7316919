"""The engine goes away in the middle of a certified run: our fault, voided, nothing spent."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from manifests.outcomes import Diagnostic, Outcome
from manifests.statements import ImageRemoved
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.engine.ports import EngineUnavailable
from orchestrator.images.python.python_image import BuiltImage
from orchestrator.runs.recover_runs import recover_runs
from orchestrator.sandbox.parts import architecture_of
from orchestrator.sandbox.rules.elf import pause_elf
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.support.reporter import SilentReporter, Step
from tests.support.certify_fixtures import Organizer, make_organizer
from tests.support.hostile_image import HERE

pytestmark = pytest.mark.docker


@dataclass(slots=True)
class PrivateEngine:
    """A dockerd that belongs to this test, with everything below two folders of its own."""

    data: Path
    short: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def engine(self) -> DockerEngine:
        return DockerEngine({"DOCKER_HOST": f"unix://{self.short}/sock"})

    def start(self) -> None:
        (self.short / "pid").unlink(missing_ok=True)
        command = [
            *(
                "unshare",
                "--net",
            ),  # an engine without a bridge takes that of the machine's own away
            "dockerd",
            f"--data-root={self.data}/root",
            f"--exec-root={self.short}/exec",
            f"--pidfile={self.short}/pid",
            f"--host=unix://{self.short}/sock",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
        ]
        with (self.data / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.engine.describe()
            except EngineUnavailable:
                time.sleep(0.1)
            else:
                return
        pytest.fail((self.data / "log").read_text()[-2000:])

    def end(self, number: signal.Signals) -> None:
        """Send a signal to the daemon itself and wait until it is gone."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(60)

    def clean_up(self) -> None:
        """End what is left, its containerd and shims by their pids, and remove both folders."""
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGTERM)
        deadline = time.monotonic() + 20
        while (left := self._processes()) and time.monotonic() < deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        for mount in self._mounts():
            subprocess.run(["umount", "-l", mount], check=True)
        shutil.rmtree(self.data)
        shutil.rmtree(self.short)

    def _processes(self) -> list[int]:
        found = []
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if f"{self.short}/exec".encode() in place.read_bytes():
                    found.append(int(place.parent.name))
            except OSError:
                continue  # it has ended
        return found

    def _mounts(self) -> list[str]:
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return sorted(m for m in mounts if m.startswith((str(self.data), str(self.short))))[::-1]


@pytest.fixture
def private(tmp_path: Path) -> Iterator[PrivateEngine]:
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        pytest.skip("needs dockerd and root, to start an engine of its own")
    made = PrivateEngine(
        data=tmp_path / "engine", short=Path("/run") / f"piste-test-{secrets.token_hex(4)}"
    )
    made.data.mkdir()
    made.short.mkdir()
    try:
        made.start()
        yield made
    finally:
        made.clean_up()


@pytest.fixture
def sleeper(tmp_path: Path) -> Path:
    """An entrant that never ends by itself."""
    architecture = architecture_of(HERE)
    image = tiny_image(
        {"sleep": pause_elf(architecture)}, entrypoint=("/sleep",), architecture=architecture
    )
    path = tmp_path / "sleeper.tar"
    path.write_bytes(image.archive)
    return path


class EndAtRun(SilentReporter):
    """Ends the engine once the entrant has run for a moment; remembers the warnings."""

    def __init__(self, private: PrivateEngine, number: signal.Signals, *, restart: bool) -> None:
        self.private = private
        self.number = number
        self.restart = restart
        self.done = False
        self.warnings: list[str] = []

    def progress(self, step: Step, done: float, total: float | None, unit: str) -> None:
        if step is Step.RUN and done > 0 and not self.done:
            self.done = True
            self.private.end(self.number)
            if self.restart:
                self.private.start()

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.mark.parametrize(
    ("number", "restart"),
    [(signal.SIGKILL, False), (signal.SIGTERM, True)],
    ids=["killed", "restarted"],
)
def test_an_engine_that_goes_away_in_mid_run_costs_the_team_nothing(
    private: PrivateEngine,
    sleeper: Path,
    silent_archive: BuiltImage,
    tmp_path: Path,
    number: signal.Signals,
    restart: bool,
) -> None:
    organizer: Organizer = make_organizer(tmp_path, private.engine)
    team = organizer.new_team()
    reporter = EndAtRun(private, number, restart=restart)
    run = organizer.certify(sleeper, team=team, reporter=reporter)
    assert run.record.outcome is Outcome.PLATFORM_FAULT
    assert {Diagnostic.ENGINE_LOST, Diagnostic.HOLDER_LOST} & set(run.record.diagnostics)
    assert run.record.voided is not None
    assert run.record.voided.by == "tool"
    assert run.card is None
    assert (run.quota.used, run.quota.voided, run.quota.attempts_used) == (0, 1, 1)
    if not restart:
        assert any("the next command" in warning for warning in reporter.warnings)
        private.start()
    settled = recover_runs(organizer.workspace, private.engine, SilentReporter())
    assert (run.record.run_id in settled) == (not restart)
    assert organizer.leftovers(team) == []
    removals = [s for s in organizer.statements(team) if isinstance(s, ImageRemoved)]
    assert [removal.gone for removal in removals] == [True]
    assert organizer.quota(team).left == 3
    again = organizer.certify(silent_archive.path, team=team)
    assert again.record.outcome is Outcome.NO_PREDICTIONS
    assert again.record.certified_run == 1


def test_another_engine_has_nothing_to_remove_and_says_where_the_parts_are(
    private: PrivateEngine, sleeper: Path, tmp_path: Path, engine: DockerEngine
) -> None:
    organizer = make_organizer(tmp_path, private.engine)
    team = organizer.new_team()
    reporter = EndAtRun(private, signal.SIGKILL, restart=False)
    organizer.certify(sleeper, team=team, reporter=reporter)
    settled = recover_runs(organizer.workspace, engine, reporter)
    assert settled == ()
    assert any("point DOCKER_HOST at it" in warning for warning in reporter.warnings)
    assert "image-removed" not in organizer.story(team)
    private.start()
    assert recover_runs(organizer.workspace, private.engine, reporter) == tuple(
        organizer.run_ids(team)
    )
    assert organizer.leftovers(team) == []
