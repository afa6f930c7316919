"""Show a dry run: the live display on stderr, the verdict and the findings on stdout."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from manifests.outcomes import Outcome
from manifests.text import escape_untrusted
from orchestrator.cli.views.progress import (
    AmountColumn,
    LineReporter,
    LiveReporter,
    WarningReporter,
    stderr_console,
)
from orchestrator.engine.ports import UsageSample
from orchestrator.entrants.dry_run_report import DryRunRefusal, DryRunReport
from orchestrator.entrants.dry_run_watch import DryRunDisplay
from orchestrator.entrants.ports import SpaceUse
from orchestrator.entrants.rules.findings import Certainty, Finding
from orchestrator.entrants.rules.quantities import size_text
from sandbox_profiles.profile import SandboxProfile

MOST_LINES = 1000
"""Lines of the log that are shown live; the last ones stand in the JSON document."""

_LONGEST_WAITING = 64 * 1024
_NARROWEST = 20


class LogLines:
    """Cuts pieces of a log into lines that a terminal may show, at most `MOST_LINES` of them."""

    def __init__(self, width: int) -> None:
        self._width = max(width, _NARROWEST)
        self._waiting = b""
        self._shown = 0

    def take(self, piece: bytes) -> Iterator[str]:
        """Yield the lines that are complete now, escaped and cut to the width."""
        *lines, self._waiting = (self._waiting + piece).split(b"\n")
        self._waiting = self._waiting[:_LONGEST_WAITING]
        for line in lines:
            self._shown += 1
            if self._shown == MOST_LINES:
                yield f"… more than {MOST_LINES} lines; the rest is not shown here"
            if self._shown < MOST_LINES:
                yield self._escaped(line)

    def rest(self) -> Iterator[str]:
        """Yield what is left without a line's end."""
        if self._waiting and self._shown < MOST_LINES:
            yield self._escaped(self._waiting)
        self._waiting = b""

    def _escaped(self, line: bytes) -> str:
        text = line.rstrip(b"\r").decode("utf-8", "backslashreplace").expandtabs(4)
        return escape_untrusted(text, self._width)


class _UsageProgress(Progress):
    """Progress bars with one line below them for what is in use."""

    usage = Text()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.usage:
            yield self.usage


class LiveDisplay(LiveReporter):
    """For terminals: the log scrolls above the bars, what is in use stands below them."""

    def __init__(self, progress: _UsageProgress, profile: SandboxProfile) -> None:
        super().__init__(progress)
        self._bars = progress
        self._profile = profile
        self._lines = LogLines(progress.console.width - 2)

    def log(self, piece: bytes) -> None:
        """Print complete lines above the bars."""
        for line in self._lines.take(piece):
            self._print(line)

    def usage(self, sample: UsageSample, space: SpaceUse) -> None:
        """Replace the line below the bars."""
        self._bars.usage = Text(usage_line(sample, space, self._profile), style="dim")
        self._bars.usage.truncate(self._bars.console.width, overflow="ellipsis")

    def close(self) -> None:
        """End the present step; what it left of the log's last line is shown."""
        for line in self._lines.rest():
            self._print(line)
        self._bars.usage = Text()
        super().close()

    def _print(self, line: str) -> None:
        self._bars.console.print(Text("│ " + line, style="dim"), overflow="ellipsis", no_wrap=True)


class LineDisplay(LineReporter):
    """For files and dumb terminals: one plain line after the other."""

    def __init__(self, width: int) -> None:
        self._lines = LogLines(width - 2)

    def log(self, piece: bytes) -> None:
        """Write complete lines."""
        for line in self._lines.take(piece):
            self.note("| " + line)

    def usage(self, sample: UsageSample, space: SpaceUse) -> None:
        """Say nothing: the peaks stand in the verdict."""

    def close(self) -> None:
        """Write what is left."""
        for line in self._lines.rest():
            self.note("| " + line)


class QuietDisplay(WarningReporter):
    """For --json: warnings alone."""

    def log(self, piece: bytes) -> None:
        """Ignore the log; it is part of the document."""

    def usage(self, sample: UsageSample, space: SpaceUse) -> None:
        """Ignore the use."""


def usage_line(sample: UsageSample, space: SpaceUse, profile: SandboxProfile) -> str:
    """Return what is in use beside its limits, in less than 80 columns."""
    memory = f"{size_text(sample.memory_bytes)} of {size_text(profile.memory_bytes)}"
    line = f"  memory {memory} · {sample.processes} of {profile.pids} processes"
    if space.tmp_bytes is not None:
        line += f" · /tmp {size_text(space.tmp_bytes)}"
    return line


@contextmanager
def shown_dry_run(profile: SandboxProfile, *, quiet: bool) -> Iterator[DryRunDisplay]:
    """Yield the display that fits where stderr goes, and tidy it up at the end."""
    if quiet:
        yield QuietDisplay()
        return
    console = stderr_console()
    if not console.is_terminal or os.environ.get("TERM") == "dumb":
        lines = LineDisplay(console.width)
        try:
            yield lines
        finally:
            lines.close()
        return
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        AmountColumn(),
        TimeElapsedColumn(),
    )
    with _UsageProgress(*columns, console=console) as progress:
        display = LiveDisplay(progress, profile)
        try:
            yield display
        finally:
            display.close()


_STYLES = {Outcome.COMPLETED: "bold green", Outcome.PLATFORM_FAULT: "bold yellow"}
_SURE = {
    Certainty.PROVEN: "",
    Certainty.LAST_WORDS: "",
    Certainty.SAID: "perhaps: ",
    Certainty.POSSIBLE: "perhaps: ",
}


def refusal_view(refusal: DryRunRefusal) -> RenderableType:
    """Return what a certified run would do with an image that it refuses."""
    verdict = Text.assemble(
        ("refused  ", "bold red"),
        ("a certified run would not start; nothing would be spent", ""),
    )
    if refusal.findings:
        return Group(verdict, *_findings(refusal.findings, failed=True))
    return Group(verdict, Text(str(refusal.error)))


def verdict_view(report: DryRunReport) -> RenderableType:
    """Return the verdict, the peaks and the findings: at most one screen."""
    return Group(
        *_findings(report.findings, failed=not report.would_be_scored),
        _peaks(report),
        *_notes(report),
        _verdict(report),
    )


def _verdict(report: DryRunReport) -> Text:
    style = _STYLES.get(report.outcome, "bold red")
    codes = ", ".join(report.diagnostics)
    scored = "and score it" if report.would_be_scored else "and not score it"
    if report.outcome is Outcome.PLATFORM_FAULT:
        scored = "and refund it"
    text = Text.assemble("A certified run would record ", (report.outcome.value, style))
    return text.append(f"{f' ({codes})' if codes else ''} {scored}.")


def _peaks(report: DryRunReport) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right")
    table.add_column(style="dim")
    sandbox, profile = report.executed.first.sandbox, report.prepared.request.profile
    table.add_row("time", f"{sandbox.elapsed_s:.1f} s", f"of {profile.deadline_s} s")
    names = {"memory_bytes": "memory", "tmp_bytes": "/tmp", "shm_bytes": "/dev/shm"}  # noqa: S108
    for name, figures in report.peaks().items():
        shown = names.get(name, name.removesuffix("_bytes"))
        table.add_row(shown, *_cells(name, figures["peak"], figures["limit"]))
    return table


def _cells(name: str, peak: int | None, limit: int | None) -> tuple[str, str]:
    write = size_text if name.endswith("_bytes") else str
    return (
        "not measured" if peak is None else write(peak),
        "there is none" if limit is None else f"of {write(limit)}",
    )


def _notes(report: DryRunReport) -> Iterator[Text]:
    if report.watched.unseen is not None:
        unseen = f"network attempts were not counted: {report.watched.unseen}"
        yield Text(unseen, style="dim")
    if report.executed.repeats_agree:
        repeat = report.prepared.request.repeat
        yield Text(f"{repeat} executions agree to the last byte", style="dim")
    if report.unscored is not None and report.would_be_scored:
        yield Text(f"no score card: {report.unscored}", style="dim")


def _findings(findings: tuple[Finding, ...], *, failed: bool) -> Iterator[RenderableType]:
    for number, finding in enumerate(findings):
        head = "bold red" if failed and number == 0 else "yellow"
        text = Text.assemble((f"{finding.cause.value}: ", head), _SURE[finding.certainty])
        yield text.append(finding.fact)
        for detail in finding.details:
            yield Padding(Text(detail, style="dim"), (0, 0, 0, 4), expand=False)
        yield Padding(Text(f"→ {finding.remedy}"), (0, 0, 0, 2), expand=False)


def result_console() -> Console:
    """Return a console on stdout."""
    return Console(highlight=False)
