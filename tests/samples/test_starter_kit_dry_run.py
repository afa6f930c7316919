"""From `piste new` to a passing dry run: as a newcomer types it, without any registry."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.engine.docker.docker_engine import DockerEngine

pytestmark = pytest.mark.docker

PISTE = Path(sys.executable).with_name("piste")
TRACKS = ("recognition", "translation", "segmentation")
UNREACHABLE_PROXY = "http://127.0.0.1:9"
"""Whoever tries the network with it fails: nothing here may need one."""


def typed(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Type one command line in `folder`, with piste and its Python first in the path."""
    environment = os.environ | {
        "PATH": f"{PISTE.parent}:{os.environ['PATH']}",
        "HTTP_PROXY": UNREACHABLE_PROXY,
        "HTTPS_PROXY": UNREACHABLE_PROXY,
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    return subprocess.run(
        shlex.split(line), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module", params=TRACKS)
def kit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new kit of the track, built offline."""
    parent = tmp_path_factory.mktemp(request.param)
    for line, folder in (
        (f"piste new my-entry --track {request.param}", parent),
        ("make build-offline", parent / "my-entry"),
    ):
        done = typed(line, folder)
        assert done.returncode == 0, done.stdout + done.stderr
    return parent / "my-entry"


def track_of(kit: Path) -> str:
    return next(track for track in TRACKS if f"--track {track}" in (kit / "Makefile").read_text())


def test_the_image_of_an_unchanged_kit_passes_a_dry_run_and_answers_alike_twice(
    kit: Path, engine: DockerEngine
) -> None:
    done = typed(f"piste dry-run image.tar --track {track_of(kit)} --repeat 2 --json", kit)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["outcome"] == "completed"
    assert document["diagnostics"] == []
    assert engine.inspect_image(document["image"]["config_digest"]) is None


def test_a_broken_kit_fails_its_dry_run(tmp_path: Path) -> None:
    assert typed("piste new broken --track segmentation", tmp_path).returncode == 0
    kit = tmp_path / "broken"
    program = kit / "app" / "main.py"
    program.write_text(program.read_text().replace('exam["clips"]', 'exam["clips"][1:]'))
    assert typed("make build-offline", kit).returncode == 0
    done = typed("piste dry-run image.tar --track segmentation --json", kit)
    assert done.returncode == 1, done.stdout + done.stderr
    assert json.loads(done.stdout)["outcome"] == "invalid-predictions"


def test_a_newcomer_needs_less_than_ten_commands_and_two_minutes(tmp_path: Path) -> None:
    """The walk that the kit's README describes, typed word for word."""
    started = time.monotonic()
    kit = tmp_path / "my-entry"
    walk = [
        ("piste new my-entry --track recognition", tmp_path),
        ("make test PYTHON=python", kit),
        ("make build-offline", kit),
        ("make dry-run", kit),
    ]
    assert len(walk) < 10
    readme = ""
    for line, folder in walk:
        done = typed(line, folder)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        readme = (kit / "README.md").read_text()
        assert line.startswith("piste new") or " ".join(line.split()[:2]) in readme
    assert "completed" in done.stdout
    assert time.monotonic() - started < 120


def test_the_kit_says_what_to_do_when_nothing_is_built(tmp_path: Path) -> None:
    assert typed("piste new entry --track segmentation", tmp_path).returncode == 0
    done = typed("make dry-run", tmp_path / "entry")
    assert done.returncode != 0
    assert "make save, or make build-offline" in done.stdout
