"""The signed note: bytes of the format, openssl as a second verifier, and forgeries."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import ClaimDoesNotHold, MalformedDocument
from orchestrator.keys.pem.signing_keys import generate_signer
from orchestrator.keys.rules.signatures import verifying_key
from orchestrator.ledger.rules.checkpoint import (
    Checkpoint,
    checkpoint_text,
    note_key_id,
    parse_checkpoint,
    render_checkpoint,
    require_origin,
    verify_checkpoint,
)

SIGNER = generate_signer("log")
CHECKPOINT = Checkpoint(origin="example.org/piste", size=21, root=hashlib.sha256(b"root").digest())
NOTE = render_checkpoint(CHECKPOINT, key=SIGNER.public_key, sign=SIGNER.sign)


def test_the_note_is_three_lines_an_empty_line_and_a_signature() -> None:
    lines = NOTE.decode().split("\n")
    root = base64.b64encode(CHECKPOINT.root).decode()
    assert lines[:4] == ["example.org/piste", "21", root, ""]
    assert lines[4].startswith("— example.org/piste ")
    assert lines[5:] == [""]


def test_the_key_id_follows_the_signed_note_format() -> None:
    key = verifying_key(SIGNER.public_key)
    assert isinstance(key, Ed25519PublicKey)
    expected = hashlib.sha256(b"example.org/piste\n\x01" + key.public_bytes_raw()).digest()[:4]
    assert note_key_id("example.org/piste", SIGNER.public_key) == expected
    assert parse_checkpoint(NOTE, source="note").signatures[0].key_id == expected


def test_openssl_verifies_the_signature_over_the_text(tmp_path: Path) -> None:
    (tmp_path / "log.pub").write_text(SIGNER.public_key.pem)
    (tmp_path / "text").write_bytes(checkpoint_text(CHECKPOINT))
    (tmp_path / "sig").write_bytes(parse_checkpoint(NOTE, source="x").signatures[0].signature)
    command = "openssl pkeyutl -verify -pubin -inkey log.pub -rawin -in text -sigfile sig"
    result = subprocess.run(
        command.split(), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "Verified Successfully" in result.stdout


def test_a_note_verifies_under_its_own_key_alone() -> None:
    assert verify_checkpoint(NOTE, key=SIGNER.public_key, source="note") == CHECKPOINT
    with pytest.raises(ClaimDoesNotHold, match="not signed by the log's key"):
        verify_checkpoint(NOTE, key=generate_signer("log").public_key, source="note")


def test_a_witness_may_sign_below_and_does_not_replace_the_log() -> None:
    witness = generate_signer("log")
    blob = base64.b64encode(
        note_key_id("witness.example", witness.public_key) + witness.sign(NOTE)
    ).decode()
    witnessed = NOTE + f"— witness.example {blob}\n".encode()
    assert verify_checkpoint(witnessed, key=SIGNER.public_key, source="note") == CHECKPOINT
    text, _, _ = NOTE.partition(b"\n\n")
    only_witness = text + f"\n\n— witness.example {blob}\n".encode()
    with pytest.raises(ClaimDoesNotHold):
        verify_checkpoint(only_witness, key=SIGNER.public_key, source="note")


@given(place=st.integers(0, len(NOTE) - 1), value=st.integers(0, 255))
@settings(max_examples=150)
def test_no_changed_byte_passes(place: int, value: int) -> None:
    changed = NOTE[:place] + bytes([value]) + NOTE[place + 1 :]
    if changed != NOTE:
        with pytest.raises((ClaimDoesNotHold, MalformedDocument)):
            verify_checkpoint(changed, key=SIGNER.public_key, source="note")


TEXT, SIGNATURE = (part for part in NOTE.split(b"\n\n"))


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b"", "expected text, an empty line"),
        (TEXT, "expected text, an empty line"),
        (NOTE[:-1], "expected text, an empty line"),
        (TEXT + b"\nextension\n\n" + SIGNATURE, "4 lines of text"),
        (NOTE.replace(b"\n21\n", b"\n021\n"), "line 2"),
        (NOTE.replace(b"\n21\n", b"\n-1\n"), "line 2"),
        (NOTE.replace(b"\n21\n", b"\n" + b"9" * 40 + b"\n"), "line 2"),
        (b"a b\n1\nAAAA\n\n" + SIGNATURE, "log origin"),
        (b"a\n1\nAAAA\n\n" + SIGNATURE, "line 3: expected a root"),
        (b"a\n1\nA\n\n" + SIGNATURE, "line 3: not standard base64"),
        (TEXT + b"\n\n- name AAAA\n", "signature line 1"),
        (TEXT + "\n\n— name AAAA\n".encode(), "too short"),
        (b"\xff\n1\nA\n\n" + SIGNATURE, "not UTF-8"),
        (NOTE + b"x" * 1_000_000, "a note has at most"),
    ],
)
def test_a_note_out_of_form_is_refused_with_its_line(data: bytes, fact: str) -> None:
    with pytest.raises(MalformedDocument, match=fact):
        parse_checkpoint(data, source="checkpoint")


@pytest.mark.parametrize("origin", ["", "a b", "a+b", "a\nb", "é", "x" * 201])
def test_an_origin_that_cannot_name_a_key_is_refused(origin: str) -> None:
    with pytest.raises(MalformedDocument, match="log origin"):
        require_origin(origin)


def test_a_log_key_is_ed25519() -> None:
    with pytest.raises(MalformedDocument, match="a log key is Ed25519"):
        note_key_id("x", generate_signer("run").public_key)
