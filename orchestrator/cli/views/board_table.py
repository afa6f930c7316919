"""Show a board in the terminal; fractions become percent here and in the score card alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from manifests.text import escape_untrusted
from orchestrator.cli.views.score_card import NOTHING, ScorerString, fraction, percent

_MAIN: dict[str, str] = {
    "recognition": "macro-F1",
    "translation": "S_total",
    "segmentation": "mF1S",
}
_COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "recognition": (("top-1", "top1"), ("held-out", "held_out_top1"), ("GER", "ger")),
    "translation": (("S_transl.", "s_translation"), ("S_gener.", "s_generalization")),
    "segmentation": (("recognized", "all_reference_accuracy"), ("WER", "wer_all")),
}
_DETAILS: dict[str, tuple[tuple[str, str], ...]] = {
    "recognition": (("F1, 3+", "macro_f1_min3"),),
    "translation": (("S_pose", "s_pose"),),
    "segmentation": (("mF1B", "mf1b"), ("AUC-RU", "auc_ru")),
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
    footer = ScorerString(group["scorer_string"])
    parts: list[RenderableType] = [_ranking(rows, track), Text(), _details(rows, track), footer]
    lead = group["lead"]
    if lead is not None:
        who = f"run {lead['run_id']} leads" if lead["run_id"] else "the lead is not known here"
        parts.append(Text(f"{who}: {escape_untrusted(lead['reason'], 300)}"))
    return Group(*parts)


def _table(*columns: tuple[str, Literal["left", "right"]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title, justify in columns:
        # a long name goes on in the next line: nothing is ever cut
        table.add_column(title, justify=justify, no_wrap=title != "team", overflow="fold")
    return table


def _ranking(rows: list[Mapping[str, Any]], track: str) -> Table:
    figures = [(title, name) for title, name in _COLUMNS[track]]
    table = _table(
        ("#", "right"),
        ("team", "left"),
        ("status", "left"),
        (_MAIN[track], "right"),
        *((title, "right") for title, _ in figures),
        ("", "left"),
    )
    shown = percent if track in _PERCENT_TRACKS else fraction
    for row in rows:
        number = row["certified_run"] if row["certified"] else None
        floor = "" if row["floor"] is None else f" ± {shown(row['floor']).removesuffix('%')}"
        table.add_row(
            "" if row["rank"] is None else str(row["rank"]),
            escape_untrusted(row["team"], 40) + (" †" if row["private_data"] else ""),
            row["status"] + (f" {number}" if number else ""),
            shown(row["main"]) + floor,
            *(shown(row["figures"].get(name)) for _, name in figures),
            _marks(row),
            style=None if row["rank"] else "dim",
        )
    return table


def _details(rows: list[Mapping[str, Any]], track: str) -> Table:
    """Return what made each row: its run, the row above against it, image and Docker version."""
    figures = [(title, name) for title, name in _DETAILS[track]]
    table = _table(
        ("#", "right"),
        ("run", "left"),
        *((title, "right") for title, _ in figures),
        ("above, paired 95%", "right"),
        ("image", "left"),
        ("docker", "left"),
    )
    shown = percent if track in _PERCENT_TRACKS else fraction
    for row in rows:
        versions = row["versions"]
        table.add_row(
            "" if row["rank"] is None else str(row["rank"]),
            row["run_id"],
            *(shown(row["figures"].get(name)) for _, name in figures),
            _interval(row["tie"], track),
            NOTHING if versions["image"] is None else _short(versions["image"]),
            escape_untrusted(versions["docker"] or NOTHING, 20),
            style="dim",
        )
    return table


def _short(digest: str) -> str:
    """Return what tells two digests apart on a board; the card holds the whole one."""
    return digest.removeprefix("sha256:")[:12]


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
