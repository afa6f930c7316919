"""Verify one run's folder: with the log where there is one, else against itself."""

from __future__ import annotations

from collections.abc import Sequence

from manifests.statements import KeyRole, PublicKey, RunScored, Statement, SubmissionRecorded
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_cards import (
    SCORES,
    card_folders,
    check_cards,
    check_private_card,
)
from orchestrator.evidence.rules.check_identities import (
    check_effective,
    check_identities,
    check_kept_files,
    check_record_identities,
    compare_kept,
)
from orchestrator.evidence.rules.check_labels import Exam, check_rescoring
from orchestrator.evidence.rules.check_listing import check_listing
from orchestrator.evidence.rules.check_log import LogFacts, history_in
from orchestrator.evidence.rules.check_signatures import (
    check_envelope,
    check_sums_signature,
    keys_since,
)
from orchestrator.evidence.rules.check_statements import check_record, read_record
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.runs.rules.run_files import PREDICTIONS, PUBLIC_CARD, RECORD
from orchestrator.runs.rules.run_record import RunHistory

NO_LOG = "no log is here; verify the workspace or an exported bundle to compare with it"


def verify_run_alone(findings: Findings, run: Folder) -> PublicKey | None:
    """Carry out what needs no log; return the key that signed the folder."""
    own = run.without(SCORES)
    listed = check_listing(findings, own)
    key = check_sums_signature(findings, own, role="run", published=None)
    if listed is not None and RECORD in listed:
        record = read_record(findings, own)
        if record is not None and key is not None:
            check_envelope(findings, own, record=record, key=key, listed=listed)
            compare_kept(findings, own, dict(record.files))
    for check in (Check.RECORD, Check.CARD, Check.RESCORE):
        findings.note(check, NO_LOG)
    for folder in card_folders(run):
        if folder.place != own.place:
            check_listing(findings, folder)
            check_sums_signature(findings, folder, role="scorer", published=None)
        if PUBLIC_CARD in folder.digests:
            check_private_card(findings, folder, row=None)
    return key


def verify_run(
    findings: Findings, run: Folder, *, run_id: str, log: LogFacts, exam: Exam | None
) -> None:
    """Carry out checks 18 to 26 for one run that the log knows."""
    statements = log.statements_of(run_id)
    history = history_in(statements)
    own = run.without(SCORES)
    listed = check_listing(findings, own)
    key = check_sums_signature(findings, own, role="run", published=_keys(log, "run", statements))
    if history is not None:
        _verify_certified(findings, own, history, log=log, key=key, listed=listed)
    else:
        _verify_submission(findings, own, statements)
    for name in run.folders_below(SCORES):
        later = run.below(f"{SCORES}/{name}")
        check_listing(findings, later)
        published = _keys(log, "scorer", statements)
        check_sums_signature(findings, later, role="scorer", published=published)
    sealed = log.editions.get(log.runs[run_id].edition)
    rows = [statement for statement in statements if isinstance(statement, RunScored)]
    cards = check_cards(
        findings,
        run,
        rows=rows,
        edition=None if sealed is None else sealed.statement,
        history=history,
    )
    if exam is not None:
        for card in cards:
            check_rescoring(findings, own, card, exam)


def _keys(log: LogFacts, role: KeyRole, statements: Sequence[Statement]) -> tuple[PublicKey, ...]:
    """Return the keys that may have signed the run's folder: in force since it began."""
    if log.keyset is None or not statements:
        return ()
    return keys_since(log.keyset, role, statements[0].sequence)


def _verify_certified(
    findings: Findings,
    own: Folder,
    history: RunHistory,
    *,
    log: LogFacts,
    key: PublicKey | None,
    listed: dict[str, str] | None,
) -> None:
    record = read_record(findings, own)
    if record is not None:
        check_record(findings, record, history=history, log=log, place=own.place)
        check_record_identities(findings, record, history)
        if key is not None and listed is not None:
            check_envelope(findings, own, record=record, key=key, listed=listed)
    sealed = log.editions.get(history.reserved.edition)
    check_identities(findings, history, edition=None if sealed is None else sealed.statement)
    check_kept_files(findings, own, history.finished)
    check_effective(findings, own, history.started)


def _verify_submission(findings: Findings, own: Folder, statements: Sequence[Statement]) -> None:
    for statement in statements:
        if isinstance(statement, SubmissionRecorded):
            compare_kept(findings, own, {PREDICTIONS: statement.predictions_sha256})
