"""The board is a pure fold of the ledger: ranks, statuses, ties, gaps and what is held."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.digests import sha256_hex
from manifests.errors import RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.statements import (
    LabelsAdded,
    LabelsCommitment,
    RunScored,
    Statement,
    SubmissionRecorded,
    SubmissionReviewed,
    TeamRegistered,
)
from orchestrator.board.rules.board import (
    Board,
    Comparer,
    Counterpart,
    PlacedRow,
    View,
    build_board,
)
from orchestrator.board.rules.board_document import board_document
from orchestrator.board.rules.board_rows import BoardRow, RowStatus, fold_board
from orchestrator.board.rules.counterpart import find_counterpart
from orchestrator.board.rules.row_flags import NotCompared
from scorers.statistics.paired import PairedComparison
from tests.support.synthetic_ledger import (
    LABELS,
    NOW,
    SCORER,
    edition_sealed,
    run_finished,
    run_reserved,
    run_scored,
    run_started,
    run_voided,
)

QUALIFIER, FINAL = "exam-qualifier", "exam-final"
FLOOR = 0.038
NO_COUNTERPART = Counterpart(edition=None, reason="none")
LABELS_2 = LabelsCommitment(version="labels-v2", sha256=sha256_hex(b"labels-v2"))


def not_here(_first: BoardRow, _second: BoardRow) -> NotCompared:
    return NotCompared("no labels here")


def never(_first: BoardRow, _second: BoardRow) -> NoReturn:
    raise AssertionError("a recognition board has no lead to challenge")


COMPARER = Comparer(paired=not_here, challenge=never)


def team(name: str, *, organizer: bool = False, private: bool = False) -> TeamRegistered:
    track: Literal["open-data", "private-data"] = "private-data" if private else "open-data"
    return TeamRegistered(at=NOW, team=name, organizer=organizer, data_track=track)


def run_name(number: int) -> str:
    return f"{number:016x}"


def scored(
    run_id: str,
    name: str,
    figure: float | None,
    *,
    edition: str = FINAL,
    labels: LabelsCommitment = LABELS,
    scorer: str = SCORER,
    complete: bool = True,
    floor: float | None = FLOOR,
) -> RunScored:
    return run_scored(run_id, edition=edition, team=name).model_copy(
        update={
            "figures": {"macro_f1": figure, "macro_f1_floor": floor, "top1": figure},
            "labels": labels,
            "scorer_string": scorer,
            "complete": complete,
        }
    )


def certified(
    number: int,
    name: str,
    figure: float | None,
    *,
    attempt: int = 1,
    edition: str = FINAL,
    complete: bool = True,
) -> list[Statement]:
    run_id = run_name(number)
    return [
        run_reserved(run_id, attempt, edition=edition, team=name),
        run_started(run_id, edition=edition, team=name),
        run_finished(run_id, edition=edition, team=name),
        scored(run_id, name, figure, edition=edition, complete=complete),
    ]


def submitted(
    number: int,
    name: str,
    figure: float,
    *decisions: Literal["accept", "decline", "ask-final"],
    private: bool = False,
) -> list[Statement]:
    run_id = run_name(number)
    recorded = SubmissionRecorded(
        at=NOW,
        run_id=run_id,
        edition=QUALIFIER,
        team=name,
        predictions_sha256=sha256_hex(run_id.encode()),
        training_data="private-data" if private else "open-data",
        training_note="as declared",
    )
    reviews: list[Statement] = [
        SubmissionReviewed(
            at=NOW, run_id=run_id, edition=QUALIFIER, team=name, decision=one, reason="seen"
        )
        for one in decisions
    ]
    return [recorded, scored(run_id, name, figure, edition=QUALIFIER), *reviews]


def log(*parts: Iterable[Statement]) -> list[Statement]:
    """Number the statements as a ledger does."""
    flat = [statement for part in parts for statement in part]
    return [one.model_copy(update={"sequence": place}) for place, one in enumerate(flat)]


def board_of(
    statements: Sequence[Statement],
    *,
    edition: str = FINAL,
    labels: str | None = None,
    counterpart: Counterpart = NO_COUNTERPART,
    view: View = "all",
    comparer: Comparer = COMPARER,
) -> Board:
    facts = fold_board(statements, edition, labels)
    return build_board(facts, comparer=comparer, counterpart=counterpart, view=view)


def rows_of(board: Board) -> list[PlacedRow]:
    return [row for group in board.groups for row in group.rows]


def places(board: Board) -> list[tuple[int | None, str, float]]:
    return [(one.rank, one.row.team, one.row.main) for one in rows_of(board)]


TEAMS = [team("nova"), team("lyra"), team("vega"), team("clerc", organizer=True)]
FINAL_SEALED = [edition_sealed(FINAL)]
QUALIFIER_SEALED = [edition_sealed(QUALIFIER, stage="qualifier")]


def final_rows(*names: str) -> Counterpart:
    runs = [certified(900 + place, name, 0.4) for place, name in enumerate(names)]
    facts = fold_board(log(FINAL_SEALED, TEAMS, *runs), FINAL)
    return Counterpart(edition=FINAL, rows=facts.rows)


def test_rows_rank_by_the_main_figure_and_a_team_has_one_rank_with_its_other_runs_beneath() -> None:
    board = board_of(
        log(
            FINAL_SEALED,
            TEAMS,
            certified(1, "nova", 0.60),
            certified(2, "lyra", 0.70),
            certified(3, "nova", 0.80, attempt=2),
            certified(4, "vega", 0.65),
        )
    )
    assert places(board) == [
        (1, "nova", 0.80),
        (None, "nova", 0.60),
        (2, "lyra", 0.70),
        (3, "vega", 0.65),
    ]


def test_equal_figures_share_a_rank_and_the_first_stands_first() -> None:
    board = board_of(
        log(
            FINAL_SEALED,
            TEAMS,
            certified(3, "vega", 0.7),
            certified(1, "nova", 0.7),
            certified(2, "lyra", 0.5),
        )
    )
    assert places(board) == [(1, "vega", 0.7), (1, "nova", 0.7), (3, "lyra", 0.5)]


def test_an_organizers_row_is_never_certified_even_when_it_was_certified() -> None:
    statements = log(FINAL_SEALED, TEAMS, certified(1, "clerc", 0.9), certified(2, "nova", 0.5))
    statuses = {one.row.team: one.row.status for one in rows_of(board_of(statements))}
    assert statuses == {"clerc": RowStatus.ORGANIZER, "nova": RowStatus.CERTIFIED}
    document = board_document(board_of(statements), exam_version="1.0")
    assert [row["certified"] for row in document["rows"]] == [False, True]


def test_a_distance_within_the_larger_floor_is_a_tie_and_more_is_none() -> None:
    board = board_of(
        log(
            FINAL_SEALED,
            TEAMS,
            certified(1, "nova", 0.700),
            certified(2, "lyra", 0.662),
            certified(3, "vega", 0.600),
        )
    )
    ties = [one.tie for one in rows_of(board)]
    assert ties[0] is None
    assert [(tie.above, tie.tied, tie.basis) for tie in ties if tie] == [
        (run_name(1), True, "noise-floor"),
        (run_name(2), False, "noise-floor"),
    ]
    assert all(tie.paired == NotCompared("no labels here") for tie in ties if tie)


@pytest.mark.parametrize(("low", "high", "tied"), [(-0.1, 0.2, True), (0.01, 0.2, False)])
def test_without_floors_the_paired_interval_decides_about_a_tie(
    low: float, high: float, *, tied: bool
) -> None:
    asked: list[tuple[str, str]] = []

    def paired(above: BoardRow, row: BoardRow) -> PairedComparison:
        asked.append((above.team, row.team))
        return PairedComparison(above.main - row.main, low, high, 0.2, 100, 6)

    runs = [certified(1, "lyra", 0.5), certified(2, "nova", 0.6)]
    statements = [
        one.model_copy(update={"figures": {"macro_f1": one.figures["macro_f1"]}})
        if isinstance(one, RunScored)
        else one
        for one in log(FINAL_SEALED, TEAMS, *runs)
    ]
    comparer = Comparer(paired=paired, challenge=never)
    _, second = rows_of(board_of(statements, comparer=comparer))
    assert second.tie is not None
    assert (second.tie.tied, second.tie.basis) == (tied, "paired-interval")
    assert asked == [("nova", "lyra")]
    unknown = rows_of(board_of(statements))[1].tie
    assert unknown is not None
    assert (unknown.tied, unknown.basis) == (None, None)


def test_rows_on_other_scorer_strings_or_labels_are_never_ranked_together() -> None:
    other = "epee200|n:100|v:2.1"
    added = LabelsAdded(at=NOW, edition=FINAL, labels=LABELS_2)
    statements = log(
        FINAL_SEALED,
        TEAMS,
        certified(1, "nova", 0.6),
        certified(2, "lyra", 0.7),
        [
            scored(run_name(1), "nova", 0.9, scorer=other),
            added,
            scored(run_name(2), "lyra", 0.1, labels=LABELS_2),
        ],
    )
    board = board_of(statements)
    assert [group.scorer_string for group in board.groups] == [SCORER, other]
    assert places(board) == [(1, "lyra", 0.7), (2, "nova", 0.6), (1, "nova", 0.9)]
    assert board.facts.versions == ("labels-v1", "labels-v2")
    assert places(board_of(statements, labels="labels-v2")) == [(1, "lyra", 0.1)]
    reasons = [run.reason for run in board_of(statements, labels="labels-v2").unranked]
    assert reasons == ["not scored on labels-v2 yet"]
    with pytest.raises(RefusedByPolicy, match="no labels labels-v3"):
        board_of(statements, labels="labels-v3")


def test_what_cannot_rank_is_listed_below_with_its_reason() -> None:
    nova = {"edition": FINAL, "team": "nova"}
    statements = log(
        FINAL_SEALED,
        TEAMS,
        certified(1, "nova", None),
        certified(2, "lyra", 0.9, complete=False),
        certified(3, "vega", 0.99),
        [run_voided(run_name(3), edition=FINAL, team="vega")],
        [
            run_reserved(run_name(4), 2, **nova),
            run_started(run_name(4), **nova),
            run_finished(run_name(4), Outcome.TIMED_OUT, **nova),
            run_reserved(run_name(5), 3, **nova),
        ],
    )
    board = board_of(statements)
    assert rows_of(board) == []
    assert {run.run_id: run.reason for run in board.unranked} == {
        run_name(1): "macro_f1 could not be computed; its score card says why",
        run_name(2): "incomplete: not scored",
        run_name(3): "voided: engine lost",
        run_name(4): "timed-out: not scored",
        run_name(5): "reserved: not finished",
    }


def test_a_submission_appears_only_when_it_was_accepted_and_the_last_word_counts() -> None:
    statements = log(
        QUALIFIER_SEALED,
        TEAMS,
        submitted(1, "nova", 0.6, "accept"),
        submitted(2, "lyra", 0.5, "accept", "decline"),
        submitted(3, "vega", 0.7),
        submitted(4, "vega", 0.4, "decline", "accept"),
    )
    board = board_of(statements, edition=QUALIFIER, counterpart=final_rows("nova"))
    assert places(board) == [(1, "nova", 0.6), (2, "vega", 0.4)]
    assert {one.row.status for one in rows_of(board)} == {RowStatus.SELF_REPORTED}
    assert (board.facts.awaiting_review, board.facts.declined) == (1, 1)
    assert board.unranked == ()


def test_a_qualifier_row_that_would_lead_is_held_and_keeps_the_place_until_a_final_run() -> None:
    statements = log(
        QUALIFIER_SEALED,
        TEAMS,
        submitted(1, "nova", 0.9, "accept"),
        submitted(2, "lyra", 0.7, "accept"),
        submitted(3, "nova", 0.8, "accept"),
        submitted(4, "nova", 0.6, "accept"),
    )
    board = board_of(statements, edition=QUALIFIER)
    assert places(board) == [(None, "nova", 0.6), (2, "lyra", 0.7)]
    assert [(one.run_id, one.rank) for one in board.held] == [(run_name(1), 1), (run_name(3), None)]
    assert all("awaiting Final" in one.reason for one in board.held)
    confirmed = board_of(statements, edition=QUALIFIER, counterpart=final_rows("nova"))
    assert confirmed.held == ()
    assert places(confirmed)[0] == (1, "nova", 0.9)


def test_a_final_submission_of_nobody_confirms_nothing() -> None:
    statements = log(QUALIFIER_SEALED, TEAMS, submitted(1, "nova", 0.9, "accept"))
    others = final_rows("lyra", "vega")
    board = board_of(statements, edition=QUALIFIER, counterpart=others)
    assert [one.team for one in board.held] == ["nova"]


def test_a_row_of_which_a_final_run_is_asked_waits_whatever_its_figure() -> None:
    statements = log(
        QUALIFIER_SEALED,
        TEAMS,
        submitted(1, "nova", 0.9, "accept"),
        submitted(2, "lyra", 0.2, "ask-final"),
    )
    held = board_of(statements, edition=QUALIFIER, counterpart=final_rows("nova"))
    assert places(held) == [(1, "nova", 0.9)]
    assert [(one.team, one.rank) for one in held.held] == [("lyra", None)]
    released = board_of(statements, edition=QUALIFIER, counterpart=final_rows("nova", "lyra"))
    assert places(released) == [(1, "nova", 0.9), (2, "lyra", 0.2)]


@pytest.mark.parametrize(("figure", "flagged"), [(0.453, False), (0.455, True), (0.30, True)])
def test_a_gap_of_more_than_root_two_floors_between_the_rounds_is_flagged(
    figure: float, *, flagged: bool
) -> None:
    statements = log(QUALIFIER_SEALED, TEAMS, submitted(1, "nova", figure, "accept"))
    qualifier = Counterpart(edition=QUALIFIER, rows=fold_board(statements, QUALIFIER).rows)
    board = board_of(log(FINAL_SEALED, TEAMS, certified(2, "nova", 0.4)), counterpart=qualifier)
    gap = rows_of(board)[0].gap
    assert gap is not None
    assert gap.limit == pytest.approx(2**0.5 * FLOOR)
    assert gap.difference == pytest.approx(figure - 0.4)
    assert gap.flagged is flagged
    mirrored = board_of(statements, edition=QUALIFIER, counterpart=final_rows("nova"))
    other = rows_of(mirrored)[0].gap
    assert other is not None
    assert other.difference == pytest.approx(figure - 0.4)
    assert other.flagged is flagged


def test_a_team_without_a_row_in_the_other_round_has_no_gap() -> None:
    board = board_of(
        log(FINAL_SEALED, TEAMS, certified(1, "nova", 0.5)), counterpart=final_rows("lyra")
    )
    assert rows_of(board)[0].gap is None


def test_the_open_data_view_ranks_without_the_rows_trained_on_private_data() -> None:
    statements = log(
        QUALIFIER_SEALED,
        TEAMS,
        submitted(1, "nova", 0.9, "accept", private=True),
        submitted(2, "lyra", 0.7, "accept"),
    )
    finals = final_rows("nova", "lyra")
    everything = board_of(statements, edition=QUALIFIER, counterpart=finals)
    document = board_document(everything, exam_version="1.0")
    assert [(row["team"], row["private_data"]) for row in document["rows"]] == [
        ("nova", True),
        ("lyra", False),
    ]
    opened = board_of(statements, edition=QUALIFIER, counterpart=finals, view="open-data")
    assert places(opened) == [(1, "lyra", 0.7)]


def test_a_teams_registered_track_stands_for_its_certified_runs() -> None:
    teams = [team("nova", private=True), team("lyra")]
    board = board_of(
        log(FINAL_SEALED, teams, certified(1, "nova", 0.9), certified(2, "lyra", 0.7)),
        view="open-data",
    )
    assert places(board) == [(1, "lyra", 0.7)]


def test_every_row_names_the_versions_it_was_scored_on() -> None:
    document = board_document(
        board_of(log(FINAL_SEALED, TEAMS, certified(1, "nova", 0.9))), exam_version="1.0"
    )
    versions = document["rows"][0]["versions"]
    assert versions == {
        "exam_version": "1.0",
        "clip_set_sha256": sha256_hex(FINAL.encode()),
        "scorer": "epee200 2.1",
        "scorer_string": SCORER,
        "labels": "labels-v1",
        "labels_sha256": LABELS.sha256,
        "image": f"sha256:{sha256_hex(b'config')}",
        "docker": "28.5.2",
        "predictions_sha256": sha256_hex(run_name(1).encode()),
    }
    assert document["rows"][0]["certified_run"] == 1


def test_the_other_round_is_the_only_one_that_fits_or_is_named() -> None:
    final, qualifier = FINAL_SEALED[0], QUALIFIER_SEALED[0]
    second = edition_sealed("exam-qualifier-b", stage="qualifier")
    old = qualifier.model_copy(
        update={"edition": "old", "opens": NOW.replace(year=2020), "closes": NOW.replace(year=2021)}
    )
    assert find_counterpart(final, [final, qualifier, old]) == qualifier
    assert find_counterpart(final, [final, qualifier, second]) == (
        "several editions could be the other round: exam-qualifier, exam-qualifier-b; name one"
    )
    assert find_counterpart(final, [final, qualifier, second], named=second.edition) == second
    assert isinstance(find_counterpart(final, [final]), str)
    for named, words in ((FINAL, "it is a final"), ("nothing", "not in this workspace")):
        with pytest.raises(RefusedByPolicy, match=words):
            find_counterpart(final, [final, qualifier], named=named)


FIGURES = st.lists(
    st.tuples(st.sampled_from(["nova", "lyra", "vega", "clerc"]), st.integers(0, 8)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(FIGURES, st.randoms(use_true_random=False), st.sets(st.sampled_from(["nova", "lyra"])))
def test_the_order_in_which_submissions_came_never_changes_a_rank_or_a_hold(
    figures: list[tuple[str, int]], rng: random.Random, confirmed: set[str]
) -> None:
    histories = [
        submitted(place, name, figure / 8, "accept") for place, (name, figure) in enumerate(figures)
    ]
    shuffled = list(histories)
    rng.shuffle(shuffled)
    counterpart = final_rows(*sorted(confirmed))
    boards = [
        board_of(log(QUALIFIER_SEALED, TEAMS, *order), edition=QUALIFIER, counterpart=counterpart)
        for order in (histories, shuffled)
    ]
    best = [
        {(one.rank, one.row.team, one.row.main) for one in rows_of(board) if one.rank}
        for board in boards
    ]
    held = [sorted(one.team for one in board.held) for board in boards]
    assert best[0] == best[1]
    assert held[0] == held[1]


@settings(max_examples=60, deadline=None)
@given(FIGURES, st.sets(st.sampled_from(["nova", "lyra", "clerc"])))
def test_no_unconfirmed_qualifier_row_ever_stands_first(
    figures: list[tuple[str, int]], confirmed: set[str]
) -> None:
    histories = [
        submitted(place, name, figure / 8, "accept") for place, (name, figure) in enumerate(figures)
    ]
    statements = log(QUALIFIER_SEALED, TEAMS, *histories)
    board = board_of(statements, edition=QUALIFIER, counterpart=final_rows(*sorted(confirmed)))
    for one in rows_of(board):
        if one.rank == 1:
            assert one.row.team in confirmed
        assert one.row.status in {RowStatus.SELF_REPORTED, RowStatus.ORGANIZER}
        assert (one.row.status is RowStatus.ORGANIZER) == (one.row.team == "clerc")
    top = max(figure for _, figure in figures) / 8
    assert all(one.team not in confirmed for one in board.held)
    leaders = {name for name, figure in figures if figure / 8 == top}
    assert leaders - confirmed <= {one.team for one in board.held}
    assert len(rows_of(board)) + len(board.held) == len(figures)


@settings(max_examples=60, deadline=None)
@given(FIGURES)
def test_on_a_final_ranks_follow_figures_and_ties_follow_distances(
    figures: list[tuple[str, int]],
) -> None:
    attempts: dict[str, int] = {}
    histories = []
    for place, (name, figure) in enumerate(figures):
        attempts[name] = attempts.get(name, 0) + 1
        histories.append(certified(place, name, figure / 50, attempt=attempts[name]))
    board = board_of(log(FINAL_SEALED, TEAMS, *histories))
    ranked = [one for one in rows_of(board) if one.rank is not None]
    assert board.held == ()
    assert len({one.row.team for one in ranked}) == len(ranked) == len(attempts)
    for one in ranked:
        assert one.rank == 1 + sum(other.row.main > one.row.main for other in ranked)
    for above, one in pairwise(ranked):
        assert one.tie is not None
        assert one.tie.tied is (above.row.main - one.row.main <= FLOOR)
