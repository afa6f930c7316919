"""The README's `piste score` lines work when they are pasted at the project's root."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_exam_is_scored_on_the_files_that_ship() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## The three exams\n")[2]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found is not None
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", found[1]],
        cwd=ROOT,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [name in done.stdout for name in ("macro-F1", "S_total", "mF1S")] == [True] * 3
