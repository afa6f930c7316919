"""`piste submit`: a self-reported predictions file on a qualifier round, under its rate limit."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from manifests.annotations import EntrantAnnotation
from manifests.digests import sha256_hex
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.predictions.lines import ClipExpectation
from manifests.statements import EditionSealed, Statement, SubmissionRecorded
from manifests.text import escape_untrusted
from orchestrator.board.settle_submissions import (
    complete_submission,
    settle_submissions,
    staged_file,
)
from orchestrator.editions.open_clips import open_sealed_clips
from orchestrator.editions.open_labels import find_commitment, open_labels
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.keys.sealing_port import Purpose
from orchestrator.ledger.ports import Entry
from orchestrator.ledger.rules.submission_rate import check_submission_rate, submission_times
from orchestrator.scoring.rules.assessment import assess_predictions
from orchestrator.scoring.rules.scoring import expectation
from orchestrator.support.reporter import Reporter, SilentReporter, Step
from orchestrator.workspace.workspace import Workspace
from scorers.cards import ScoreCard

TrainingData = Literal["open-data", "private-data"]

MAX_NOTE_CHARACTERS = 1000
NOT_SPENT = "nothing was recorded: this submission took no slot of the rate limit"
_NOT_PRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a team hands in; `source` names the file in messages."""

    edition: str
    team: str
    data: bytes
    source: str
    training_data: TrainingData | None = None
    """None: what the team was registered with."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A recorded submission; `unscored` says why there is no card yet."""

    recorded: SubmissionRecorded
    card: ScoreCard | None
    unscored: str | None


def submit_predictions(
    workspace: Workspace, submission: Submission, *, reporter: Reporter | None = None
) -> Submitted:
    """Judge, record, keep and score a predictions file; all or nothing.

    Raises:
        MalformedDocument: the file is invalid or incomplete; every problem found, no slot spent.
        RefusedByPolicy: no qualifier, not open, no such team, or too soon (with the next slot).
        IdentityMissing: this host opens neither labels nor clips, so it cannot judge the file.

    """
    reporter = reporter or SilentReporter()
    settle_submissions(workspace)
    _check_note(submission.note)
    sealed = load_sealed_edition(submission.edition, store=workspace.store, ledger=workspace.ledger)
    refuse_closed(sealed.statement, workspace.clock.now())
    training_data = submission.training_data or _registered_track(submission.team, workspace)
    reporter.step(Step.VALIDATE)
    canonical = _judge(submission, sealed, _clips(sealed, workspace, reporter))
    run_id = secrets.token_hex(8)
    with workspace.store.lock_run(run_id):
        workspace.store.create(staged_file(run_id), canonical)
        try:
            recorded = _record(
                run_id,
                submission,
                training_data=training_data,
                predictions_sha256=sha256_hex(canonical),
                sealed=sealed.statement,
                workspace=workspace,
            )
        except RefusedByPolicy:
            workspace.store.remove(staged_file(run_id))
            raise
        reporter.step(Step.SCORE)
        completed = complete_submission(workspace, recorded, canonical)
    return Submitted(recorded=recorded, card=completed.card, unscored=completed.unscored)


def refuse_closed(sealed: EditionSealed, now: datetime) -> None:
    """Refuse a round that takes no submissions, or not now.

    Raises:
        RefusedByPolicy: with the round or the dates.

    """
    name = sealed.edition
    if sealed.round != "qualifier":
        raise RefusedByPolicy(
            f"edition {name} is a {sealed.round}: predictions are submitted to a qualifier alone; "
            f"run an image instead: piste certify --edition {name}"
        )
    if now < sealed.opens:
        raise RefusedByPolicy(f"edition {name} opens at {sealed.opens:%Y-%m-%dT%H:%M:%SZ}")
    if now >= sealed.closes:
        raise RefusedByPolicy(f"edition {name} closed at {sealed.closes:%Y-%m-%dT%H:%M:%SZ}")


def _check_note(note: str) -> None:
    if len(note) > MAX_NOTE_CHARACTERS or _NOT_PRINTABLE.search(note):
        raise MalformedDocument(
            f"--note: expected one line of at most {MAX_NOTE_CHARACTERS} characters without "
            "control characters"
        )


def _registered_track(team: str, workspace: Workspace) -> TrainingData:
    for entry in workspace.ledger.entries(team=team, kind="team-registered"):
        if entry.statement.kind == "team-registered":
            return entry.statement.data_track
    shown = escape_untrusted(team, 40)
    raise RefusedByPolicy(f"team {shown} is not registered; register it with: piste team add NAME")


def _clips(
    sealed: SealedEdition, workspace: Workspace, reporter: Reporter
) -> Mapping[str, ClipExpectation]:
    """Return what the exam says of each clip: from its labels, or else from its sealed clips."""
    store = workspace.store
    if workspace.keyring.holds(Purpose.LABELS):
        version = sealed.statement.labels.version
        commitment = find_commitment(sealed.edition.edition, version, workspace.ledger)
        unsealer = workspace.keyring.unsealer(Purpose.LABELS)
        labels = open_labels(sealed, commitment, store=store, unsealer=unsealer)
        return {label.clip_id: expectation(label) for label in labels.entries}
    found: dict[str, ClipExpectation] = {}

    def see(annotation: EntrantAnnotation) -> None:
        found[annotation.clip_id] = ClipExpectation(
            n_segments=len(annotation.segments), n_frames=annotation.n_frames
        )

    unsealer = workspace.keyring.unsealer(Purpose.CLIPS)
    exam = open_sealed_clips(sealed, store=store, unsealer=unsealer, reporter=reporter)
    for _ in exam.files(see):
        pass  # only the annotations are wanted
    return found


def _judge(
    submission: Submission, sealed: SealedEdition, clips: Mapping[str, ClipExpectation]
) -> bytes:
    """Return the canonical predictions of a complete file, or refuse it with all its problems."""
    assessment = assess_predictions(
        sealed.edition.track, submission.data, clips=clips, source=submission.source
    )
    if assessment.complete and assessment.canonical is not None:
        return assessment.canonical
    problems = [problem.message for problem in assessment.problems]
    raise MalformedDocument("\n".join([*problems, NOT_SPENT]))


def _record(
    run_id: str,
    submission: Submission,
    *,
    training_data: TrainingData,
    predictions_sha256: str,
    sealed: EditionSealed,
    workspace: Workspace,
) -> SubmissionRecorded:
    edition, team = submission.edition, submission.team

    def decide(history: Sequence[Entry]) -> Statement:
        now = workspace.clock.now()
        refuse_closed(sealed, now)
        times = submission_times((e.statement for e in history), edition=edition, team=team)
        rule = sealed.submissions
        check_submission_rate(times, rule=rule, now=now, edition=edition, team=team)
        return SubmissionRecorded(
            at=now,
            run_id=run_id,
            edition=edition,
            team=team,
            predictions_sha256=predictions_sha256,
            training_data=training_data,
            training_note=submission.note,
        )

    recorded = workspace.ledger.decide(decide, edition=edition, team=team).statement
    assert isinstance(recorded, SubmissionRecorded)
    return recorded
