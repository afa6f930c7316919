"""`piste keys rotate`: a key gives way to another, and the old key itself says so in the log.

The order of the steps lets the ledger decide what a killed process leaves behind:

1. the next key is prepared beside the present one (`run.next.pem`, mode 0600) and on the disk;
2. `key-rotated`, signed by the old key, is appended; from the next statement on the new key signs;
3. the next key is renamed onto the present one.

A prepared key that the ledger names is put in place by the next command; one that it does not name
is removed. The old private key is destroyed by the rename: no statement after the rotation may
bear its signature, and a copy could only serve to forge what came before. Its public half stays
in the log for ever, and that is all that a verifier needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.statements import KeyRole, KeyRotated, PublicKey
from manifests.text import escape_untrusted
from orchestrator.keys.signing_port import KeyFiles, SigningKeys
from orchestrator.ledger.ports import Ledger
from orchestrator.ledger.rules.keyset import ROLES
from orchestrator.support.clock import Clock
from orchestrator.workspace.ports import WorkspaceStore

MAX_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationTools:
    """What a rotation needs: the old key signs, the log's key signs the new checkpoint."""

    ledger: Ledger
    signing: SigningKeys
    files: KeyFiles
    store: WorkspaceStore
    """Knows which runs have a process."""
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """A rotation that is in the log."""

    sequence: int
    old: PublicKey
    new: PublicKey
    reason: str


def rotate_key(role: KeyRole, *, reason: str, tools: RotationTools) -> Rotated:
    """Replace the key of `role`; the keys loaded before are stale when this returns.

    Raises:
        MalformedDocument: no reason was given, or one that is too long.
        RefusedByPolicy: this host lacks the role's or the log's key, a run is open, or another
            process is changing the keys.
        PlatformFault: this host's key is not the one in force, or the disk refuses.

    """
    _check_reason(reason)
    with tools.files.exclusive():
        settle_rotations(tools.files, tools.ledger)
        tools.signing.signer(role)
        tools.signing.signer("log")
        _refuse_open_runs(tools.ledger, tools.store)
        old = tools.ledger.keyset().current(role)
        new = tools.files.prepare(role)
        try:
            entry = tools.ledger.append(
                KeyRotated(
                    at=tools.clock.now(), old_key_id=old.key_id, new_key=new, reason=reason.strip()
                )
            )
        finally:
            settle_rotations(tools.files, tools.ledger)
    return Rotated(sequence=entry.sequence, old=old, new=new, reason=reason.strip())


def settle_rotations(files: KeyFiles, ledger: Ledger) -> None:
    """Finish what the ledger names and remove what it does not. Call it under the files' lock."""
    keyset, prepared = ledger.keyset(), files.prepared()
    for role in ROLES:
        next_key = prepared.get(role)
        if next_key is not None and keyset.current(role).key_id == next_key.key_id:
            files.install(role)
        files.discard(role)


def _check_reason(reason: str) -> None:
    if not 0 < len(reason.strip()) <= MAX_REASON:
        raise MalformedDocument(
            f"reason: {len(reason.strip())} characters, expected 1 to {MAX_REASON}; it is public"
        )
    if escape_untrusted(reason, MAX_REASON) != reason:
        raise MalformedDocument("reason: expected one line of text without control characters")


def _refuse_open_runs(ledger: Ledger, store: WorkspaceStore) -> None:
    """Refuse while a run is under way: its process signs with the key that it loaded."""
    ended = {
        getattr(entry.statement, "run_id", "")
        for kind in ("run-finished", "run-voided")
        for entry in ledger.entries(kind=kind)
    }
    for entry in ledger.entries(kind="run-reserved"):
        run_id = getattr(entry.statement, "run_id", "")
        if run_id not in ended or store.is_run_alive(run_id):
            raise RefusedByPolicy(
                f"run {run_id} is under way; let it end, or clean up after it with: "
                "piste runs reap; then rotate"
            )
