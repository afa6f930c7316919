"""The life of a run: every statement in every state, allowed or refused."""

from __future__ import annotations

import itertools

import pytest

from manifests.errors import RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.statements import SubmissionRecorded, SubmissionReviewed
from orchestrator.ledger.rules.entries import Entry
from orchestrator.ledger.rules.run_states import (
    RunState,
    RunStatement,
    check_transition,
    fold_runs,
)
from tests.support.synthetic_ledger import (
    NOW,
    edition_sealed,
    image_removed,
    run_finished,
    run_reserved,
    run_scored,
    run_started,
    run_voided,
    team_registered,
    whole_run,
)

RUN = "00000000000000aa"
SUBMITTED = SubmissionRecorded(
    at=NOW,
    run_id=RUN,
    edition=run_reserved(RUN).edition,
    team=run_reserved(RUN).team,
    predictions_sha256=run_scored(RUN).predictions_sha256,
    training_data="open-data",
)
REVIEWED = SubmissionReviewed(
    at=NOW,
    run_id=RUN,
    edition=SUBMITTED.edition,
    team=SUBMITTED.team,
    decision="accept",
    reason="plausible",
)
STEPS: dict[str, RunStatement] = {
    "reserved": run_reserved(RUN),
    "started": run_started(RUN),
    "finished": run_finished(RUN),
    "failed": run_finished(RUN, Outcome.OUT_OF_MEMORY),
    "voided": run_voided(RUN),
    "removed": image_removed(RUN),
    "scored": run_scored(RUN),
    "submitted": SUBMITTED,
    "reviewed": REVIEWED,
}
# What may follow on each history; everything else is refused.
ALLOWED = {
    "": "reserved submitted",
    "reserved": "started voided removed",
    "reserved started": "finished failed voided removed",
    "reserved started finished": "voided removed scored",
    "reserved started failed": "voided removed",
    "reserved started finished scored": "voided removed",
    "reserved started finished removed": "voided scored",
    "reserved voided": "removed",
    "reserved started voided": "removed",
    "reserved started voided removed": "",
    "submitted": "scored reviewed",
    "submitted scored": "reviewed",
    "submitted reviewed": "scored reviewed",
}


def history_of(names: str) -> list[RunStatement]:
    return [STEPS[name] for name in names.split()]


def entries(statements: list[RunStatement]) -> list[Entry]:
    return [
        Entry(sequence=sequence, statement=statement, envelope=b"")
        for sequence, statement in enumerate(statements)
    ]


@pytest.mark.parametrize(("history", "step"), list(itertools.product(ALLOWED, STEPS)))
def test_a_statement_follows_where_it_may_and_nowhere_else(history: str, step: str) -> None:
    before, statement = entries(history_of(history)), STEPS[step]
    if step in ALLOWED[history].split():
        check_transition(before, statement)
    else:
        with pytest.raises(RefusedByPolicy, match=RUN):
            check_transition(before, statement)


@pytest.mark.parametrize(
    ("history", "state", "counts", "pending", "is_open"),
    [
        ("reserved", RunState.RESERVED, False, True, True),
        ("reserved started", RunState.STARTED, True, False, True),
        ("reserved started finished", RunState.FINISHED, True, False, False),
        ("reserved started failed", RunState.FINISHED, True, False, False),
        ("reserved voided", RunState.VOIDED, False, False, False),
        ("reserved started finished voided", RunState.VOIDED, False, False, False),
        ("submitted", RunState.SUBMITTED, False, False, False),
    ],
)
def test_the_state_says_whether_a_run_counts_and_whether_it_is_open(
    history: str, state: RunState, counts: bool, pending: bool, is_open: bool
) -> None:
    run = fold_runs(history_of(history))[RUN]
    assert (run.state, run.counts, run.pending, run.open) == (state, counts, pending, is_open)


def test_a_whole_run_folds_to_its_facts() -> None:
    run = fold_runs([edition_sealed(), team_registered(), *whole_run(RUN)])[RUN]
    assert run.outcome is Outcome.COMPLETED
    assert run.attempt == 1
    assert run.image_gone
    assert {version for version, _ in run.scored} == {"labels-v1"}


def test_a_statement_of_another_team_or_edition_is_refused() -> None:
    for foreign in (run_started(RUN, team="lyra"), run_started(RUN, edition="other-2026")):
        with pytest.raises(RefusedByPolicy, match="is of team nova in epee200-final-2026"):
            check_transition(entries([run_reserved(RUN)]), foreign)


def test_an_image_that_was_not_gone_can_be_removed_again() -> None:
    still_there = image_removed(RUN).model_copy(update={"gone": False})
    check_transition(entries([run_reserved(RUN), still_there]), image_removed(RUN))


def test_new_labels_make_a_new_row_and_other_predictions_make_none() -> None:
    before = entries([*history_of("reserved started finished scored")])
    labels = run_scored(RUN).labels.model_copy(update={"version": "labels-v2"})
    check_transition(before, run_scored(RUN).model_copy(update={"labels": labels}))
    other = run_scored(RUN).model_copy(update={"labels": labels, "predictions_sha256": "0" * 64})
    with pytest.raises(RefusedByPolicy, match="other predictions"):
        check_transition(before, other)
