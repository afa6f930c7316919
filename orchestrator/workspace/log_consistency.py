"""`piste log consistency`: show that the log only grew since a checkpoint that was kept."""

from __future__ import annotations

from dataclasses import dataclass

from manifests.errors import ClaimDoesNotHold
from orchestrator.ledger.ports import Ledger
from orchestrator.ledger.rules.checkpoint import Checkpoint, parse_checkpoint, verify_checkpoint
from orchestrator.ledger.rules.merkle import verify_consistency


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """Two checkpoints of one log, and the RFC 6962 proof that the newer extends the older."""

    older: Checkpoint
    newer: Checkpoint
    newer_note: bytes
    proof: tuple[bytes, ...]


def prove_consistency(older_note: bytes, *, source: str, ledger: Ledger) -> Consistency:
    """Prove the present log against an older signed note, and verify the proof as others would.

    Raises:
        MalformedDocument: `source` holds no signed note.
        ClaimDoesNotHold: it is of another log, not signed by the log's key of then, or the log
            was cut or rewritten since.

    """
    keyset = ledger.keyset()
    newer_note = ledger.checkpoint()
    size = parse_checkpoint(newer_note, source="checkpoint").checkpoint.size
    newer = verify_checkpoint(
        newer_note, key=keyset.key_at("log", size - 1), source="the ledger's checkpoint"
    )
    claimed = parse_checkpoint(older_note, source=source).checkpoint
    if claimed.origin != newer.origin:
        raise ClaimDoesNotHold(f"{source}: is of the log {claimed.origin}, this is {newer.origin}")
    older = verify_checkpoint(
        older_note, key=keyset.key_at("log", max(claimed.size, 1) - 1), source=source
    )
    if older.size > newer.size:
        raise ClaimDoesNotHold(
            f"{source}: is of {older.size} statements, here are {newer.size}: the log was cut"
        )
    proof = ledger.consistency_proof(older.size, newer.size)
    verify_consistency(
        older=older.size,
        newer=newer.size,
        older_root=older.root,
        newer_root=newer.root,
        proof=proof,
    )
    return Consistency(older=older, newer=newer, newer_note=newer_note, proof=proof)
