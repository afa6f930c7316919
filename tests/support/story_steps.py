"""What the long story is made of: people at terminals, one simulated engine, one clock.

The command line is the real one. Two things around it are not: the engine is the simulator, and
the clock moves when the story says so.
"""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifests.encoding import canonical_json
from orchestrator.cli.main import main
from orchestrator.sandbox.rules.elf import Architecture
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.wiring import keys as key_wiring
from orchestrator.wiring import workspaces as wiring
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import SimulatedClock, SimulatedEnd
from tests.support.small_exams import CLIPS, FRAMES

Answer = Callable[[int], dict[str, object]]
"""A clip's answer by the clip's number in the corpus."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def document(self) -> dict[str, Any]:
        """Return what --json printed."""
        parsed = json.loads(self.out)
        assert isinstance(parsed, dict)
        return parsed


@dataclass(frozen=True, slots=True)
class World:
    """One engine and one clock; whoever types a command uses them."""

    engine: EngineSimulator
    clock: SimulatedClock
    folder: Path
    entrants: set[str] = field(default_factory=set)
    """The ids of all images that were written."""

    def image(self, name: str, end: Callable[[Mapping[str, bytes]], SimulatedEnd]) -> Path:
        """Write an image's archive; its containers will do what `end` says."""
        made = tiny_image(
            {"run": name.encode()}, entrypoint=("/run",), architecture=Architecture.AMD64
        )
        path = self.folder / f"{name}.tar"
        path.write_bytes(made.archive)
        self.engine.script(made.image_id, end)
        self.entrants.add(made.image_id)
        return path

    def containers_and_volumes(self) -> tuple[str, ...]:
        """Return everything of ours that is at the engine."""
        return self.engine.list_containers("piste-") + self.engine.list_volumes("piste-")


@contextlib.contextmanager
def simulated_world(folder: Path) -> Iterator[World]:
    """Put the simulator and its clock where the real ones are wired."""
    folder.mkdir(parents=True, exist_ok=True)
    clock = SimulatedClock()
    engine = EngineSimulator(clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "docker_engine", lambda: engine)
        patch.setattr(wiring, "SystemClock", lambda: clock)
        patch.setattr(key_wiring, "SystemClock", lambda: clock)
        # The probe is machine code, which no simulator runs: the engine tests show what it finds.
        patch.setattr(wiring, "self_test", lambda _engine, _profile, run_id: None)
        yield World(engine, clock, folder)


def piste(*words: str | Path, workspace: Path | None = None) -> Ended:
    """Type a command, and return how it ended."""
    typed = ["piste", *map(str, words)] + ([] if workspace is None else ["-w", str(workspace)])
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}
    shown = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in shown)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", typed)
        patch.setenv("COLUMNS", "200")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
                code: object = 0
            except SystemExit as ended:
                code = ended.code or 0
    for name, handler in handlers.items():
        signal.signal(name, handler)
    assert isinstance(code, int)
    return Ended(code, *(stream.getvalue().decode() for stream in shown))


def asked(*words: str | Path, workspace: Path | None = None) -> dict[str, Any]:
    """Type a command with --json that has to succeed, and return its document."""
    ended = piste(*words, "--json", workspace=workspace)
    assert ended.code == 0, (words, ended)
    return ended.document()


def answering(answer: Answer, *, log: bytes = b"") -> Callable[[Mapping[str, bytes]], SimulatedEnd]:
    """Return an entrant that knows the corpus: it finds each clip's number by its keypoints."""
    numbers = {
        float(_first_value(np.random.default_rng(number).normal(0.5, 0.1, (FRAMES, 128, 3)))): (
            number
        )
        for number in range(CLIPS)
    }

    def run(files: Mapping[str, bytes]) -> SimulatedEnd:
        rows = []
        for clip in json.loads(files["exam.json"])["clips"]:
            keypoints = np.load(io.BytesIO(files[f"keypoints/{clip}.npy"]))
            rows.append({"clip_id": clip, **answer(numbers[float(keypoints[0, 0, 0])])})
        data = b"".join(canonical_json(row) + b"\n" for row in rows)
        return SimulatedEnd(files={"predictions.jsonl": data}, runs_s=4.0, log=log)

    return run


def _first_value(keypoints: np.ndarray[Any, Any]) -> np.float32:
    return np.float32(keypoints[0, 0, 0])


def unpacked(tar: Path, into: Path) -> Path:
    """Unpack a tar as an auditor does, with tar(1); return its one folder."""
    into.mkdir(parents=True)
    subprocess.run(["tar", "-xf", str(tar), "-C", str(into)], check=True)
    (folder,) = into.iterdir()
    return folder


def check_script(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a bundle's own recipe: sha256sum, openssl, jq and base64."""
    return subprocess.run(
        ["sh", "check.sh"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
