"""On a translation board the lead changes only by a significant advantage."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.board.rules.board_rows import BoardRow, RowStatus
from orchestrator.board.rules.leadership import fold_lead
from orchestrator.board.rules.row_flags import NotCompared
from scorers.translation import LeadershipDecision
from tests.support.synthetic_ledger import LABELS


def row(sequence: int, name: str, figure: float) -> BoardRow:
    return BoardRow(
        run_id=f"{sequence:016x}",
        team=name,
        status=RowStatus.CERTIFIED,
        data_track="open-data",
        training_note="",
        certified_run=1,
        labels=LABELS,
        scorer_string="signet",
        image=None,
        docker=None,
        predictions_sha256="0" * 64,
        figures={"s_total": figure},
        main=figure,
        floor=None,
        sequence=sequence,
    )


def by_margin(champion: BoardRow, challenger: BoardRow) -> LeadershipDecision:
    """Stand for the bootstrap: an advantage of more than .05 is significant."""
    wins = challenger.main - champion.main > 0.05
    return LeadershipDecision(wins, "significant" if wins else "not significant", None)


def test_a_better_row_within_the_noise_does_not_lead() -> None:
    lead = fold_lead([row(1, "nova", 0.50), row(2, "lyra", 0.54)], by_margin)
    assert lead.run_id == row(1, "nova", 0).run_id


def test_a_significant_advantage_takes_the_lead_from_whoever_has_it_then() -> None:
    rows = [row(1, "nova", 0.50), row(2, "lyra", 0.54), row(3, "vega", 0.56)]
    assert fold_lead(rows, by_margin).run_id == rows[2].run_id


def test_a_team_that_leads_defends_with_its_best_row() -> None:
    rows = [row(1, "nova", 0.50), row(2, "nova", 0.53), row(3, "lyra", 0.56)]
    assert fold_lead(rows, by_margin).run_id == rows[1].run_id


def test_without_a_comparison_nobody_is_said_to_lead() -> None:
    lead = fold_lead(
        [row(1, "nova", 0.5), row(2, "lyra", 0.6)], lambda _a, _b: NotCompared("no labels")
    )
    assert (lead.run_id, lead.reason) == (None, "no labels")


def test_no_row_no_lead() -> None:
    assert fold_lead([], by_margin).run_id is None


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["nova", "lyra", "vega"]), st.integers(0, 20)),
        min_size=1,
        max_size=10,
    ),
    st.randoms(use_true_random=False),
)
def test_the_lead_depends_on_the_logs_order_alone_and_a_worse_row_never_takes_it(
    figures: list[tuple[str, int]], rng: object
) -> None:
    rows = [row(place, name, figure / 20) for place, (name, figure) in enumerate(figures)]
    shuffled = list(rows)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    lead = fold_lead(rows, by_margin)
    assert fold_lead(shuffled, by_margin) == lead
    leader = next(one for one in rows if one.run_id == lead.run_id)
    assert leader.main >= rows[0].main
    worse = row(len(rows), "clerc", leader.main - 0.001)
    assert fold_lead([*rows, worse], by_margin) == lead
    better = row(len(rows), "clerc", leader.main + 0.06)
    assert fold_lead([*rows, better], by_margin).run_id == better.run_id
