"""A board as one JSON document with stable keys; figures are fractions, null with a reason."""

from __future__ import annotations

from typing import Any

from manifests.statements import LabelsCommitment
from orchestrator.board.rules.board import Board, Group, HeldRow, PlacedRow
from orchestrator.board.rules.board_rows import RowStatus, UnrankedRun
from orchestrator.board.rules.row_flags import Gap, NotCompared, Tie
from orchestrator.scoring.rules.scoring import MAIN_FIGURE


def board_document(board: Board, *, exam_version: str) -> dict[str, Any]:
    """Return the board for `--json`; `rows` are in the order in which they are shown."""
    facts, sealed = board.facts, board.facts.sealed
    versions = {
        "exam_version": exam_version,
        "clip_set_sha256": sealed.clip_set_sha256,
        "scorer": sealed.scorer,
    }
    return {
        "edition": sealed.edition,
        "title": sealed.title,
        "track": sealed.track,
        "round": sealed.round,
        **versions,
        "main_figure": MAIN_FIGURE[sealed.track],
        "labels": _labels(facts.labels),
        "labels_versions": list(facts.versions),
        "data_track": board.view,
        "counterpart": {"edition": board.counterpart.edition, "reason": board.counterpart.reason},
        "groups": [_group(group) for group in board.groups],
        "rows": [_row(placed, group, versions) for group in board.groups for placed in group.rows],
        "held": [_held(row) for row in board.held],
        "unranked": [_unranked(run) for run in board.unranked],
        "awaiting_review": facts.awaiting_review,
        "declined": facts.declined,
    }


def _labels(labels: LabelsCommitment) -> dict[str, Any]:
    return {"version": labels.version, "sha256": labels.sha256, "note": labels.note}


def _group(group: Group) -> dict[str, Any]:
    lead = group.lead
    return {
        "scorer_string": group.scorer_string,
        "rows": len(group.rows),
        "lead": None if lead is None else {"run_id": lead.run_id, "reason": lead.reason},
    }


def _row(placed: PlacedRow, group: Group, versions: dict[str, str]) -> dict[str, Any]:
    row = placed.row
    return {
        "rank": placed.rank,
        "leader": placed.leads,
        "run_id": row.run_id,
        "team": row.team,
        "status": row.status.value,
        "certified": row.status is RowStatus.CERTIFIED,
        "certified_run": row.certified_run,
        "data_track": row.data_track,
        "private_data": row.data_track == "private-data",
        "training_note": row.training_note,
        "main": row.main,
        "floor": row.floor,
        "figures": row.figures,
        "tie": None if placed.tie is None else _tie(placed.tie),
        "gap": None if placed.gap is None else _gap(placed.gap),
        "versions": {
            **versions,
            "scorer_string": group.scorer_string,
            "labels": row.labels.version,
            "labels_sha256": row.labels.sha256,
            "image": row.image,
            "docker": row.docker,
            "predictions_sha256": row.predictions_sha256,
        },
    }


def _tie(tie: Tie) -> dict[str, Any]:
    return {
        "above": tie.above,
        "tied": tie.tied,
        "basis": tie.basis,
        "paired": None if isinstance(tie.paired, NotCompared) else tie.paired.as_document(),
        "reason": tie.paired.reason if isinstance(tie.paired, NotCompared) else None,
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "other_run": gap.other_run,
        "qualifier_minus_final": gap.difference,
        "limit": gap.limit,
        "flagged": gap.flagged,
        "reason": None if gap.flagged is not None else "no noise floor on both rows",
    }


def _held(row: HeldRow) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "team": row.team,
        "status": row.status.value,
        "rank": row.rank,
        "reason": row.reason,
    }


def _unranked(run: UnrankedRun) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "team": run.team,
        "status": run.status.value,
        "reason": run.reason,
    }
