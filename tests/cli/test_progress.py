"""Progress on stderr: bars for a person, lines for a file, warnings alone with --json."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from orchestrator.cli.views import progress
from orchestrator.cli.views.progress import shown_progress
from orchestrator.support.reporter import Reporter, Step


def report_a_run(reporter: Reporter) -> None:
    reporter.step(Step.PULL)
    reporter.progress(Step.PULL, 3 * 2**20, 4 * 2**20, "bytes")
    reporter.note("a [bold]note[/bold]")
    reporter.step(Step.RUN)
    reporter.progress(Step.RUN, 7.0, 3600.0, "s")
    reporter.warn("the [red]engine[/red] is slow")


def test_a_file_gets_one_plain_line_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as reporter:
        report_a_run(reporter)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        f"· {Step.PULL.value}",
        "a [bold]note[/bold]",
        f"· {Step.RUN.value}",
        "warning: the [red]engine[/red] is slow",
    ]


def test_json_leaves_warnings_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(quiet=True) as reporter:
        report_a_run(reporter)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "warning: the [red]engine[/red] is slow\n")


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(progress, "stderr_console", lambda: console)
    monkeypatch.setenv("TERM", "xterm")
    return shown


def test_a_terminal_gets_a_bar_a_step_and_text_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = at_a_terminal(monkeypatch)
    with shown_progress() as reporter:
        report_a_run(reporter)
    last = shown.getvalue().rpartition("warning")[2]
    assert "4.0/4.0 MiB" in last, "a step that is over stands at its end"
    assert "7/3,600 s" in last, "the time that it took, of its deadline"
    assert last.count("✓") >= 2
    assert "a [bold]note[/bold]" in shown.getvalue()


def test_work_on_a_step_that_is_still_to_come_moves_no_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = at_a_terminal(monkeypatch)
    with shown_progress() as reporter:
        reporter.step(Step.CREATE)
        reporter.progress(Step.PROVIDE, 12, 200, "clips")
        reporter.step(Step.PROVIDE)
        reporter.progress(Step.PROVIDE, 200, 200, "clips")
    last = shown.getvalue().rpartition(Step.CREATE.value)[2]
    created, provided = last.splitlines()[:2]
    assert "clips" not in created
    assert "200/200 clips" in provided


def test_a_step_without_a_size_is_done_when_the_next_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = at_a_terminal(monkeypatch)
    with shown_progress() as reporter:
        reporter.step(Step.LOAD)
        reporter.step(Step.RESOLVE)
    *_, first, second, _cursor = shown.getvalue().splitlines()
    for step, line in ((Step.LOAD, first), (Step.RESOLVE, second)):
        assert step.value in line
        assert "✓" in line


def test_a_failure_inside_ends_the_display_and_comes_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = at_a_terminal(monkeypatch)

    def fail() -> None:
        with shown_progress() as reporter:
            reporter.step(Step.RUN)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert "✓" not in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[?25h"), "the cursor is there again"


def test_a_dumb_terminal_gets_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = at_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with shown_progress() as reporter:
        reporter.step(Step.RUN)
    assert (shown.getvalue(), capsys.readouterr().err) == ("", f"· {Step.RUN.value}\n")
