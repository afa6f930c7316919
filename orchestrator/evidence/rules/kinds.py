"""Tell from the names in a folder what kind of evidence it is."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from orchestrator.evidence.rules.bundle import BUNDLE_FILE, EDITIONS_FOLDER, LOG_FOLDER
from orchestrator.evidence.rules.check_seal import SEAL_FILE, SEALED_SUMS_FILE
from orchestrator.runs.rules.run_files import ENVELOPE, RECORD, SUMS

WORKSPACE_MARKERS = frozenset({"piste.json", "ledger.sqlite"})


class EvidenceKind(StrEnum):
    """What was given to verify."""

    RUN = "run folder"
    EDITION = "edition folder"
    WORKSPACE = "workspace"
    BUNDLE = "bundle"


def kind_of(names: Collection[str]) -> EvidenceKind | None:
    """Tell what holds files and folders of these names, or None.

    One file that is missing does not hide what the rest is: that is for the checks to find.
    """
    here = set(names)
    if here & WORKSPACE_MARKERS:
        return EvidenceKind.WORKSPACE
    if here & {BUNDLE_FILE, "bagit.txt"} or {LOG_FOLDER, EDITIONS_FOLDER} <= here:
        return EvidenceKind.BUNDLE
    if here & {SEAL_FILE, SEALED_SUMS_FILE}:
        return EvidenceKind.EDITION
    if here & {RECORD, ENVELOPE, SUMS}:
        return EvidenceKind.RUN
    return None
