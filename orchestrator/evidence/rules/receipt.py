"""A run's receipt: its statements, and the proof that they are in the log. It verifies alone.

It holds the exact envelopes of the statement that began the log, of every key rotation, of the
edition's seal and of the run itself, each with its RFC 6962 audit path to one signed checkpoint.
A receipt proves that what it shows is in the log. That nothing else is there, a later void for
one, only the whole log shows: compare its checkpoint with the published one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from manifests.errors import ClaimDoesNotHold
from manifests.statements import (
    EditionSealed,
    KeyRotated,
    PublicKey,
    RunReserved,
    WorkspaceCreated,
)
from orchestrator.evidence.rules.receipt_document import Receipt, parse_receipt, published_keys
from orchestrator.ledger.rules.checkpoint import Checkpoint, parse_checkpoint, verify_checkpoint
from orchestrator.ledger.rules.entries import Entry
from orchestrator.ledger.rules.keyset import Keyset, begin_keyset
from orchestrator.ledger.rules.leaves import open_leaf
from orchestrator.ledger.rules.merkle import leaf_hash, verify_inclusion
from orchestrator.ledger.rules.run_states import Run, RunStatement, advance, transition_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedReceipt:
    """What a receipt proves."""

    run: Run
    entries: tuple[Entry, ...]
    """The run's own statements, in order."""
    edition: EditionSealed
    checkpoint: Checkpoint
    keyset: Keyset


def verify_receipt(
    data: bytes, *, source: str, trusted_key_ids: Collection[str] | None = None
) -> VerifiedReceipt:
    """Verify a receipt without anything else, and return what it proves.

    1. It is a receipt, and its statements are in the log's order.
    2. Each statement is signed by the key in force at its position, from statement 0 on.
    3. The log's key signed the checkpoint, and the checkpoint is of the named log.
    4. Each statement is in the checkpoint's tree.
    5. The run's statements are a run's life, on the clips and the profile that were sealed.
    6. With `trusted_key_ids`: the keys of 2 (the run's and the edition's statements) and 3 are
       trusted, or follow by signed rotations on a trusted one. Without them the receipt only
       shows that its keys agree with each other: compare their ids with the published ones.

    Raises:
        MalformedDocument: it breaks its format.
        ClaimDoesNotHold: one of the claims is false.

    """
    receipt = parse_receipt(data, source=source)
    entries, keyset = _open_statements(receipt, source=source)
    checkpoint = _verify_checkpoint(receipt, keyset, source=source)
    for item in receipt.statements:
        verify_inclusion(
            leaf_hash(item.envelope.encode("utf-8")),
            index=item.sequence,
            size=checkpoint.size,
            proof=tuple(bytes.fromhex(digest) for digest in item.proof),
            root=checkpoint.root,
        )
    edition, own = _split(entries, receipt.run_id, source=source)
    run = _fold(own, edition, source=source)
    if trusted_key_ids is not None:
        _require_trusted(
            (edition, *own), checkpoint, keyset, trusted=trusted_key_ids, source=source
        )
    sealed = edition.statement
    assert isinstance(sealed, EditionSealed)  # _split made sure
    return VerifiedReceipt(
        run=run, entries=own, edition=sealed, checkpoint=checkpoint, keyset=keyset
    )


def _open_statements(receipt: Receipt, *, source: str) -> tuple[tuple[Entry, ...], Keyset]:
    sequences = [item.sequence for item in receipt.statements]
    if sequences != sorted(set(sequences)) or sequences[0] != 0:
        raise ClaimDoesNotHold(
            f"{source}: statements: expected statement 0 first, then each once, in the log's order"
        )
    keyset: Keyset | None = None
    entries = []
    for item in receipt.statements:
        entry = open_leaf(item.envelope.encode("utf-8"), sequence=item.sequence, keyset=keyset)
        entries.append(entry)
        if isinstance(entry.statement, WorkspaceCreated):
            keyset = begin_keyset(entry.statement)
        elif keyset is not None:
            keyset = keyset.after(entry.statement, entry.sequence)
    assert keyset is not None  # open_leaf accepts nothing but workspace-created as statement 0
    if receipt.keys != published_keys(keyset):
        raise ClaimDoesNotHold(f"{source}: keys: not the keys that its statements publish")
    return tuple(entries), keyset


def _verify_checkpoint(receipt: Receipt, keyset: Keyset, *, source: str) -> Checkpoint:
    note, place = receipt.checkpoint.encode("utf-8"), f"{source}: checkpoint"
    size = parse_checkpoint(note, source=place).checkpoint.size
    checkpoint = verify_checkpoint(note, key=keyset.key_at("log", max(size, 1) - 1), source=place)
    if not checkpoint.origin == receipt.origin == keyset.origin:
        raise ClaimDoesNotHold(f"{source}: origin: statement 0 began the log {keyset.origin}")
    return checkpoint


def _split(
    entries: Sequence[Entry], run_id: str, *, source: str
) -> tuple[Entry, tuple[Entry, ...]]:
    """Return the edition's seal and the run's statements; nothing else may be in a receipt."""
    own = tuple(
        entry
        for entry in entries
        if isinstance(entry.statement, RunStatement) and entry.statement.run_id == run_id
    )
    seals = [entry for entry in entries if isinstance(entry.statement, EditionSealed)]
    keys = [
        entry for entry in entries if isinstance(entry.statement, WorkspaceCreated | KeyRotated)
    ]
    if not own or len(seals) != 1 or len(own) + len(seals) + len(keys) != len(entries):
        raise ClaimDoesNotHold(
            f"{source}: statements: expected the log's keys, one edition's seal and those of run "
            f"{run_id}, nothing else"
        )
    return seals[0], own


def _fold(own: Sequence[Entry], edition: Entry, *, source: str) -> Run:
    sealed = edition.statement
    assert isinstance(sealed, EditionSealed)
    run: Run | None = None
    for entry in own:
        statement = entry.statement
        assert isinstance(statement, RunStatement)
        fault = transition_fault(run, statement)
        if fault is None:
            fault = _misfit(statement, sealed)
        if fault is None and entry.sequence < edition.sequence:
            fault = f"run {statement.run_id} began before edition {sealed.edition} was sealed"
        if fault is not None:
            raise ClaimDoesNotHold(f"{source}: statement {entry.sequence}: {fault}")
        run = advance(run, statement)
    assert run is not None
    return run


def _misfit(statement: RunStatement, sealed: EditionSealed) -> str | None:
    name = f"run {statement.run_id}"
    if statement.edition != sealed.edition:
        return f"{name} is in {statement.edition}, the seal is of {sealed.edition}"
    if isinstance(statement, RunReserved):
        if statement.clip_set_sha256 != sealed.clip_set_sha256:
            return f"{name} is on other clips than {sealed.edition} sealed"
        if statement.profile_sha256 != sealed.profile_sha256:
            return f"{name} ran under another profile than {sealed.edition} sealed"
    return None


def _require_trusted(
    entries: Sequence[Entry],
    checkpoint: Checkpoint,
    keyset: Keyset,
    *,
    trusted: Collection[str],
    source: str,
) -> None:
    used = [keyset.signer_at(entry.statement, entry.sequence) for entry in entries]
    for key in (*used, keyset.key_at("log", checkpoint.size - 1)):
        if not any(old.key_id in trusted for old in _ancestry(keyset, key)):
            raise ClaimDoesNotHold(
                f"{source}: the {key.role} key {key.key_id[:16]} is none of the "
                f"{len(trusted)} trusted keys and follows on none of them"
            )


def _ancestry(keyset: Keyset, key: PublicKey) -> tuple[PublicKey, ...]:
    """Return the keys of the role up to `key`; the signature of each names the next."""
    of_role = [published for published in keyset.published() if published.role == key.role]
    return tuple(of_role[: of_role.index(key) + 1])
