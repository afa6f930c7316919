"""Looking at runs, and voiding one by hand: the ledger decides, and the reason is public."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.statements import RunVoided
from orchestrator.board.rescore import rescore
from orchestrator.runs.list_runs import (
    LONGEST_REASON,
    list_runs,
    run_row,
    show_run,
    team_quota,
    void_by_organizer,
)
from orchestrator.support.reporter import SilentReporter
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.workspace import Workspace
from tests.support.small_exams import (
    SetClock,
    new_workspace,
    predictions,
    recognition_answers,
    register,
    retain_run,
    seal_edition,
)

FIRST, SECOND = "exam-final", "exam-other"
RUN = "00000000000000aa"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    made = new_workspace(folder / "workspace")
    for name in (FIRST, SECOND):
        seal_edition(made, folder / name, name)
    for team in ("nova", "lynx"):
        register(made, team)
    return made.store.root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    root = shutil.copytree(template, tmp_path / "workspace")
    return replace(wiring.open_workspace(root), clock=SetClock())


def retain(
    workspace: Workspace,
    edition: str = FIRST,
    team: str = "nova",
    *,
    run_id: str = RUN,
    outcome: Outcome = Outcome.COMPLETED,
) -> str:
    data = predictions(workspace, edition, recognition_answers(wrong=1))
    return retain_run(workspace, edition, team, data, run_id=run_id, outcome=outcome)


def test_runs_are_listed_in_order_and_by_edition_and_team(workspace: Workspace) -> None:
    assert list_runs(workspace) == []
    first = retain(workspace)
    second = retain(workspace, team="lynx", run_id="00000000000000ab", outcome=Outcome.TIMED_OUT)
    third = retain(workspace, SECOND, run_id="00000000000000ac")
    assert [run.run_id for run in list_runs(workspace)] == [first, second, third]
    assert [run.run_id for run in list_runs(workspace, edition=FIRST)] == [first, second]
    assert [run.run_id for run in list_runs(workspace, edition=FIRST, team="lynx")] == [second]
    assert list_runs(workspace, team="nobody") == []


def test_a_row_says_how_a_run_stands(workspace: Workspace) -> None:
    retain(workspace, outcome=Outcome.TIMED_OUT)
    (run,) = list_runs(workspace)
    assert run_row(run) == {
        "run_id": RUN,
        "edition": FIRST,
        "team": "nova",
        "attempt": 1,
        "state": "finished",
        "outcome": "timed-out",
        "counts": True,
        "labels": [],
    }
    json.dumps(run_row(run))


def test_a_run_is_shown_with_its_card_only_after_it_was_scored(workspace: Workspace) -> None:
    retain(workspace)
    before = show_run(workspace, RUN)
    assert before.card is None
    assert (before.record.outcome, before.record.certified_run) == (Outcome.COMPLETED, 1)
    assert (before.quota.used, before.quota.left) == (1, 2)
    rescore(workspace, FIRST, None, reporter=SilentReporter())
    card = show_run(workspace, RUN).card
    assert card is not None
    public = card["public"]
    assert isinstance(public, dict)
    assert public["top1"] == pytest.approx(11 / 12)


@pytest.mark.parametrize("run_id", ["0" * 16, "\x1b[31mred", "..", ""])
def test_an_unknown_run_is_refused_and_never_shown_raw(workspace: Workspace, run_id: str) -> None:
    retain(workspace)
    for look in (
        lambda: show_run(workspace, run_id),
        lambda: void_by_organizer(workspace, run_id, reason="a reason"),
    ):
        with pytest.raises(RefusedByPolicy, match="piste runs list") as refused:
            look()
        assert "\x1b" not in str(refused.value)


def test_a_void_gives_the_run_back_and_says_so_in_log_and_record(workspace: Workspace) -> None:
    retain(workspace)
    record = void_by_organizer(workspace, RUN, reason="  the power failed  ")
    assert record.voided is not None
    assert (record.voided.by, record.voided.reason) == ("organizer", "the power failed")
    (statement,) = [e.statement for e in workspace.ledger.entries(run_id=RUN, kind="run-voided")]
    assert isinstance(statement, RunVoided)
    written = json.loads(workspace.store.read(f"runs/{RUN}/run.json"))
    assert written["voided"]["reason"] == "the power failed"
    quota = team_quota(workspace, edition=FIRST, team="nova")
    assert (quota.used, quota.voided, quota.left, quota.attempts_used) == (0, 1, 3, 1)


def test_a_run_is_voided_once(workspace: Workspace) -> None:
    retain(workspace)
    void_by_organizer(workspace, RUN, reason="the power failed")
    size = workspace.ledger.size()
    with pytest.raises(RefusedByPolicy, match="void"):
        void_by_organizer(workspace, RUN, reason="again")
    assert workspace.ledger.size() == size


@pytest.mark.parametrize(
    "reason", ["", "   ", "two\nlines", "a\x1b[31mred", "x" * (LONGEST_REASON + 1), "\u202eright"]
)
def test_a_reason_is_one_printable_line(workspace: Workspace, reason: str) -> None:
    retain(workspace)
    size = workspace.ledger.size()
    with pytest.raises(MalformedDocument, match="--reason"):
        void_by_organizer(workspace, RUN, reason=reason)
    assert workspace.ledger.size() == size
    void_by_organizer(workspace, RUN, reason="x" * LONGEST_REASON)


def test_a_run_that_is_worked_on_is_not_voided_under_its_process(workspace: Workspace) -> None:
    retain(workspace)
    with workspace.store.lock_run(RUN), pytest.raises(RefusedByPolicy):
        void_by_organizer(workspace, RUN, reason="the power failed")
    assert team_quota(workspace, edition=FIRST, team="nova").used == 1


def test_what_a_team_has_left_is_counted_by_edition(workspace: Workspace) -> None:
    for number in range(2):
        retain(workspace, run_id=f"{number:016x}")
    assert team_quota(workspace, edition=FIRST, team="nova").left == 1
    assert team_quota(workspace, edition=SECOND, team="nova").left == 3
    assert team_quota(workspace, edition=FIRST, team="lynx").left == 3
