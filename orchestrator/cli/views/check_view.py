"""Show what is wrong with a predictions file: a table for people, a document for programs."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from manifests.encoding import Json
from manifests.outcomes import Outcome
from manifests.predictions.problems import PredictionProblem
from orchestrator.entrants.check_predictions import MAX_PROBLEMS, PredictionsReport


def check_document(report: PredictionsReport, predictions: Path) -> dict[str, Json]:
    """Return the report as `piste check --json` prints it."""
    return {
        "predictions": str(predictions),
        "track": report.track,
        "clips": report.clips,
        "holds": report.holds,
        "diagnostic": report.diagnostic,
        "problems": [
            {
                "kind": problem.kind.value,
                "clip_id": problem.clip_id,
                "line": problem.line,
                "message": problem.message,
            }
            for problem in report.problems
        ],
        "missing_clips": list(report.missing),
        "notes": list(report.notes),
        "predictions_sha256": report.predictions_sha256,
    }


def check_view(report: PredictionsReport, predictions: Path) -> RenderableType:
    """Return every problem with line and clip, then the notes, then the verdict."""
    parts: list[RenderableType] = []
    if report.problems:
        parts.append(_table(report, predictions.name))
    if len(report.missing) > 1:
        parts.append(Text(f"without a line: {', '.join(report.missing)}"))
    parts += [Text(f"note: {note}", style="yellow") for note in report.notes]
    return Group(*parts, _verdict(report, predictions))


def _table(report: PredictionsReport, source: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("line", justify="right")
    table.add_column("clip")
    table.add_column("problem", no_wrap=True)
    table.add_column("fact", overflow="fold")
    for problem in report.problems:
        line = "" if problem.line is None else str(problem.line)
        fact = Text(_fact(problem, source))
        table.add_row(line, problem.clip_id or "", problem.kind.value, fact)
    return table


def _fact(problem: PredictionProblem, source: str) -> str:
    """Return the message without the place, which has columns of its own."""
    place = source if problem.line is None else f"{source}:{problem.line}"
    rest = problem.message.removeprefix(place)
    if problem.clip_id is not None:
        rest = rest.removeprefix(f", clip {problem.clip_id}")
    return rest.removeprefix(": ")


def _verdict(report: PredictionsReport, predictions: Path) -> Text:
    if report.holds:
        return Text.assemble(
            (f"{predictions}", "bold"),
            f": valid and complete, {report.clips} clips of {report.track}",
        )
    count = len(report.problems)
    found = "1 problem" if count == 1 else f"{count} problems"
    if count >= MAX_PROBLEMS:
        found += " at least"
    return Text.assemble(
        (f"{predictions}", "bold red"),
        f": {found}; a run would end as {Outcome.INVALID_PREDICTIONS.value} "
        f"({report.diagnostic}), unscored",
    )
