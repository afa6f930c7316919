"""DSSE envelopes: our writer against other people's readers, and the reader against everybody."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as ForeignEnvelope
from securesystemslib.signer._key import Key

from manifests.dsse import (
    Envelope,
    Signature,
    parse_envelope,
    pre_authentication_encoding,
    render_envelope,
)
from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.statements import PAYLOAD_TYPE
from orchestrator.keys.pem.signing_keys import FileSigner, generate_signer
from orchestrator.keys.rules.signatures import verify_envelope
from orchestrator.ledger.rules.leaves import seal_statement
from tests.support.synthetic_ledger import run_reserved, team_registered

SIGNER = generate_signer("run")
LEAF = seal_statement(
    run_reserved("00000000000000aa").model_copy(update={"sequence": 7}),
    key_id=SIGNER.public_key.key_id,
    sign=SIGNER.sign,
)

# The recipe that the published evidence carries, word for word: jq, coreutils and openssl alone.
RECIPE = r"""
jq -rj .payload run.dsse.json | base64 -d > payload.json; PT=$(jq -rj .payloadType run.dsse.json)
{ printf 'DSSEv1 %d %s %d ' ${#PT} "$PT" $(wc -c <payload.json); cat payload.json; } > pae.bin
jq -rj '.signatures[0].sig' run.dsse.json | base64 -d > sig.der
openssl dgst -sha256 -verify run.pub -signature sig.der pae.bin
"""


def run_recipe(folder: Path, leaf: bytes, signer: FileSigner) -> subprocess.CompletedProcess[str]:
    (folder / "run.dsse.json").write_bytes(leaf)
    (folder / "run.pub").write_text(signer.public_key.pem)
    return subprocess.run(
        ["bash", "-euc", RECIPE], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_encoding_is_the_protocols_own_example() -> None:
    encoded = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


@given(payload=st.binary(max_size=200), kind=st.text(max_size=20))
@settings(max_examples=50)
def test_the_encoding_is_securesystemslibs(payload: bytes, kind: str) -> None:
    foreign = ForeignEnvelope(payload=payload, payload_type=kind, signatures={})
    assert pre_authentication_encoding(kind, payload) == foreign.pae()


def test_openssl_and_jq_accept_a_leaf_by_the_published_recipe(tmp_path: Path) -> None:
    result = run_recipe(tmp_path, LEAF, SIGNER)
    assert (result.returncode, result.stdout) == (0, "Verified OK\n")


def test_openssl_and_jq_refuse_a_leaf_under_another_key(tmp_path: Path) -> None:
    result = run_recipe(tmp_path, LEAF, generate_signer("run"))
    assert result.returncode != 0
    assert "Verified OK" not in result.stdout


def test_securesystemslib_verifies_a_leaf() -> None:
    foreign_key = Key.from_dict(
        SIGNER.public_key.key_id,
        {
            "keytype": "ecdsa",
            "scheme": "ecdsa-sha2-nistp256",
            "keyval": {"public": SIGNER.public_key.pem},
        },
    )
    foreign = ForeignEnvelope.from_dict(json.loads(LEAF))
    assert list(foreign.verify([foreign_key], threshold=1)) == [SIGNER.public_key.key_id]


@given(
    payload=st.binary(max_size=100),
    kind=st.text(max_size=20),
    signatures=st.lists(st.tuples(st.text(max_size=8), st.binary(max_size=80)), min_size=1),
)
@settings(max_examples=50)
def test_what_is_rendered_parses_back(
    payload: bytes, kind: str, signatures: list[tuple[str, bytes]]
) -> None:
    envelope = Envelope(
        payload=payload,
        payload_type=kind,
        signatures=tuple(Signature(key_id=name, signature=data) for name, data in signatures),
    )
    assert parse_envelope(render_envelope(envelope), source="x") == envelope


def changed(field: str, value: Any) -> bytes:
    document = json.loads(LEAF)
    document[field] = value
    return json.dumps(document).encode()


SIGNATURE: dict[str, Any] = json.loads(LEAF)["signatures"][0]


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b"", "not strict JSON"),
        (b"[]", "expected a JSON object"),
        (LEAF[:-1], "not strict JSON"),
        (LEAF.replace(b'"payload":', b'"payload":"","payload":', 1), "stands twice"),
        (b'{"payload":"","payloadType":""}', "signatures"),
        (changed("extra", 1), "unknown fields: extra"),
        (changed("payload", 3), "payload: expected a string"),
        (changed("payload", "a b="), "payload: not standard base64"),
        (changed("payload", "_-8="), "payload: not standard base64"),
        (changed("payload", "QQ"), "payload: not standard base64"),
        (changed("payload", "QR=="), "second spelling"),
        (changed("payload", "é"), "payload: not standard base64"),
        (changed("payloadType", None), "payloadType: expected a string"),
        (changed("signatures", []), "at least one"),
        (changed("signatures", "x"), "at least one"),
        (changed("signatures", ["x"]), r"signatures\[0\]: expected an object"),
        (changed("signatures", [{"sig": "QQ=="}]), "missing or unknown fields: keyid"),
        (changed("signatures", [SIGNATURE | {"cert": "x"}]), "unknown fields: cert"),
        (changed("signatures", [SIGNATURE | {"keyid": 1}]), "keyid: expected a string"),
    ],
)
def test_an_envelope_out_of_form_is_refused_with_its_field(data: bytes, fact: str) -> None:
    with pytest.raises(MalformedDocument, match=fact) as raised:
        parse_envelope(data, source="run.dsse.json")
    assert str(raised.value).startswith("run.dsse.json")


def verify(leaf: bytes, *signers: FileSigner) -> None:
    verify_envelope(
        parse_envelope(leaf, source="leaf"),
        keys=tuple(signer.public_key for signer in signers),
        payload_type=PAYLOAD_TYPE,
        source="leaf",
    )


def test_our_own_verification_accepts_the_leaf_and_nothing_near_it() -> None:
    verify(LEAF, generate_signer("run"), SIGNER)
    with pytest.raises(ClaimDoesNotHold, match="none of the published keys"):
        verify(LEAF, generate_signer("run"))
    with pytest.raises(ClaimDoesNotHold, match="payload type"):
        verify(changed("payloadType", "text/plain"), SIGNER)
    payload = base64.b64encode(os.urandom(9)).decode()
    with pytest.raises(ClaimDoesNotHold, match="not by the run key"):
        verify(changed("payload", payload), SIGNER)


def test_an_auditors_countersignature_does_no_harm_and_cannot_stand_for_ours() -> None:
    auditor = generate_signer("run")
    envelope = parse_envelope(LEAF, source="leaf")
    theirs = Signature(
        key_id=auditor.public_key.key_id, signature=auditor.sign(envelope.signed_bytes())
    )
    both = Envelope(
        payload=envelope.payload,
        payload_type=envelope.payload_type,
        signatures=(theirs, *envelope.signatures),
    )
    verify(render_envelope(both), SIGNER)
    alone = Envelope(
        payload=envelope.payload, payload_type=envelope.payload_type, signatures=(theirs,)
    )
    with pytest.raises(ClaimDoesNotHold):
        verify(render_envelope(alone), SIGNER)


def test_two_statements_never_share_a_leaf() -> None:
    leaves = {
        seal_statement(
            team_registered().model_copy(update={"sequence": number}),
            key_id=SIGNER.public_key.key_id,
            sign=SIGNER.sign,
        )
        for number in range(3)
    }
    assert len(leaves) == 3
