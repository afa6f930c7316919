"""Show a score card in the terminal: fractions become percent here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from manifests.text import escape_untrusted

NOTHING = "—"

Row = tuple[str, str, str]
"""Figure, value, what it means."""


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction as percent, or a dash where there is none."""
    return NOTHING if value is None else f"{100 * value:.{digits}f}%"


def fraction(value: float | None, digits: int = 3) -> str:
    """Return a figure as it is, or a dash where there is none."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def _recognition_rows(public: Mapping[str, Any]) -> Iterator[Row]:
    counts = public["counts"]
    floor = public.get("macro_f1_floor")
    margin = "" if floor is None else f" ± {100 * floor:.1f}"
    signs, tokens = counts["scored_signs"], counts["scored_tokens"]
    yield "macro-F1", percent(public["macro_f1"]) + margin, f"the ranking: mean F1 of {signs} signs"
    yield "macro-F1, 3+", percent(public["macro_f1_min3"]), "signs seen 3 times or more"
    yield "top-1", percent(public["top1"]), f"of {tokens} scored sign tokens"
    yield "top-3", percent(public["top3"]), "right among the first three"
    held_out = public.get("held_out")
    if held_out:
        half_width = held_out.get("half_width")
        around = "" if half_width is None else f" ± {100 * half_width:.0f}"
        yield "held-out", percent(held_out["top1"]) + around, f"one person, n = {held_out['n']}"
    yield "BLEU-1 / BLEU-2", f"{percent(public['bleu1'])} / {percent(public['bleu2'])}", "glosses"
    yield (
        "GER",
        percent(public["ger"]),
        f"wrong of {counts['positions']} positions, lower is better",
    )
    oov = counts["oov_positions"]
    yield "false alarms", percent(public["false_alarms"]), f"on {oov} positions outside the signs"
    yield from _abstention_rows(public.get("abstention") or {})


def _abstention_rows(abstention: Mapping[str, Any]) -> Iterator[Row]:
    if not abstention:
        return
    yield "accuracy at 80%", percent(abstention["accuracy_at_80"]), "of the most confident signs"
    yield "coverage at 90%", percent(abstention["coverage_at_90"]), "answered at 90% accuracy"
    yield "AURC", fraction(abstention["aurc"]), "area under risk-coverage, lower is better"
    right_wrong, right_oov = abstention["auroc_right_wrong"], abstention["auroc_right_oov"]
    yield "AUROC", f"{fraction(right_wrong)} / {fraction(right_oov)}", "right-wrong / right-outside"


def _translation_rows(public: Mapping[str, Any]) -> Iterator[Row]:
    yield (
        "S_total",
        fraction(public["s_total"]),
        "the ranking: .60 translation, .25 generalization, .15 pose",
    )
    yield "S_translation", fraction(public["s_translation"]), ".50 BLEURT, .30 chrF, .20 BLEU"
    if public.get("s_translation") is None:
        partial = public.get("s_translation_partial")
        yield "partial", fraction(partial), "chrF and BLEU alone: not comparable, never ranked"
    for name in ("bleurt", "chrf", "bleu"):
        yield {"bleurt": "BLEURT", "chrf": "chrF", "bleu": "BLEU"}[name], fraction(public[name]), ""
    grounding = public.get("grounding") or {}
    verdict = {True: "passed", False: "failed", None: "not enforced"}[grounding.get("passed")]
    yield "grounding G", fraction(grounding.get("g")), f"by {grounding.get('m')}; gate {verdict}"
    yield "S_generalization", fraction(public["s_generalization"]), "canary against main"
    yield "S_pose", fraction(public["s_pose"]), "DTW-PA-MPJPE, inverted"


def _segmentation_rows(public: Mapping[str, Any]) -> Iterator[Row]:
    yield "mF1S", percent(public["mf1s"]), "segments, IoU .40 to .75"
    yield "mF1B", percent(public["mf1b"]), "boundaries, 1 to 4 frames"
    yield "frame macro-F1", percent(public["frame_macro_f1"]), "BIO"
    yield "foreground IoU", percent(public["foreground_iou"]), ""
    yield "coverage", percent(public["coverage"]), "references with a match"
    both = f"{percent(public['retained'])} / {percent(public['purity'])}"
    yield "C / Q", both, "retained evidence / purity of matched pairs"
    accuracy = public["all_reference_accuracy"]
    matched = percent(public["matched_accuracy"])
    yield "recognized", percent(accuracy), f"of all references; {matched} of the matched"
    yield "AUC-RU", percent(public["auc_ru"]), f"grid {public.get('auc_ru_grid')}"
    for key, name in (("wer_all", "WER, all"), ("wer_iv", "WER, in vocabulary")):
        wer = public.get(key) or {}
        parts = f"S {wer.get('s')} D {wer.get('d')} I {wer.get('i')} of {wer.get('n')}"
        yield name, percent(wer.get("wer")), parts if wer else ""
    yield "OOV share", percent(public["oov_share"]), ""


_ROWS = {
    "recognition": _recognition_rows,
    "translation": _translation_rows,
    "segmentation": _segmentation_rows,
}


def _by_length(public: Mapping[str, Any]) -> RenderableType | None:
    bins = public.get("top1_by_length")
    if not bins:
        return None
    table = Table(title="top-1 by sentence length", title_justify="left", box=None, pad_edge=False)
    table.add_column("signs")
    for length in bins:
        table.add_column(str(length), justify="right")
    table.add_row("top-1", *(percent(entry["top1"], 0) for entry in bins.values()))
    table.add_row("n", *(str(entry["n"]) for entry in bins.values()), style="dim")
    return table


def _figures(rows: Sequence[Row]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for index, row in enumerate(rows):
        table.add_row(*row, style="bold green" if index == 0 else None)
    return table


def _reasons(public: Mapping[str, Any]) -> RenderableType | None:
    reasons = public.get("reasons")
    if not reasons:
        return None
    lines = (f"{name}: {escape_untrusted(str(reason))}" for name, reason in reasons.items())
    return Text("not computed — " + "; ".join(lines), style="yellow")


class ScorerString:
    """A scorer string that breaks between its parameters, never inside one that fits a line."""

    def __init__(self, string: str) -> None:
        self._parts = string.split("|")

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines that fit the width; joined again they are the string."""
        line = ""
        for place, part in enumerate(self._parts):
            piece = part if place == len(self._parts) - 1 else f"{part}|"
            if line and len(line) + len(piece) > options.max_width:
                yield Text(line, style="dim", overflow="fold")
                line = ""
            line += piece
        yield Text(line, style="dim", overflow="fold")


_DIGESTS = {
    "clip_set_sha256": "clip set",
    "labels_sha256": "labels",
    "predictions_sha256": "predictions",
    "image": "image",
    "image_manifest": "manifest",
    "consumer_image": "consumer",
}
"""What is identified by a SHA-256; the longest name leaves room for it in 80 columns."""


def _provenance(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield what made the card: facts in a line, then the digests, one a row."""
    known = {
        name: escape_untrusted(str(value), 200)
        for name, value in (document.get("provenance") or {}).items()
        if value is not None
    }
    facts = [f"labels {document['labels']}"]
    facts += [f"{name.replace('_', ' ')} {known[name]}" for name in known if name not in _DIGESTS]
    yield Text(" · ".join(facts), style="dim")
    digests = Table.grid(padding=(0, 1, 0, 0))
    digests.add_column(style="dim", no_wrap=True)
    digests.add_column(style="dim", overflow="fold")
    for name, shown in _DIGESTS.items():
        if name in known:
            digests.add_row(shown, known[name].removeprefix("sha256:"))
    if digests.row_count:
        yield Text("sha256", style="dim")
        yield digests
    yield ScorerString(document["scorer"]["string"])


def score_card(document: Mapping[str, Any], *, title: str) -> Panel:
    """Return the card as a panel: what ranks first, its noise beside it, what made it below."""
    public = document["public"]
    if not document["complete"]:
        reasons = _reasons(public) or Text("incomplete: not scored", style="yellow")
        parts: list[RenderableType] = [reasons]
    else:
        parts = [_figures(list(_ROWS[document["track"]](public)))]
        extra = (_by_length(public), _reasons(public))
        parts += [each for part in extra if part is not None for each in (Text(), part)]
    parts += [Text(), *_provenance(document)]
    return Panel(Group(*parts), title=escape_untrusted(title), title_align="left", expand=False)
