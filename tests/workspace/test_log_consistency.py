"""A kept checkpoint is proven against the present log, over rotations of the log's key as well."""

from __future__ import annotations

import base64

import pytest
from pymerkle import InmemoryTree

from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.statements import KeyRotated
from orchestrator.keys.pem.signing_keys import generate_signer, generate_signing_keys
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.rules.checkpoint import Checkpoint, note_verifier, render_checkpoint
from orchestrator.ledger.rules.merkle import verify_consistency
from orchestrator.ledger.stored_ledger import StoredLedger
from orchestrator.workspace.log_consistency import prove_consistency
from tests.support.ledger_memory import create_memory_ledger
from tests.support.synthetic_ledger import edition_sealed, team_registered, workspace_created

TEAMS = ("nova", "vega", "lyra", "crux", "ara")


def grown() -> tuple[StoredLedger, SigningKeys, list[bytes]]:
    """Return a log, its first keys, and the checkpoint after each statement; the key rotates."""
    keys = generate_signing_keys()
    ledger = create_memory_ledger(workspace_created(keys), keys=keys)
    notes = [ledger.checkpoint()]
    for team in TEAMS:
        ledger.append(team_registered(team))
        notes.append(ledger.checkpoint())
    assert keys.log is not None
    new = generate_signer("log")
    ledger.append(
        KeyRotated(
            at=team_registered().at,
            old_key_id=keys.log.public_key.key_id,
            new_key=new.public_key,
            reason="yearly",
        )
    )
    notes.append(ledger.checkpoint())
    rotated = SigningKeys(run=keys.run, scorer=keys.scorer, log=new)
    ledger = StoredLedger(ledger._store, keys=rotated)
    ledger.append(edition_sealed())
    notes.append(ledger.checkpoint())
    return ledger, keys, notes


LEDGER, FIRST, NOTES = grown()


@pytest.mark.parametrize("size", range(1, len(NOTES) + 1))
def test_every_checkpoint_that_was_ever_signed_is_extended(size: int) -> None:
    proven = prove_consistency(NOTES[size - 1], source="kept", ledger=LEDGER)
    assert (proven.older.size, proven.newer.size) == (size, len(NOTES))
    assert proven.newer_note == NOTES[-1]
    verify_consistency(
        older=size,
        newer=len(NOTES),
        older_root=proven.older.root,
        newer_root=proven.newer.root,
        proof=proven.proof,
    )
    tree = InmemoryTree(algorithm="sha256")
    for leaf in LEDGER.stored_leaves():
        tree.append_entry(leaf.envelope)
    assert (tree.get_root(size), tree.get_root()) == (proven.older.root, proven.newer.root)


def signed(checkpoint: Checkpoint) -> bytes:
    assert FIRST.log is not None
    return render_checkpoint(checkpoint, key=FIRST.log.public_key, sign=FIRST.log.sign)


@pytest.mark.parametrize(
    ("note", "message"),
    [
        (NOTES[2].replace(b"\n3\n", b"\n4\n"), "the signature is not by the log key"),
        (
            signed(Checkpoint(origin="example.org/piste", size=3, root=b"x" * 32)),
            "does not extend the one of 3: it was rewritten",
        ),
        (signed(Checkpoint(origin="example.org/b", size=3, root=b"x" * 32)), "example.org/b, this"),
        (
            signed(Checkpoint(origin="example.org/piste", size=9, root=b"x" * 32)),
            "not signed by the log's key",
        ),
        (grown()[2][2], "not signed by the log's key"),
    ],
)
def test_a_checkpoint_of_another_history_is_refused(note: bytes, message: str) -> None:
    with pytest.raises(ClaimDoesNotHold, match=message):
        prove_consistency(note, source="kept", ledger=LEDGER)


def test_a_log_that_was_cut_is_caught() -> None:
    keys = generate_signing_keys()
    longer, shorter = (create_memory_ledger(workspace_created(keys), keys=keys) for _ in range(2))
    longer.append(team_registered())
    with pytest.raises(ClaimDoesNotHold, match="is of 2 statements, here are 1: the log was cut"):
        prove_consistency(longer.checkpoint(), source="kept", ledger=shorter)


def test_bytes_that_are_no_note_are_refused() -> None:
    with pytest.raises(MalformedDocument, match=r"^kept: "):
        prove_consistency(b"hello", source="kept", ledger=LEDGER)


def test_the_verifier_key_is_the_one_of_the_signed_note_format() -> None:
    assert FIRST.log is not None
    name, key_id, blob = note_verifier("example.org/piste", FIRST.log.public_key).split("+", 2)
    assert name == "example.org/piste"
    assert len(bytes.fromhex(key_id)) == 4
    line = NOTES[0].decode().splitlines()[-1].split(" ")[-1]
    assert base64.b64decode(line)[:4].hex() == key_id
    assert base64.b64decode(blob)[:1] == b"\x01"
    assert len(base64.b64decode(blob)) == 33
