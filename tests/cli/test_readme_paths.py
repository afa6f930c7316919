"""The three paths of the README work when they are pasted, one after another."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def path_of(role: str) -> str:
    """Return the commands under `## For a …`, as a person would paste them."""
    section = README.partition(f"## For {role}\n")[2].partition("\n## ")[0]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def pasted(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Paste commands into a shell in `folder`, with piste on the path."""
    bin_folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-eux", "-c", commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_organizer_and_auditor_paths_work_when_pasted(tmp_path: Path) -> None:
    done = pasted(path_of("an organizer"), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "outcome  completed" in done.stdout
    checked = pasted(path_of("an auditor"), tmp_path)
    assert checked.returncode == 0, checked.stdout[-3000:] + checked.stderr[-3000:]


def test_the_entrants_path_works_when_pasted(tmp_path: Path) -> None:
    done = pasted(path_of("an entrant"), tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "completed" in done.stdout
