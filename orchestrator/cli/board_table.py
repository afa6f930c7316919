"""Show a board in the terminal; fractions become percent here and in the score card alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from manifests.text import escape_untrusted
from orchestrator.cli.score_card import NOTHING, fraction, percent

_COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "recognition": (
        ("macro-F1", "macro_f1"),
        ("3+", "macro_f1_min3"),
        ("top-1", "top1"),
        ("held-out", "held_out_top1"),
        ("GER", "ger"),
    ),
    "translation": (
        ("S_total", "s_total"),
        ("S_translation", "s_translation"),
        ("general.", "s_generalization"),
        ("pose", "s_pose"),
    ),
    "segmentation": (
        ("mF1S", "mf1s"),
        ("mF1B", "mf1b"),
        ("recognized", "all_reference_accuracy"),
        ("AUC-RU", "auc_ru"),
        ("WER", "wer_all"),
    ),
}
_PERCENT_TRACKS = frozenset({"recognition", "segmentation"})


def board_table(document: Mapping[str, Any]) -> RenderableType:
    """Return the board: a table for each group of comparable rows, then what is not in it."""
    parts: list[RenderableType] = [_heading(document)]
    for group in document["groups"]:
        rows = [
            row
            for row in document["rows"]
            if row["versions"]["scorer_string"] == group["scorer_string"]
        ]
        if rows:
            parts += [Text(), _group(document, group, rows)]
    if not document["rows"]:
        parts += [Text(), Text("no row is listed", style="yellow")]
    parts += [Text(line, style=style) for line, style in _below(document)]
    return Group(*parts)


def _heading(document: Mapping[str, Any]) -> Text:
    labels = document["labels"]
    note = f" ({escape_untrusted(labels['note'])})" if labels["note"] else ""
    view = "" if document["data_track"] == "all" else " · open data track"
    text = Text(f"{escape_untrusted(document['title'])}{view}\n", style="bold")
    text.append(
        f"{document['edition']} · {document['round']} · exam {document['exam_version']} · "
        f"{document['scorer']} · {labels['version']}{note}\n"
        f"clip set sha256 {document['clip_set_sha256']}",
        style="dim",
    )
    return text


def _group(
    document: Mapping[str, Any], group: Mapping[str, Any], rows: list[Mapping[str, Any]]
) -> RenderableType:
    track = document["track"]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right")
    table.add_column("team")
    table.add_column("status")
    for title, _ in _COLUMNS[track]:
        table.add_column(title, justify="right")
    table.add_column("±", justify="right")
    table.add_column("above the row, 95%", justify="right")
    table.add_column("")
    table.add_column("run", style="dim")
    table.add_column("image · docker", style="dim")
    for row in rows:
        table.add_row(*_cells(row, track), style=None if row["rank"] else "dim")
    footer = Text(group["scorer_string"], style="dim")
    lead = group["lead"]
    if lead is None:
        return Group(table, footer)
    who = f"run {lead['run_id']} leads" if lead["run_id"] else "the lead is not known here"
    return Group(table, footer, Text(f"{who}: {escape_untrusted(lead['reason'], 300)}"))


def _cells(row: Mapping[str, Any], track: str) -> Iterator[str]:
    shown = percent if track in _PERCENT_TRACKS else fraction
    yield "" if row["rank"] is None else str(row["rank"])
    yield escape_untrusted(row["team"], 40) + (" †" if row["private_data"] else "")
    number = row["certified_run"]
    yield row["status"] + (f" {number}" if row["certified"] and number else "")
    for _, name in _COLUMNS[track]:
        yield shown(row["figures"].get(name))
    yield shown(row["floor"])
    yield _interval(row["tie"], track)
    yield _marks(row)
    yield row["run_id"]
    yield _made_by(row["versions"])


def _interval(tie: Mapping[str, Any] | None, track: str) -> str:
    if tie is None:
        return ""
    paired = tie["paired"]
    if paired is None:
        return NOTHING
    if track in _PERCENT_TRACKS:
        return f"{100 * paired['low']:+.1f} to {100 * paired['high']:+.1f}"
    return f"{paired['low']:+.3f} to {paired['high']:+.3f}"


def _marks(row: Mapping[str, Any]) -> str:
    marks = []
    if row["leader"]:
        marks.append("leader")
    if row["tie"] and row["tie"]["tied"]:
        marks.append("tie")
    if row["gap"] and row["gap"]["flagged"]:
        marks.append("gap: review")
    return ", ".join(marks)


def _made_by(versions: Mapping[str, Any]) -> str:
    image, docker = versions["image"], versions["docker"]
    if image is None:
        return NOTHING
    return f"{image[:19]} · {escape_untrusted(docker or '?', 20)}"


def _below(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what explains the tables, what waits and what does not rank."""
    if any(row["private_data"] for row in document["rows"]):
        yield "† trained on private data: its held-out figure is no unseen-signer score", "dim"
    if any(row["tie"] and row["tie"]["tied"] for row in document["rows"]):
        yield "tie: not apart from the row above by more than the noise", "dim"
    reasons = {row["tie"]["reason"] for row in document["rows"] if row["tie"]} - {None}
    for reason in sorted(reasons):
        yield f"no paired interval: {escape_untrusted(reason, 300)}", "yellow"
    for one in document["held"]:
        place = f"#{one['rank']} " if one["rank"] else ""
        yield f"held {place}{one['team']} · run {one['run_id']} · {one['reason']}", "yellow"
    for one in document["unranked"]:
        reason = escape_untrusted(one["reason"], 200)
        yield f"not ranked: {one['team']} · run {one['run_id']} · {reason}", "dim"
    if document["awaiting_review"]:
        yield f"{document['awaiting_review']} submissions await review", "yellow"
