"""Checks 22 and 23: image, profile, clip set and kept files agree wherever they are named."""

from __future__ import annotations

from manifests.digests import sha256_hex
from manifests.encoding import canonical_json, parse_json_object
from manifests.errors import ClaimDoesNotHold
from manifests.images import ImageIdentity
from manifests.runs import RunRecord
from manifests.statements import EditionSealed, RunFinished, RunStarted
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.runs.rules.run_files import (
    EFFECTIVE,
    PREDICTIONS,
    PRIVATE_CARD,
    PRIVATE_SUMS,
    PUBLIC_CARD,
    PUBLIC_KEY,
    RECORD,
    UNLISTED,
    is_private,
)
from orchestrator.runs.rules.run_record import RunHistory

STANDARD_FILES = frozenset({RECORD, EFFECTIVE, PUBLIC_CARD, PRIVATE_CARD, PUBLIC_KEY, PRIVATE_SUMS})
"""Files of a run folder that are checked otherwise than by the digests of `run-finished`."""


def check_identities(
    findings: Findings, history: RunHistory, *, edition: EditionSealed | None
) -> None:
    """Check that the run is on the profile, clips and consumer that the edition sealed."""
    reserved, removed = history.reserved, history.removed
    findings.compared(Check.IDENTITY)
    place = f"run {reserved.run_id}"
    if edition is None:
        findings.fault(Check.IDENTITY, f"{place}: its edition {reserved.edition} was never sealed")
        return
    if reserved.profile_sha256 != edition.profile_sha256:
        findings.fault(Check.IDENTITY, f"{place}: ran under another profile than was sealed")
    if reserved.clip_set_sha256 != edition.clip_set_sha256:
        findings.fault(Check.IDENTITY, f"{place}: ran on other clips than were sealed")
    if not _is_consumer(reserved.consumer, edition.consumer):
        findings.fault(Check.IDENTITY, f"{place}: its consumer is not the one that was sealed")
    if removed is not None and removed.config_digest != reserved.image.config_digest:
        findings.fault(Check.IDENTITY, f"{place}: another image was removed than ran")


def _is_consumer(used: ImageIdentity | None, pinned: str | None) -> bool:
    if pinned is None or used is None:
        return used is None and pinned is None
    digest = pinned.rpartition("@")[2]
    return digest in {used.index_digest, used.manifest_digest, used.config_digest}


def check_record_identities(findings: Findings, record: RunRecord, history: RunHistory) -> None:
    """Check that the record names the image, profile and clips of the reservation."""
    reserved, place = history.reserved, f"run {record.run_id}"
    pairs = (
        ("image", record.image, reserved.image),
        ("consumer", record.consumer, reserved.consumer),
        ("profile", record.profile_sha256, reserved.profile_sha256),
        ("clip set", record.clip_set_sha256, reserved.clip_set_sha256),
    )
    for name, found, expected in pairs:
        if found != expected:
            findings.fault(Check.IDENTITY, f"{place}: record and log name another {name}")


def check_kept_files(findings: Findings, folder: Folder, finished: RunFinished | None) -> None:
    """Compare the kept files with the digests of `run-finished`; private ones may be absent.

    The folder of a run that finished holds these, and what `STANDARD_FILES` names; nothing else. A
    run whose host died may have left more behind: it was voided, and nothing of it is exported.
    """
    if finished is None:
        return
    known = finished.files.keys() | STANDARD_FILES | UNLISTED | {PREDICTIONS}
    for name in sorted(folder.digests.keys() - known):
        findings.fault(Check.KEPT, f"{folder.place}/{name}: the log knows of no such file")
    expected = dict(finished.files)
    if finished.predictions_sha256 is not None:
        expected[PREDICTIONS] = finished.predictions_sha256
        if finished.files.get(PREDICTIONS, finished.predictions_sha256) != expected[PREDICTIONS]:
            findings.fault(Check.KEPT, f"{folder.place}: the log names two {PREDICTIONS}")
    compare_kept(findings, folder, expected)


def compare_kept(findings: Findings, folder: Folder, expected: dict[str, str]) -> None:
    """Compare files of a run's folder with digests that the log holds."""
    for name, digest in sorted(expected.items()):
        found = folder.digests.get(name)
        if found is None and is_private(name):
            continue
        fact = "is missing" if found is None else f"SHA-256 {found[:16]}…, log: {digest[:16]}…"
        findings.require(Check.KEPT, found == digest, f"{folder.place}/{name}: {fact}")


def check_effective(findings: Findings, folder: Folder, started: RunStarted | None) -> None:
    """Compare the effective configuration, in canonical form, with the digest of `run-started`."""
    if EFFECTIVE not in folder.digests or started is None:
        return  # written just before the start is recorded: a host may die in between
    with findings.judging(Check.KEPT):
        findings.compared(Check.KEPT)
        source = f"{folder.place}/{EFFECTIVE}"
        document = parse_json_object(folder.read(EFFECTIVE), source=source)
        if sha256_hex(canonical_json(document)) != started.effective_sha256:
            raise ClaimDoesNotHold(f"{source}: not the configuration that the log recorded")
