"""The live display of a dry run: at 80 columns, in a dumb terminal, without colour, and as JSON.

The command runs as a process of its own on a pseudo-terminal; only the engine is simulated.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from orchestrator.sandbox.rules.elf import Architecture
from orchestrator.sandbox.rules.tiny_image import tiny_image

IMAGE = tiny_image({"run": b"x"}, entrypoint=("/run",), architecture=Architecture.AMD64)
ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys, time
from orchestrator.wiring import workspaces as wiring
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import SimulatedClock, SimulatedEnd
from orchestrator.support import system_clock
from orchestrator.cli.main import main
from tests.entrants.test_dry_run_terminal import IMAGE

class Clock(SimulatedClock):
    def advance(self, seconds):
        super().advance(seconds)
        time.sleep(0.1)  # leave the display time to draw

clock = Clock()
engine = EngineSimulator(clock)

def entrant(files):
    lines = []
    for clip in json.loads(files["exam.json"])["clips"]:
        known = json.loads(files[f"annotations/{clip}.json"])
        lines.append(json.dumps({"clip_id": clip, "signs": ["YOU"] * len(known["segments"])}))
    log = b"reading clips\\n" + b"\\x1b[31mred\\x1b]0;title\\x07\\n" + b"w" * 500 + b"\\n"
    data = "".join(line + "\\n" for line in lines).encode()
    return SimulatedEnd(files={"predictions.jsonl": data}, runs_s=2.0, log=log)

engine.script(IMAGE.image_id, entrant)
wiring.docker_engine = lambda: engine
wiring.self_test = lambda engine, profile, run_id: None
system_clock.SystemClock = lambda: clock
main()
"""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7]|38;[0-9;]+)m")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "image.tar"
    path.write_bytes(IMAGE.archive)
    return path


def environment(**changes: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}
    }
    return kept | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"} | changes


def on_a_terminal(archive: Path, **changes: str) -> str:
    """Run the dry run on a pseudo-terminal of 80 columns; return everything that it wrote."""
    child = pexpect.spawn(
        sys.executable,
        ["-c", PROGRAM, "dry-run", str(archive)],
        dimensions=(40, 80),
        env=environment(**changes),
        timeout=60,
        encoding="utf-8",
        cwd=ROOT,
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    return str(child.before)


@pytest.fixture(scope="module")
def coloured(archive: Path) -> str:
    """What a dry run writes to an ordinary terminal."""
    return on_a_terminal(archive)


def test_the_display_fits_80_columns_and_shows_log_use_and_verdict(coloured: str) -> None:
    lines = re.split(r"[\r\n]+", ESCAPE.sub("", coloured))
    assert max(map(len, lines)) <= 80
    plain = "\n".join(lines)
    assert "│ reading clips" in plain
    assert "memory 1 MiB of 4 GiB · 1 of 512 processes" in plain
    assert "/3,600 s" in plain
    assert "A certified run would record completed and score it." in plain
    assert "score card" in plain


def test_the_log_cannot_speak_to_the_terminal(coloured: str) -> None:
    assert "\\x1b[31mred\\x1b]0;title\\x07" in coloured
    assert "\x1b]0;" not in coloured
    assert "\x07" not in coloured


def test_no_color_means_no_colour(archive: Path, coloured: str) -> None:
    assert COLOUR.search(coloured) is not None
    assert COLOUR.search(on_a_terminal(archive, NO_COLOR="1")) is None


def test_a_dumb_terminal_gets_plain_lines(archive: Path) -> None:
    written = on_a_terminal(archive, TERM="dumb")
    assert "\x1b" not in written
    lines = written.replace("\r\n", "\n").split("\n")
    assert "· run" in lines
    assert "| reading clips" in lines
    assert max(map(len, lines)) <= 80


def test_with_json_stdout_holds_one_document_and_nothing_else(archive: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "dry-run", str(archive), "--json"],
        capture_output=True,
        env=environment(),
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["outcome"] == "completed"
    assert document["exit_code"] == 0
    assert document["log"].startswith("reading clips\n")
    assert done.stderr == b""
