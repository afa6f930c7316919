"""Self-reported predictions: all or nothing, under a rolling rate limit."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from manifests.digests import sha256_hex
from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.statements import RunScored, SubmissionRecorded
from orchestrator.board.rescore import rescore
from orchestrator.board.review_submission import Decision, review_submission
from orchestrator.board.settle_submissions import settle_submissions
from orchestrator.board.submit_predictions import (
    Submission,
    Submitted,
    submit_predictions,
)
from orchestrator.runs.signed_folder import is_signed
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.workspace import Workspace
from tests.support.small_exams import (
    NOW,
    SetClock,
    new_workspace,
    predictions,
    recognition_answers,
    register,
    seal_edition,
)

QUALIFIER = "synthetic-qualifier"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def workspace(tmp_path: Path, clock: SetClock) -> Workspace:
    opened = new_workspace(tmp_path / "workspace", clock)
    seal_edition(opened, tmp_path / "edition", QUALIFIER, stage="qualifier")
    register(opened, "nova", data_track="private-data")
    return opened


def hand_in(
    workspace: Workspace,
    data: bytes | None = None,
    *,
    edition: str = QUALIFIER,
    team: str = "nova",
    note: str = "",
) -> Submitted:
    if data is None:
        data = predictions(workspace, QUALIFIER, recognition_answers(wrong=1))
    return submit_predictions(
        workspace,
        Submission(edition=edition, team=team, data=data, source="mine.jsonl", note=note),
    )


def kinds(workspace: Workspace) -> list[str]:
    return [entry.statement.kind for entry in workspace.ledger.entries(edition=QUALIFIER)]


def test_a_submission_is_recorded_kept_scored_and_signed(workspace: Workspace) -> None:
    done = hand_in(workspace, note="trained on our own clips")
    assert kinds(workspace) == ["edition-sealed", "submission-recorded", "run-scored"]
    assert done.card is not None
    assert done.card.public["top1"] == pytest.approx(11 / 12)
    assert done.recorded.training_data == "private-data"
    assert done.recorded.training_note == "trained on our own clips"
    folder = f"runs/{done.recorded.run_id}"
    names = ("predictions.jsonl", "score.json", "score.private.json")
    digests = {name: sha256_hex(workspace.store.read(f"{folder}/{name}")) for name in names}
    assert digests["predictions.jsonl"] == done.recorded.predictions_sha256
    assert is_signed(workspace, folder, digests, role="run")
    assert workspace.store.list_names("intake") == ()


def test_every_problem_of_a_bad_file_is_named_and_no_slot_is_spent(workspace: Workspace) -> None:
    good = predictions(workspace, QUALIFIER, recognition_answers(0)).splitlines()
    first = json.loads(good[0])
    bad = [
        b"{not json",
        json.dumps({**first, "signs": ["A B"]}).encode(),
        *good[2:],
    ]
    for _ in range(5):  # more often than the rate limit would let pass
        with pytest.raises(MalformedDocument) as caught:
            hand_in(workspace, b"\n".join(bad) + b"\n")
    message = str(caught.value)
    assert "mine.jsonl:1" in message
    assert f"mine.jsonl:2, clip {first['clip_id']}" in message
    assert "took no slot" in message
    assert kinds(workspace) == ["edition-sealed"]
    assert workspace.store.list_names("runs") == ()
    assert hand_in(workspace).card is not None


def test_an_incomplete_file_is_refused(workspace: Workspace) -> None:
    good = predictions(workspace, QUALIFIER, recognition_answers(0)).splitlines(keepends=True)
    with pytest.raises(MalformedDocument, match=r"1 of 6 clips have no line"):
        hand_in(workspace, b"".join(good[:-1]))
    assert kinds(workspace) == ["edition-sealed"]


def test_the_third_submission_within_an_hour_waits_and_is_told_until_when(
    workspace: Workspace, clock: SetClock
) -> None:
    hand_in(workspace)
    clock.moment = NOW + timedelta(minutes=10)
    hand_in(workspace)
    clock.moment = NOW + timedelta(minutes=59)
    with pytest.raises(RefusedByPolicy, match="the next slot is free at 2026-12-15T13:00:00Z"):
        hand_in(workspace)
    assert kinds(workspace).count("submission-recorded") == 2
    assert len(workspace.store.list_names("runs")) == 2
    assert workspace.store.list_names("intake") == ()
    clock.moment = NOW + timedelta(minutes=60)
    hand_in(workspace)
    clock.moment = NOW + timedelta(hours=5)
    with pytest.raises(RefusedByPolicy, match="the next slot is free at 2026-12-16T12:00:00Z"):
        hand_in(workspace)


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC), "opens at 2026-12-01T00:00:00Z"),
        (datetime(2027, 3, 1, tzinfo=UTC), "closed at 2027-03-01T00:00:00Z"),
    ],
)
def test_a_round_takes_submissions_only_while_it_is_open(
    workspace: Workspace, clock: SetClock, moment: datetime, words: str
) -> None:
    clock.moment = moment
    with pytest.raises(RefusedByPolicy, match=words):
        hand_in(workspace)


def test_a_final_takes_no_submission(workspace: Workspace, tmp_path: Path) -> None:
    seal_edition(workspace, tmp_path / "final", "synthetic-final")
    with pytest.raises(RefusedByPolicy, match="to a qualifier alone"):
        hand_in(workspace, edition="synthetic-final")


def test_an_unknown_team_and_a_note_of_two_lines_are_refused(workspace: Workspace) -> None:
    with pytest.raises(RefusedByPolicy, match="not registered"):
        hand_in(workspace, team="nobody")
    with pytest.raises(MalformedDocument, match="--note"):
        hand_in(workspace, note="one\nline too many")
    assert kinds(workspace) == ["edition-sealed"]


def test_a_host_without_label_identity_judges_by_the_sealed_clips_and_is_scored_later(
    workspace: Workspace,
) -> None:
    data = predictions(workspace, QUALIFIER, recognition_answers(1))
    identity = workspace.store.root / "keys/labels.agekey"
    kept = identity.read_bytes()
    identity.unlink()
    run_host = replace(wiring.open_workspace(workspace.store.root), clock=workspace.clock)
    too_many = data.replace(b'"LONDON"', b'"LONDON","EXTRA"', 1)
    with pytest.raises(MalformedDocument, match="took no slot"):
        hand_in(run_host, too_many)
    done = hand_in(run_host, data)
    assert done.card is None
    assert done.unscored is not None
    assert "piste rescore" in done.unscored
    folder = f"runs/{done.recorded.run_id}"
    predictions_only = {"predictions.jsonl": done.recorded.predictions_sha256}
    assert is_signed(run_host, folder, predictions_only, role="run")
    identity.write_bytes(kept)
    identity.chmod(0o600)
    label_host = wiring.open_workspace(workspace.store.root)
    assert [one.known for one in rescore(label_host, QUALIFIER)] == [False]
    assert workspace.store.exists(f"{folder}/scores/labels-v1/SHA256SUMS.sig")
    assert is_signed(label_host, folder, predictions_only, role="run")


class _Dying:
    """Passes calls on until the named one, which raises before or after it is done."""

    def __init__(self, inner: object, method: str, *, after: bool, matching: str = "") -> None:
        self._inner, self._method, self._after = inner, method, after
        self._matching = matching

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if name != self._method:
            return found

        def die(*args: object, **kwargs: object) -> object:
            if self._matching and self._matching not in str(args[0]):
                return found(*args, **kwargs)
            if self._after:
                found(*args, **kwargs)
            raise PlatformFault("the power went out")

        return die


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("part", "method", "matching"),
    [
        ("store", "create", "intake/"),
        ("ledger", "decide", ""),
        ("store", "create", "predictions.jsonl"),
        ("store", "replace", "score.json"),
        ("store", "replace", "SHA256SUMS"),
        ("store", "remove", "intake/"),
    ],
)
def test_a_kill_leaves_either_nothing_or_a_submission_that_the_next_command_completes(
    workspace: Workspace, part: str, method: str, matching: str, *, after: bool
) -> None:
    inner = getattr(workspace, part)
    dying = _Dying(inner, method, after=after, matching=matching)
    broken = replace(workspace, **{part: dying})  # type: ignore[arg-type]
    with pytest.raises(PlatformFault, match="power"):
        hand_in(broken)
    settle_submissions(workspace)
    assert workspace.store.list_names("intake") == ()
    recorded = [
        entry.statement
        for entry in workspace.ledger.entries(kind="submission-recorded")
        if isinstance(entry.statement, SubmissionRecorded)
    ]
    assert set(workspace.store.list_names("runs")) == {one.run_id for one in recorded}
    for one in recorded:
        scored = list(workspace.ledger.entries(run_id=one.run_id, kind="run-scored"))
        assert len(scored) == 1
        statement = scored[0].statement
        assert isinstance(statement, RunScored)
        digests = {
            "predictions.jsonl": one.predictions_sha256,
            "score.json": statement.public_sha256,
            "score.private.json": statement.private_sha256,
        }
        assert is_signed(workspace, f"runs/{one.run_id}", digests, role="run")


def test_a_submission_under_way_is_left_alone_by_another_command(workspace: Workspace) -> None:
    run_id = "a" * 16
    with workspace.store.lock_run(run_id):
        workspace.store.create(f"intake/submission-{run_id}.jsonl", b"{}\n")
        settle_submissions(workspace)
        assert workspace.store.exists(f"intake/submission-{run_id}.jsonl")
    settle_submissions(workspace)
    assert not workspace.store.exists(f"intake/submission-{run_id}.jsonl")


@pytest.mark.parametrize("decision", ["accept", "decline", "ask-final"])
def test_a_review_is_a_public_statement_with_its_reason(
    workspace: Workspace, decision: Decision
) -> None:
    done = hand_in(workspace)
    reviewed = review_submission(
        workspace, done.recorded.run_id, decision, reason="recipe seen and plausible"
    )
    assert kinds(workspace)[-1] == "submission-reviewed"
    assert (reviewed.decision, reviewed.team) == (decision, "nova")


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "x" * 1001, "\x1b[31mred"])
def test_a_review_needs_one_printable_line_of_reason(workspace: Workspace, reason: str) -> None:
    done = hand_in(workspace)
    with pytest.raises(MalformedDocument, match="--reason"):
        review_submission(workspace, done.recorded.run_id, "accept", reason=reason)
    assert "submission-reviewed" not in kinds(workspace)


def test_declined_submissions_still_count_for_the_rate_and_are_not_rescored(
    workspace: Workspace,
) -> None:
    first, second = hand_in(workspace), hand_in(workspace)
    review_submission(workspace, first.recorded.run_id, "decline", reason="no recipe")
    with pytest.raises(RefusedByPolicy, match="at most 2"):
        hand_in(workspace)
    assert [one.run_id for one in rescore(workspace, QUALIFIER)] == [second.recorded.run_id]
