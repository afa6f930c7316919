"""The command line as a person types it, in this process: coverage counts it too."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.cli.main import main


@dataclass(frozen=True, slots=True)
class Said:
    """What a command left: its exit code and both streams."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What --json printed."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


Type = Callable[..., Said]


@pytest.fixture
def typed(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Type]:
    """Type `piste …` in an empty folder."""
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("PISTE_WORKSPACE", raising=False)

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["piste", *map(str, words)])
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
