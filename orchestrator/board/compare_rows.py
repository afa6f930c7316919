"""Compare board rows from their kept predictions, where this host can open the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from manifests.errors import MalformedDocument, RefusedByPolicy
from orchestrator.board.rules.board import Comparer
from orchestrator.board.rules.board_rows import BoardFacts, BoardRow
from orchestrator.board.rules.row_flags import NotCompared
from orchestrator.keys.sealing_port import IdentityMissing, Purpose
from orchestrator.runs.retained_runs import find_retained
from orchestrator.runs.scoring_materials import (
    ScoringMaterials,
    open_materials,
    scoring_task,
)
from orchestrator.scoring.rules.comparing import compare_runs, measure_translation
from orchestrator.scoring.rules.scoring import ScoringTask
from orchestrator.workspace.ports import FileAbsent
from orchestrator.workspace.workspace import Workspace
from scorers import translation
from scorers.statistics.paired import PairedComparison
from scorers.translation import LeadershipDecision, Measurement, TranslationParameters

NO_IDENTITY = "the labels' identity is not on this host"

Result = TypeVar("Result")


def row_comparer(workspace: Workspace, facts: BoardFacts) -> Comparer:
    """Return how rows are compared here. Labels are opened when the first pair is asked for."""
    comparing = _Comparing(workspace, facts)
    return Comparer(paired=comparing.paired, challenge=comparing.challenge)


class _Comparing:
    """Opens labels once and measures each translation run once."""

    def __init__(self, workspace: Workspace, facts: BoardFacts) -> None:
        self._workspace, self._facts = workspace, facts
        self._materials: ScoringMaterials | None = None
        self._measured: dict[str, Measurement] = {}

    def paired(self, first: BoardRow, second: BoardRow) -> PairedComparison | NotCompared:
        """Return first - second, or why it cannot be known here."""

        def compare() -> PairedComparison:
            parameters = self._open().parameters
            if isinstance(parameters, TranslationParameters):
                return translation.compare(self._measure(first), self._measure(second), parameters)
            return compare_runs(self._task(first), self._task(second))

        return self._try(compare)

    def challenge(
        self, champion: BoardRow, challenger: BoardRow
    ) -> LeadershipDecision | NotCompared:
        """Decide whether the challenger takes the lead, or say why it cannot be decided here."""

        def decide() -> LeadershipDecision:
            parameters = self._open().parameters
            if not isinstance(parameters, TranslationParameters):
                raise MalformedDocument("only a translation board has a lead to challenge")
            return translation.challenge(
                self._measure(champion), self._measure(challenger), parameters
            )

        return self._try(decide)

    def _try(self, compare: Callable[[], Result]) -> Result | NotCompared:
        if not self._workspace.keyring.holds(Purpose.LABELS):
            return NotCompared(NO_IDENTITY)
        try:
            return compare()
        except IdentityMissing as error:
            return NotCompared(str(error))
        except (FileAbsent, MalformedDocument, RefusedByPolicy) as error:
            return NotCompared(f"cannot be compared here: {error}")

    def _open(self) -> ScoringMaterials:
        if self._materials is None:
            facts = self._facts
            self._materials = open_materials(
                self._workspace, facts.sealed.edition, facts.labels.version
            )
        return self._materials

    def _task(self, row: BoardRow) -> ScoringTask:
        retained = find_retained(row.run_id, ledger=self._workspace.ledger)
        return scoring_task(self._open(), retained, store=self._workspace.store)

    def _measure(self, row: BoardRow) -> Measurement:
        if row.run_id not in self._measured:
            self._measured[row.run_id] = measure_translation(self._task(row))
        return self._measured[row.run_id]
