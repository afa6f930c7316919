"""`piste board`: an edition's rows, folded from the ledger and compared where labels are here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from manifests.statements import EditionSealed, Statement
from orchestrator.board.compare_rows import row_comparer
from orchestrator.board.rules.board import Board, Comparer, Counterpart, View, build_board
from orchestrator.board.rules.board_document import board_document
from orchestrator.board.rules.board_rows import fold_board
from orchestrator.board.rules.counterpart import find_counterpart
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.ledger.ports import Ledger
from orchestrator.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRequest:
    """What is asked for; `other_round` names the Qualifier of a Final, or the other way round."""

    edition: str
    labels_version: str | None = None
    """None: the version that the edition was sealed with. Others are asked for by name."""
    other_round: str | None = None
    view: View = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBoard:
    """A board, and the exam version that every row of it stands for."""

    board: Board
    exam_version: str

    def as_document(self) -> dict[str, Any]:
        """Return the board for `--json`."""
        return board_document(self.board, exam_version=self.exam_version)


def show_board(
    workspace: Workspace, request: BoardRequest, *, comparer: Comparer | None = None
) -> ShownBoard:
    """Return the board of an edition; by default rows are compared with this host's labels.

    Raises:
        RefusedByPolicy: no such edition or label version, or `other_round` is not the other round.
        ClaimDoesNotHold: a file of the edition or a kept file is not what was recorded.

    """
    ledger = workspace.ledger
    sealed = load_sealed_edition(request.edition, store=workspace.store, ledger=ledger)
    statements = _statements(request.edition, ledger)
    facts = fold_board(statements, request.edition, request.labels_version)
    board = build_board(
        facts,
        comparer=comparer or row_comparer(workspace, facts),
        counterpart=_counterpart(sealed.statement, request.other_round, ledger),
        view=request.view,
    )
    return ShownBoard(board=board, exam_version=sealed.edition.exam_version)


def _statements(edition: str, ledger: Ledger) -> Iterator[Statement]:
    for scope in ({"kind": "team-registered"}, {"edition": edition}):
        for entry in ledger.entries(**scope):
            yield entry.statement


def _counterpart(sealed: EditionSealed, named: str | None, ledger: Ledger) -> Counterpart:
    editions = [
        entry.statement
        for entry in ledger.entries(kind="edition-sealed")
        if isinstance(entry.statement, EditionSealed)
    ]
    found = find_counterpart(sealed, editions, named=named)
    if isinstance(found, str):
        return Counterpart(edition=None, reason=found)
    rows = fold_board(_statements(found.edition, ledger), found.edition).rows
    return Counterpart(edition=found.edition, rows=rows)
