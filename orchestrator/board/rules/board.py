"""Order the rows of an edition into a board. Pure: statements in, a board out.

- Rows on different labels or scorer strings are never ranked together: each scorer string is a
  group of its own, with ranks from 1.
- A team has one rank in a group, by its best row; its other rows follow beneath without one.
- Equal figures share a rank; the row that came first stands first.
- On a qualifier, a row that no other team's row surpasses is held until its team has a Final row.
  It keeps its rank, so that nobody else takes the place, and shows no figure.
- On a translation board the leader stands first, whatever the figures of unproven challengers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.board.rules.board_rows import BoardFacts, BoardRow, RowStatus, UnrankedRun
from orchestrator.board.rules.leadership import Challenge, Lead, fold_lead
from orchestrator.board.rules.row_flags import Gap, NotCompared, Tie, gap_of, tie_with
from scorers.statistics.paired import PairedComparison

ComparePair = Callable[[BoardRow, BoardRow], PairedComparison | NotCompared]
"""The first row's main figure minus the second's, on the same resamples."""

View = Literal["all", "open-data"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparer:
    """How rows are compared from their kept predictions; only a host with labels can."""

    paired: ComparePair
    challenge: Challenge


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """The team rows of the other round of the same exam; `reason` says why there are none."""

    edition: str | None
    rows: tuple[BoardRow, ...] = ()
    reason: str = ""

    def final_teams(self) -> frozenset[str]:
        """Return the teams with a scored run in this round; a submission is no run."""
        return frozenset(row.team for row in self.rows if row.certified_run is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRow:
    """A listed row with its marks. `rank` is null for a team's further rows."""

    row: BoardRow
    rank: int | None
    leads: bool
    tie: Tie | None
    gap: Gap | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow:
    """A row that waits for a Final run of its team; it shows no figure."""

    run_id: str
    team: str
    status: RowStatus
    rank: int | None
    """The place that it keeps free, if it would lead."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows that may be compared: one scorer string on one label version."""

    scorer_string: str
    rows: tuple[PlacedRow, ...]
    lead: Lead | None
    """Translation alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """An edition's board on one label version."""

    facts: BoardFacts
    view: View
    counterpart: Counterpart
    groups: tuple[Group, ...]
    """The one with the most rows first."""
    held: tuple[HeldRow, ...]
    unranked: tuple[UnrankedRun, ...]


def build_board(
    facts: BoardFacts, *, comparer: Comparer, counterpart: Counterpart, view: View = "all"
) -> Board:
    """Return the board; `view` open-data leaves rows trained on private data out."""
    confirmed = counterpart.final_teams()
    asked = [row for row in facts.asked_final if row.team not in confirmed]
    released = [row for row in facts.asked_final if row.team in confirmed]
    rows = [
        row for row in (*facts.rows, *released) if view == "all" or row.data_track == "open-data"
    ]
    strings = sorted({row.scorer_string for row in rows})
    built = [
        _build_group([r for r in rows if r.scorer_string == string], facts, counterpart, comparer)
        for string in strings
    ]
    built.sort(key=lambda pair: (-len(pair[0].rows) - len(pair[1]), pair[0].scorer_string))
    reason = "awaiting Final: the organizer asks for a Final run of the team"
    return Board(
        facts=facts,
        view=view,
        counterpart=counterpart,
        groups=tuple(group for group, _ in built),
        held=tuple(one for _, held in built for one in held)
        + tuple(_held(row, None, reason) for row in asked),
        unranked=facts.unranked,
    )


def would_lead(row: BoardRow, rows: Iterable[BoardRow]) -> bool:
    """Tell whether no row of another team surpasses `row`."""
    return all(row.main >= other.main for other in rows if other.team != row.team)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """One group's rows, sorted out: who waits, who leads, who stands where."""

    listed: tuple[BoardRow, ...]
    waiting: tuple[BoardRow, ...]
    lead: Lead | None

    def rows(self) -> tuple[BoardRow, ...]:
        return (*self.waiting, *self.listed)

    def best_rows(self) -> list[BoardRow]:
        """Return each team's best row, held ones included."""
        best: dict[str, BoardRow] = {}
        for row in sorted(self.rows(), key=_by_figure):
            best.setdefault(row.team, row)
        return list(best.values())

    def leads(self, row: BoardRow) -> bool:
        return self.lead is not None and row.run_id == self.lead.run_id

    def is_ahead(self, one: BoardRow, other: BoardRow) -> bool:
        """Tell whether `one` has a better rank: held first, then the leader, then by figure."""
        if one in self.waiting or other in self.waiting:
            return other not in self.waiting or one.main > other.main
        if self.leads(one) or self.leads(other):
            return self.leads(one)
        return one.main > other.main

    def ranks(self) -> dict[str, int]:
        """Return the rank of each team's best row by run id; equal figures share one."""
        best = self.best_rows()
        return {
            row.run_id: 1 + sum(self.is_ahead(one, row) for one in best if one is not row)
            for row in best
        }


def _build_group(
    rows: Sequence[BoardRow], facts: BoardFacts, counterpart: Counterpart, comparer: Comparer
) -> tuple[Group, tuple[HeldRow, ...]]:
    qualifier = facts.sealed.round == "qualifier"
    confirmed = counterpart.final_teams()
    waiting = tuple(
        row for row in rows if qualifier and row.team not in confirmed and would_lead(row, rows)
    )
    listed = tuple(row for row in rows if row not in waiting)
    translation = facts.sealed.track == "translation"
    lead = fold_lead(listed, comparer.challenge) if translation else None
    standing = _Standing(listed=listed, waiting=waiting, lead=lead)
    placed = _placed(standing, counterpart, comparer, qualifier=qualifier)
    ranks = standing.ranks()
    reason = "awaiting Final: it would lead, and no Final run of the team confirms it yet"
    held = tuple(_held(row, ranks.get(row.run_id), reason) for row in waiting)
    return Group(scorer_string=rows[0].scorer_string, rows=placed, lead=lead), held


def _placed(
    standing: _Standing, counterpart: Counterpart, comparer: Comparer, *, qualifier: bool
) -> tuple[PlacedRow, ...]:
    ranks = standing.ranks()
    placed: list[PlacedRow] = []
    above: BoardRow | None = None
    for row in _display_order(standing, ranks):
        rank = ranks.get(row.run_id)
        tie = None
        if rank is not None and above is not None:
            tie = tie_with(above, row, comparer.paired(above, row))
        gap = gap_of(row, counterpart.rows, row_is_final=not qualifier)
        leads = standing.leads(row)
        placed.append(PlacedRow(row=row, rank=rank, leads=leads, tie=tie, gap=gap))
        above = row if rank is not None else above
    return tuple(placed)


def _display_order(standing: _Standing, ranks: dict[str, int]) -> list[BoardRow]:
    """Return the listed rows: ranked ones by rank, each followed by its team's other rows."""
    rank_of_team = {row.team: ranks[row.run_id] for row in standing.best_rows()}
    first_of_team = {row.team: row.sequence for row in standing.best_rows()}

    def key(row: BoardRow) -> tuple[int, int, str, tuple[float, int, str]]:
        return rank_of_team[row.team], first_of_team[row.team], row.team, _by_figure(row)

    return sorted(standing.listed, key=key)


def _by_figure(row: BoardRow) -> tuple[float, int, str]:
    return -row.main, row.sequence, row.run_id


def _held(row: BoardRow, rank: int | None, reason: str) -> HeldRow:
    return HeldRow(run_id=row.run_id, team=row.team, status=row.status, rank=rank, reason=reason)
