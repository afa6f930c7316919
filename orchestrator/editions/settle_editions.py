"""Decide, by the ledger, what becomes of a staged edition."""

from __future__ import annotations

from manifests.digests import sha256_hex
from manifests.statements import EditionSealed
from orchestrator.ledger.ports import Ledger
from orchestrator.workspace.ports import StagedEdition, WorkspaceStore

EDITION_FILE = "edition.yaml"
PROFILE_FILE = "profile.yaml"
VOCABULARY_FILE = "vocabulary.txt"
SEAL_FILE = "seal.json"
SEALED_SUMS_FILE = "sealed.sha256"
CLIP_SUMS_FILE = "clips.sha256.age"


def settle(staged: StagedEdition, ledger: Ledger) -> bool:
    """Publish the staged edition when the ledger says it is sealed, else throw it away.

    Returns whether it was published.
    """
    seal = staged.read_optional(SEAL_FILE)
    if seal is not None and sha256_hex(seal) in _sealed(staged.edition, ledger):
        staged.publish()
        return True
    staged.discard()
    return False


def settle_abandoned(store: WorkspaceStore, ledger: Ledger) -> tuple[str, ...]:
    """Settle every edition whose sealing died; return those that were finished."""
    return tuple(s.edition for s in store.abandoned_editions() if settle(s, ledger))


def _sealed(edition: str, ledger: Ledger) -> set[str]:
    entries = ledger.entries(edition=edition, kind="edition-sealed")
    return {e.statement.seal_sha256 for e in entries if isinstance(e.statement, EditionSealed)}
