"""Open what an auditor names: a run folder, an edition, a workspace, a bundle or its tar."""

from __future__ import annotations

from pathlib import Path

from manifests.errors import MalformedDocument, PisteError
from orchestrator.evidence.files.evidence_folder import EvidenceFolder
from orchestrator.evidence.files.evidence_tar import EvidenceTar, is_tar
from orchestrator.evidence.ports import EvidenceTree
from orchestrator.evidence.rules.bundle import EDITIONS_FOLDER, RUNS_FOLDER
from orchestrator.evidence.rules.kinds import EvidenceKind, kind_of
from orchestrator.ledger.sql.sql_store import open_sql_ledger
from orchestrator.ledger.stored_ledger import StoredLedger

LEDGER_FILE = "ledger.sqlite"

Opened = tuple[EvidenceTree, EvidenceKind, StoredLedger | None]


def open_evidence(path: Path) -> Opened:
    """Return the files at `path`, what they are, and a workspace's ledger.

    Raises:
        MalformedDocument: it is none of these, or cannot be read.

    """
    if path.is_dir():
        return _open_folder(path)
    if path.is_file() and is_tar(path):
        return EvidenceTar(path), EvidenceKind.BUNDLE, None
    raise MalformedDocument(
        f"{path}: neither a run folder, an edition, a workspace nor an exported tar"
    )


def _open_folder(path: Path) -> Opened:
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError as error:
        raise MalformedDocument(f"{path}: cannot be listed: {error.strerror}") from error
    kind = kind_of(names)
    if kind is None:
        raise MalformedDocument(
            f"{path}: neither a run folder, an edition, a workspace nor an unpacked bundle"
        )
    if kind is not EvidenceKind.WORKSPACE:
        return EvidenceFolder(path), kind, None
    tree = EvidenceFolder(path, only=(EDITIONS_FOLDER, RUNS_FOLDER))
    return tree, kind, _ledger(path / LEDGER_FILE)


def _ledger(path: Path) -> StoredLedger | None:
    """Return the ledger, or None where there is none to read: that is a finding, not an error."""
    try:
        return open_sql_ledger(path)
    except PisteError:
        return None
