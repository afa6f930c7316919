"""Show progress on stderr: live bars on a terminal, plain lines elsewhere, nothing with --json."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from manifests.errors import PisteError
from orchestrator.support.reporter import Reporter, SilentReporter, Step


class AmountColumn(ProgressColumn):
    """Shows `done/total` in the task's own unit."""

    _bytes = DownloadColumn(binary_units=True)

    def render(self, task: Task) -> Text:
        """Return bytes as sizes, seconds as seconds of the deadline, counts as they are."""
        unit = task.fields.get("unit", "")
        if not unit:
            return Text("")
        if unit == "bytes":
            return self._bytes.render(task)
        bound = task.fields.get("bound", task.total)
        total = "?" if bound is None else f"{bound:,.0f}"
        return Text(f"{task.completed:,.0f}/{total} {unit}", style="progress.download")


class LiveReporter:
    """One line a step on a terminal, with a bar while it lasts."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._step: Step | None = None

    def step(self, step: Step) -> None:
        """Finish the line before and begin a new one."""
        self.close()
        self._task = self._progress.add_task(step.value, total=None, unit="")
        self._step = step

    def close(self) -> None:
        """Mark the present step as done."""
        if self._task is None:
            return
        task = next(task for task in self._progress.tasks if task.id == self._task)
        if task.fields["unit"] == "s":  # time that passed, of a deadline that never came
            done = max(task.completed, 1)
            self._progress.update(self._task, completed=done, total=done, bound=task.total)
        else:
            total = task.total if task.total is not None else 1
            self._progress.update(self._task, completed=total, total=total)
        self._progress.stop_task(self._task)

    def abandon(self) -> None:
        """Mark the present step as one that did not come to its end."""
        if self._task is None:
            return
        task = next(task for task in self._progress.tasks if task.id == self._task)
        self._progress.update(self._task, description=f"[red]{task.description}[/red]")
        self._progress.stop_task(self._task)
        self._task = None

    def progress(self, step: Step, done: float, total: float | None, unit: str) -> None:
        """Move the present step's bar; work on one that is still to come is not shown."""
        if self._task is not None and step is self._step:
            self._progress.update(self._task, completed=done, total=total, unit=unit)

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(text, markup=False, highlight=False)

    def warn(self, text: str) -> None:
        """Print a warning above the bars."""
        self._progress.console.print(f"warning: {text}", style="yellow", markup=False)


class LineReporter:
    """One plain line a step, for files and dumb terminals."""

    def step(self, step: Step) -> None:
        """Write the step."""
        self.note(f"· {step.value}")

    def progress(self, step: Step, done: float, total: float | None, unit: str) -> None:
        """Say nothing: a log file needs no bar."""

    def note(self, text: str) -> None:
        """Write a line to stderr."""
        sys.stderr.write(text + "\n")

    def warn(self, text: str) -> None:
        """Write a warning to stderr."""
        self.note(f"warning: {text}")


class WarningReporter(SilentReporter):
    """Shows warnings alone."""

    def warn(self, text: str) -> None:
        """Write a warning to stderr."""
        sys.stderr.write(f"warning: {text}\n")


def stderr_console() -> Console:
    """Return a console on stderr; rich honours NO_COLOR and TERM itself."""
    return Console(stderr=True, highlight=False)


@contextmanager
def shown_progress(*, quiet: bool = False) -> Iterator[Reporter]:
    """Yield the reporter that fits where stderr goes, and tidy the display up at the end.

    `quiet` is for --json: warnings alone are shown.
    """
    if quiet:
        yield WarningReporter()
        return
    console = stderr_console()
    if not console.is_terminal or os.environ.get("TERM") == "dumb":
        yield LineReporter()
        return
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        AmountColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=False) as progress:
        reporter = LiveReporter(progress)
        try:
            yield reporter
        except (PisteError, KeyboardInterrupt):
            reporter.abandon()
            raise
        reporter.close()
