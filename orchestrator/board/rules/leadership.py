"""Who leads a translation board: the lead changes only by a significant advantage.

A fold over the rows in the order in which they came onto the board. The first row leads; a row of
another team takes the lead when `challenge` says so (scoring notes, 0); a better row of the
leading team takes its own team's place, which is no change of the lead. Nothing is stored: a void
or a decline changes the fold's input, and everybody with the labels can repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.board.rules.board_rows import BoardRow
from orchestrator.board.rules.row_flags import NotCompared
from scorers.translation import LeadershipDecision

Challenge = Callable[[BoardRow, BoardRow], LeadershipDecision | NotCompared]
"""Champion, then challenger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Who leads, and by which decision; no run and a reason where it cannot be told."""

    run_id: str | None
    reason: str


def fold_lead(rows: Sequence[BoardRow], challenge: Challenge) -> Lead:
    """Return who leads. `rows` are comparable, listed, and in any order."""
    ordered = sorted(rows, key=lambda row: (row.sequence, row.run_id))
    if not ordered:
        return Lead(run_id=None, reason="no row is ranked")
    leader, reason = ordered[0], "the first row"
    for row in ordered[1:]:
        if row.team == leader.team:
            if row.main > leader.main:
                leader = row
            continue
        if row.main <= leader.main:
            continue  # a worse challenger never takes the lead, however sure the difference
        decision = challenge(leader, row)
        if isinstance(decision, NotCompared):
            return Lead(run_id=None, reason=decision.reason)
        if decision.dethrones:
            leader, reason = row, decision.reason
    return Lead(run_id=leader.run_id, reason=reason)
