"""Verify an edition's folder, and make ready what its runs are scored with."""

from __future__ import annotations

from dataclasses import dataclass

from manifests.labels import Labels
from manifests.statements import LabelsCommitment
from orchestrator.editions.rules.seal_documents import SealDocument
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_labels import Exam, read_labels, read_vocabulary
from orchestrator.evidence.rules.check_log import LogFacts, SealedAt
from orchestrator.evidence.rules.check_reveal import check_reveal
from orchestrator.evidence.rules.check_seal import (
    REVEALED_FOLDER,
    VOCABULARY_FILE,
    check_ciphertexts,
    check_edition_agrees,
    check_edition_files,
    check_published_keys,
    read_seal,
)
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLabels:
    """A label file that the auditor holds."""

    source: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedEdition:
    """What an edition's folder gave."""

    seal: SealDocument
    exam: Exam | None
    used_labels: bool
    """The given labels are committed to by this edition."""


def verify_edition(
    findings: Findings,
    folder: Folder,
    *,
    log: LogFacts | None,
    name: str | None,
    labels: GivenLabels | None,
) -> VerifiedEdition | None:
    """Carry out checks 12 to 16; `name` is what the folder is called, where that tells."""
    seal = read_seal(findings, folder)
    if seal is None:
        return None
    if name is not None and seal.edition != name:
        findings.fault(Check.SEAL, f"{folder.place}: holds the seal of {seal.edition}")
    sealed = None if log is None else log.editions.get(seal.edition)
    if log is not None and sealed is None:
        findings.fault(Check.SEAL, f"{folder.place}: {seal.edition} was never sealed in the log")
    statement = None if sealed is None else sealed.statement
    check_edition_files(findings, folder, seal, statement=statement)
    edition = check_edition_agrees(findings, folder, seal, statement=statement)
    _check_keys(findings, seal, log, sealed)
    check_ciphertexts(findings, folder, expected_clips=seal.clips)
    if edition is None:
        return VerifiedEdition(seal=seal, exam=None, used_labels=False)
    commitments = _commitments(seal, log)
    check_reveal(
        findings,
        folder,
        clip_set_sha256=seal.clip_set_sha256,
        track=edition.track,
        labels=commitments,
        statement=None if log is None else log.revealed.get(seal.edition),
        with_log=log is not None,
    )
    found: dict[str, Labels] = {}
    for source, data in _label_files(folder):
        found |= read_labels(
            findings, data, source=source, edition=edition, commitments=commitments
        )
    given: dict[str, Labels] = {}
    if labels is not None:
        given = read_labels(
            findings,
            labels.data,
            source=labels.source,
            edition=edition,
            commitments=commitments,
        )
    vocabulary = read_vocabulary(findings, folder, name=VOCABULARY_FILE)
    exam = Exam(edition=edition, vocabulary=vocabulary, labels=found | given)
    return VerifiedEdition(seal=seal, exam=exam, used_labels=bool(given))


def _check_keys(
    findings: Findings, seal: SealDocument, log: LogFacts | None, sealed: SealedAt | None
) -> None:
    check_published_keys(
        findings,
        seal,
        keyset=None if log is None else log.keyset,
        sequence=-1 if sealed is None else sealed.sequence,
    )


def _commitments(seal: SealDocument, log: LogFacts | None) -> dict[str, LabelsCommitment]:
    """Return the label commitments of the log, or those that the seal holds."""
    if log is not None:
        return log.labels.get(seal.edition, {})
    return {labels.version: labels for labels in seal.labels}


def _label_files(folder: Folder) -> tuple[tuple[str, bytes], ...]:
    return tuple(
        (f"{folder.place}/{name}", data)
        for name, data in folder.contents.items()
        if name.startswith(f"{REVEALED_FOLDER}/") and name.endswith(".jsonl")
    )
