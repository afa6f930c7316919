"""Checks 24 and 25: each row's cards, against the log and against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manifests.digests import sha256_hex
from manifests.encoding import parse_json_object, readable_json
from manifests.errors import ClaimDoesNotHold
from manifests.statements import EditionSealed, RunScored
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.runs.rules.run_files import PRIVATE_CARD, PUBLIC_CARD
from orchestrator.runs.rules.run_record import RunHistory

SCORES = "scores"
_NESTED = {
    "held_out_top1": ("held_out", "top1"),
    "aurc": ("abstention", "aurc"),
    "grounding_g": ("grounding", "g"),
    "wer_all": ("wer_all", "wer"),
    "wer_iv": ("wer_iv", "wer"),
}
"""Figures of `run-scored` whose place in the card is not their name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCard:
    """A card that the log knows, and its row."""

    place: str
    row: RunScored
    document: Mapping[str, Any]


def card_folders(run: Folder) -> tuple[Folder, ...]:
    """Return every folder of a run that may hold cards: its own, and one for each later row."""
    later = (run.below(f"{SCORES}/{name}") for name in run.folders_below(SCORES))
    return (run.without(SCORES), *later)


def check_cards(
    findings: Findings,
    run: Folder,
    *,
    rows: Sequence[RunScored],
    edition: EditionSealed | None,
    history: RunHistory | None,
) -> tuple[ScoredCard, ...]:
    """Match cards with rows, both ways, and compare what they say; return the matched cards."""
    waiting = {row.public_sha256: row for row in rows}
    matched: list[ScoredCard] = []
    for folder in card_folders(run):
        digest = folder.digests.get(PUBLIC_CARD)
        if digest is None:
            continue
        findings.compared(Check.CARD)
        place = f"{folder.place}/{PUBLIC_CARD}"
        row = waiting.pop(digest, None)
        if row is None:
            findings.fault(Check.CARD, f"{place}: no row of the log is of this card")
            continue
        with findings.judging(Check.CARD):
            document = parse_json_object(folder.read(PUBLIC_CARD), source=place)
            _compare(findings, document, row, place=place)
            _compare_provenance(findings, document, row, edition, history, place=place)
            matched.append(ScoredCard(place=place, row=row, document=document))
        check_private_card(findings, folder, row=row)
    for row in waiting.values():
        findings.fault(Check.CARD, f"{run.place}: the card of statement {row.sequence} is not here")
    return tuple(matched)


def _compare(
    findings: Findings, document: Mapping[str, Any], row: RunScored, *, place: str
) -> None:
    scorer = document.get("scorer")
    string = scorer.get("string") if isinstance(scorer, dict) else None
    public = document.get("public")
    differing = [
        name
        for name, found, expected in (
            ("labels", document.get("labels"), row.labels.version),
            ("scorer", string, row.scorer_string),
            ("completeness", document.get("complete"), row.complete),
        )
        if found != expected
    ]
    figures = public if isinstance(public, dict) else {}
    differing += [name for name, value in row.figures.items() if not _same(figures, name, value)]
    if "private" in document:
        differing.append("its private part, which is not public")
    if differing:
        findings.fault(
            Check.CARD, f"{place}: log and card differ in {', '.join(sorted(differing)[:5])}"
        )


def _same(figures: Mapping[str, Any], name: str, expected: float | None) -> bool:
    if name == "mf1s_floor":
        intervals = figures.get("intervals")
        bounds = intervals["figures"].get("mf1s") if isinstance(intervals, dict) else None
        return expected == (None if bounds is None else (bounds[1] - bounds[0]) / 2)
    value: Any = figures
    for key in _NESTED.get(name, (name,)):
        value = value.get(key) if isinstance(value, dict) else None
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return number == expected


def _compare_provenance(
    findings: Findings,
    document: Mapping[str, Any],
    row: RunScored,
    edition: EditionSealed | None,
    history: RunHistory | None,
    *,
    place: str,
) -> None:
    """Compare what the card says of its origin, where it says it, with the log."""
    expected: dict[str, object] = {
        "run_id": row.run_id,
        "edition": row.edition,
        "labels_sha256": row.labels.sha256,
        "predictions_sha256": row.predictions_sha256,
    }
    if edition is not None:
        expected["clip_set_sha256"] = edition.clip_set_sha256
    if history is not None:
        expected["image"] = history.reserved.image.config_digest
        expected["image_manifest"] = history.reserved.image.manifest_digest
    stated = document.get("provenance")
    stated = stated if isinstance(stated, dict) else {}
    differing = [name for name in expected if name in stated and stated[name] != expected[name]]
    if differing:
        findings.fault(
            Check.CARD, f"{place}: its provenance differs from the log in {', '.join(differing)}"
        )


def check_private_card(findings: Findings, folder: Folder, *, row: RunScored | None) -> None:
    """Derive the public card from the private one, where that is here (check 25)."""
    if PRIVATE_CARD not in folder.digests:
        findings.note(Check.PRIVATE_CARD, "private cards stay with the organizer and the entrant")
        return
    with findings.judging(Check.PRIVATE_CARD):
        findings.compared(Check.PRIVATE_CARD)
        source, data = f"{folder.place}/{PRIVATE_CARD}", folder.read(PRIVATE_CARD)
        if row is not None and sha256_hex(data) != row.private_sha256:
            raise ClaimDoesNotHold(f"{source}: not the private card that the log recorded")
        document = parse_json_object(data, source=source)
        document.pop("private", None)
        if readable_json(document) != folder.read(PUBLIC_CARD):
            raise ClaimDoesNotHold(f"{source}: the public card is not this one's public part")
