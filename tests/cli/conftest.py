"""The command line as a person types it, in this process: coverage counts it too."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.cli.main import main


@dataclass(frozen=True, slots=True)
class Said:
    """What a command left: its exit code and both streams."""

    code: int
    out: str
    err: str


Type = Callable[..., Said]


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Type]:
    """Type `piste …` in an empty folder."""
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("PISTE_WORKSPACE", raising=False)

    def run(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["piste", *words])
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        captured = capsys.readouterr()
        return Said(code if isinstance(code, int) else int(bool(code)), captured.out, captured.err)

    yield run
    for name, handler in handlers.items():
        signal.signal(name, handler)
