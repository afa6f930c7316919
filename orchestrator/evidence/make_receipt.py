"""`piste runs show RUN --proof`: a receipt for an entrant, which verifies alone."""

from __future__ import annotations

from manifests.errors import RefusedByPolicy
from manifests.text import escape_untrusted
from orchestrator.evidence.rules.receipt_document import render_receipt
from orchestrator.ledger.ports import Entry, Ledger
from orchestrator.ledger.rules.checkpoint import parse_checkpoint
from orchestrator.ledger.rules.keyset import fold_keyset
from orchestrator.workspace.workspace import Workspace


def make_receipt(workspace: Workspace, run_id: str) -> bytes:
    """Return the receipt of a run or submission, up to the present checkpoint.

    Raises:
        RefusedByPolicy: the ledger knows of no such run.

    """
    return receipt_of(workspace.ledger, run_id)


def receipt_of(ledger: Ledger, run_id: str) -> bytes:
    """Return the receipt of a run; see `make_receipt`."""
    checkpoint = ledger.checkpoint()
    size = parse_checkpoint(checkpoint, source="checkpoint").checkpoint.size
    entries = [entry for entry in _entries(ledger, run_id) if entry.sequence < size]
    return render_receipt(
        run_id,
        checkpoint=checkpoint,
        keyset=fold_keyset(entry.statement for entry in entries),
        proven=[(entry, ledger.inclusion_proof(entry.sequence, size)) for entry in entries],
    )


def _entries(ledger: Ledger, run_id: str) -> list[Entry]:
    own = list(ledger.entries(run_id=run_id))
    if not own:
        raise RefusedByPolicy(
            f"run {escape_untrusted(run_id, 60)}: not in this ledger; see: piste runs list"
        )
    edition = getattr(own[0].statement, "edition", None)
    kept = {entry.sequence: entry for entry in own}
    for scope in (
        ledger.entries(kind="workspace-created"),
        ledger.entries(kind="key-rotated"),
        ledger.entries(kind="edition-sealed", edition=edition),
    ):
        kept |= {entry.sequence: entry for entry in scope}
    return [kept[sequence] for sequence in sorted(kept)]
