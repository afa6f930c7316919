"""What is marked beside a row: a tie with the row above, and a gap between the two rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.board.rules.board_rows import BoardRow
from scorers.recognition import gap_flag, gap_limit, within_noise
from scorers.statistics.paired import PairedComparison


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Two rows could not be compared, and why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """How a row stands to the ranked row above it."""

    above: str
    """The run id of the row above."""
    tied: bool | None
    """None where neither floors nor a paired interval are known."""
    basis: Literal["noise-floor", "paired-interval"] | None
    paired: PairedComparison | NotCompared
    """The row above minus this one, clips resampled together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How far a team's rows in Qualifier and Final are apart."""

    other_run: str
    difference: float
    """Qualifier minus Final."""
    limit: float | None
    flagged: bool | None
    """Whether the clip draw does not explain the difference; None without a noise floor."""


def tie_with(above: BoardRow, row: BoardRow, paired: PairedComparison | NotCompared) -> Tie:
    """Mark a tie: distance at most the larger of the two noise floors (scoring notes, 0).

    A track without a noise floor is judged by the paired interval: it ties when it holds 0.
    """
    tied: bool | None = None
    basis: Literal["noise-floor", "paired-interval"] | None = None
    if above.floor is not None and row.floor is not None:
        tied, basis = (
            within_noise(above.main, row.main, floors=(above.floor, row.floor)),
            "noise-floor",
        )
    elif isinstance(paired, PairedComparison):
        tied, basis = paired.low <= 0 <= paired.high, "paired-interval"
    return Tie(above=above.run_id, tied=tied, basis=basis, paired=paired)


def gap_of(row: BoardRow, others: Sequence[BoardRow], *, row_is_final: bool) -> Gap | None:
    """Compare a row with its team's best row in the other round; None where there is none.

    The limit is sqrt(2) times the larger of the two floors (scoring notes, 0).
    """
    ours = [other for other in others if other.team == row.team]
    if not ours:
        return None
    other = min(ours, key=lambda one: (-one.main, one.sequence))
    qualifier, final = (other.main, row.main) if row_is_final else (row.main, other.main)
    floors = [floor for floor in (row.floor, other.floor) if floor is not None]
    floor = max(floors) if len(floors) == 2 else None
    return Gap(
        other_run=other.run_id,
        difference=qualifier - final,
        limit=None if floor is None else gap_limit(floor),
        flagged=None if floor is None else gap_flag(qualifier, final, floor),
    )
