"""Show runs in the terminal: how one ended, what is left, and the list of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from manifests.outcomes import Outcome
from manifests.runs import RunRecord
from manifests.text import escape_untrusted
from orchestrator.ledger.rules.quota import QuotaState
from orchestrator.ledger.rules.run_states import Run, RunState

_STYLES = {Outcome.COMPLETED: "bold green", Outcome.PLATFORM_FAULT: "bold yellow"}


def outcome_line(record: RunRecord) -> Text:
    """Return the run's end in one line."""
    style = _STYLES.get(record.outcome, "bold red")
    codes = ", ".join(record.diagnostics)
    line = Text.assemble(("outcome  ", "dim"), (record.outcome.value, style))
    return line.append(f"  ({codes})", style="dim") if codes else line


def quota_line(quota: QuotaState) -> str:
    """Return both caps in one line: the only definition that is ever shown."""
    return (
        f"certified runs: {quota.used} used, {quota.voided} voided, {quota.left} of "
        f"{quota.certified_runs} left; attempts: {quota.attempts_left} of {quota.attempts} left"
    )


def _engine(environment: Mapping[str, object]) -> str:
    """Name the runtime; only of runc does the engine tell the version."""
    runtime = environment.get("runtime")
    version = f" {environment.get('runc')}" if runtime == "runc" else ""
    return f"Docker {environment.get('docker')}, {runtime}{version}"


def _facts(record: RunRecord) -> Iterable[tuple[str, str]]:
    environment = record.environment
    number = "" if record.certified_run is None else f", certified run {record.certified_run}"
    yield "run", f"{record.run_id} of {record.team} in {record.edition}{number}"
    yield "image", escape_untrusted(record.image.reference, 160)
    yield "config sha256", record.image.config_digest.removeprefix("sha256:")
    yield "engine", _engine(environment) if environment else "never started"
    if environment:
        yield "kernel", str(environment.get("kernel"))
    if record.predictions_sha256 is not None:
        yield "predictions", record.predictions_sha256
    if record.repeats_agree is not None:
        yield "repeats", "agree to the last byte" if record.repeats_agree else "disagree"
    removed = {True: "removed", False: "NOT removed", None: "not looked for"}
    yield "image after", removed[record.image_removed]
    if record.voided is not None:
        yield "voided", f"by the {record.voided.by}: {escape_untrusted(record.voided.reason, 300)}"


def run_summary(record: RunRecord, quota: QuotaState | None, *, folder: str) -> RenderableType:
    """Return what a person wants to know of a run that has ended."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in _facts(record):
        grid.add_row(name, value)
    grid.add_row("evidence", folder)
    parts: list[RenderableType] = [outcome_line(record), grid]
    advisories = record.environment.get("advisories")
    if isinstance(advisories, list):
        parts += [Text(f"advisory: {line}", style="yellow") for line in advisories]
    if quota is not None:
        parts.append(Text(quota_line(quota)))
    return Group(*parts)


def runs_table(runs: Iterable[Run]) -> Table:
    """Return all runs, one a row, in the order in which they began."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)
    # long names go on in the next line: nothing is ever cut
    for column in ("edition", "team"):
        table.add_column(column, overflow="fold")
    table.add_column("try", justify="right", no_wrap=True)
    for column in ("ended", "counts"):
        table.add_column(column, no_wrap=True)
    table.add_column("scored on", overflow="fold")
    for run in runs:
        table.add_row(
            run.run_id,
            run.edition,
            run.team,
            str(run.attempt or "—"),
            _ended(run),
            "yes" if run.counts else "no",
            ", ".join(sorted({version for version, _ in run.scored})) or "—",
        )
    return table


def _ended(run: Run) -> str:
    """Return a finished run's outcome; of another run its state, with the outcome if it has one."""
    if run.outcome is None:
        return run.state.value
    outcome = run.outcome.value
    return outcome if run.state is RunState.FINISHED else f"{run.state.value} ({outcome})"
