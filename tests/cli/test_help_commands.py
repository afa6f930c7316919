"""Every command has help, starts at once, completes in a shell, and errs in words."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from orchestrator.cli.app import app
from orchestrator.cli.commands import load_commands
from orchestrator.cli.main import Interrupted
from orchestrator.wiring import workspaces as wiring

PISTE = Path(sys.executable).with_name("piste")
HEAVY = {"numpy", "scipy", "docker", "requests", "pydantic", "sqlalchemy", "cryptography"}
STARTUP_S = 0.3
Type = Callable[..., Any]


def walk(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from walk(child, (*words, name))


load_commands()
COMMANDS = list(walk(typer.main.get_command(app)))
LEAVES = [words for words, command in COMMANDS if not getattr(command, "commands", {})]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), Interrupted("SIGTERM")])
def test_an_interrupted_command_says_so_and_ends_with_130(
    stop: BaseException, typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_given: object, **_named: object) -> None:
        raise stop

    monkeypatch.setattr(wiring, "create_workspace", stopped)
    said = typed("init", "finals")
    assert (said.code, said.out) == (130, "")
    assert said.err.splitlines()[-1] == "piste: interrupted; nothing is left half done"


def test_all_commands_of_the_design_are_there() -> None:
    names = {" ".join(words) for words, _ in COMMANDS}
    assert names >= {
        *("init", "seal", "team add", "certify", "runs list", "runs show", "runs void"),
        *("runs reap", "labels add", "rescore", "submit", "review", "board", "dry-run", "score"),
        *("verify", "export", "replay", "doctor", "new", "check", "sample", "build-image"),
    }


@pytest.mark.parametrize(
    ("words", "command"),
    COMMANDS,
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_command_and_each_of_its_parameters_has_help(
    words: tuple[str, ...], command: Any
) -> None:
    assert (command.help or "").strip()
    for parameter in command.params:
        assert (getattr(parameter, "help", None) or "").strip(), f"{words}: {parameter.name}"


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_shows_its_help_and_ends_with_0(typed: Type, words: tuple[str, ...]) -> None:
    said = typed(*words, "--help")
    assert (said.code, said.err) == (0, "")
    assert "Usage:" in said.out


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_an_unknown_option_is_a_usage_error_without_a_traceback(
    typed: Type, words: tuple[str, ...]
) -> None:
    said = typed(*words, "--no-such-option")
    assert (said.code, said.out) == (2, "")
    assert "--no-such-option" in said.err
    assert "Traceback" not in said.err


def test_an_unknown_command_is_a_usage_error(typed: Type) -> None:
    said = typed("certifi")
    assert said.code == 2
    assert "certifi" in said.err
    assert "Traceback" not in said.err


def test_piste_alone_shows_the_help(typed: Type) -> None:
    said = typed()
    assert "Usage: piste" in said.out + said.err
    assert "Exit codes:" in said.out + said.err


def test_a_command_that_needs_a_workspace_says_so_in_one_line(typed: Type) -> None:
    said = typed("runs", "list")
    assert said.code in {2, 3}
    assert said.err.count("\n") == 1
    assert "piste init" in said.err


def cpu_seconds_of_help() -> float:
    """Return user and system time: what the start costs, whatever else the machine does."""
    child = os.posix_spawn(
        str(PISTE),
        [str(PISTE), "--help"],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(child, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime


def test_help_starts_in_less_than_three_tenths_of_a_second() -> None:
    times = [cpu_seconds_of_help() for _ in range(7)]
    assert statistics.median(times) < STARTUP_S, times


def test_help_imports_nothing_heavy() -> None:
    source = (
        "import sys\n"
        "from orchestrator.cli.main import main\n"
        "sys.argv = ['piste', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert "orchestrator.cli.commands" in loaded, "the list of modules is not what was printed"
    assert "Usage: piste" in done.stdout
    assert not loaded & HEAVY


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_for_a_shell_is_there_to_be_copied(shell: str) -> None:
    # Without a terminal there is no shell to detect: it is named instead.
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [PISTE, "--show-completion", shell],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert "_PISTE_COMPLETE" in done.stdout


def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str, position: int) -> list[str]:
        environment = os.environ | {
            "_PISTE_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(position),
        }
        done = subprocess.run([PISTE], env=environment, capture_output=True, text=True, check=False)
        return done.stdout.split()

    assert completed("piste dry", 1) == ["dry-run"]
    assert "certify" in completed("piste c", 1)
    assert completed("piste new x --tr", 3) == ["--track"]
