"""A receipt verifies alone, says the same to foreign tools, and shows every change made to it."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymerkle import InmemoryTree

from manifests.encoding import readable_json
from manifests.errors import ClaimDoesNotHold, MalformedDocument, PisteError, RefusedByPolicy
from manifests.statements import KeyRole, KeyRotated
from orchestrator.evidence.make_receipt import receipt_of
from orchestrator.evidence.rules.receipt import verify_receipt
from orchestrator.keys.pem.signing_keys import generate_signer, generate_signing_keys
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.rules.run_states import RunState
from orchestrator.ledger.stored_ledger import StoredLedger
from tests.support.ledger_memory import create_memory_ledger
from tests.support.synthetic_ledger import (
    EDITION,
    NOW,
    edition_sealed,
    run_reserved,
    run_voided,
    team_registered,
    whole_run,
    workspace_created,
)

RUN = "00000000000000aa"
OTHER = "00000000000000bb"
LATER = "00000000000000cc"


def rotate(ledger: StoredLedger, keys: SigningKeys, role: KeyRole) -> tuple[StoredLedger, Any]:
    new = generate_signer(role)
    ledger.append(
        KeyRotated(
            at=NOW,
            old_key_id=keys.signer(role).public_key.key_id,
            new_key=new.public_key,
            reason="yearly",
        )
    )
    held = {"run": keys.run, "scorer": keys.scorer, "log": keys.log} | {role: new}
    changed = SigningKeys(**held)
    return StoredLedger(ledger._store, keys=changed), changed


def story() -> tuple[StoredLedger, SigningKeys, SigningKeys]:
    """Two runs of one team, all keys rotated between them; return the first keys and the last."""
    first = keys = generate_signing_keys()
    ledger = create_memory_ledger(workspace_created(keys), keys=keys)
    for statement in (edition_sealed(), team_registered(), *whole_run(RUN)):
        ledger.append(statement)
    roles: tuple[KeyRole, ...] = ("run", "scorer", "log")
    for role in roles:
        ledger, keys = rotate(ledger, keys, role)
    for statement in (*whole_run(OTHER, 2), run_reserved(LATER, 3), run_voided(LATER)):
        ledger.append(statement)
    return ledger, first, keys


LEDGER, FIRST, LAST = story()
RECEIPT = receipt_of(LEDGER, OTHER)


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(RECEIPT)
    change(document)
    return readable_json(document)


def test_a_receipt_verifies_alone_and_tells_the_life_of_the_run() -> None:
    verified = verify_receipt(RECEIPT, source="receipt.json")
    assert [entry.statement.kind for entry in verified.entries] == [
        "run-reserved",
        "run-started",
        "run-finished",
        "image-removed",
        "run-scored",
    ]
    assert (verified.run.run_id, verified.run.attempt) == (OTHER, 2)
    assert (verified.run.state, verified.run.counts) == (RunState.FINISHED, True)
    assert verified.edition.edition == EDITION
    assert verified.checkpoint.size == LEDGER.size()
    assert verified.keyset == LEDGER.keyset()


def test_receipts_before_and_after_a_rotation_and_of_a_voided_run_verify() -> None:
    assert verify_receipt(receipt_of(LEDGER, RUN), source="r").run.attempt == 1
    voided = verify_receipt(receipt_of(LEDGER, LATER), source="r").run
    assert (voided.state, voided.counts) == (RunState.VOIDED, False)


def test_a_receipt_holds_no_statement_of_another_run() -> None:
    statements = json.loads(RECEIPT)["statements"]
    payloads = [base64.b64decode(json.loads(one["envelope"])["payload"]) for one in statements]
    assert not any(RUN.encode() in payload or LATER.encode() in payload for payload in payloads)


def test_a_run_that_is_not_there_has_no_receipt() -> None:
    with pytest.raises(RefusedByPolicy, match="not in this ledger; see: piste runs list"):
        receipt_of(LEDGER, "0000000000000000")


@pytest.mark.parametrize("keys", [FIRST, LAST])
def test_pinned_keys_are_trusted_and_so_are_those_that_follow_on_them(keys: SigningKeys) -> None:
    ids = {key.key_id for key in keys.held()}
    assert verify_receipt(RECEIPT, source="r", trusted_key_ids=FIRST_IDS | ids).run.run_id == OTHER


FIRST_IDS = {key.key_id for key in FIRST.held()}


@pytest.mark.parametrize("role", ["run", "scorer", "log"])
def test_a_receipt_by_keys_that_nobody_pinned_is_refused(role: KeyRole) -> None:
    known = FIRST_IDS - {FIRST.signer(role).public_key.key_id}
    with pytest.raises(ClaimDoesNotHold, match=f"the {role} key .* none of the 2 trusted keys"):
        verify_receipt(RECEIPT, source="r", trusted_key_ids=known)
    with pytest.raises(ClaimDoesNotHold, match="none of the 0 trusted keys"):
        verify_receipt(RECEIPT, source="r", trusted_key_ids=())


def forged() -> bytes:
    ledger, _, _ = story()
    return receipt_of(ledger, OTHER)


def test_a_whole_forgery_agrees_with_itself_and_fails_by_its_keys() -> None:
    data = forged()
    assert verify_receipt(data, source="r").run.run_id == OTHER
    with pytest.raises(ClaimDoesNotHold, match="trusted keys"):
        verify_receipt(data, source="r", trusted_key_ids=FIRST_IDS)


def drop(kind: str) -> Callable[[dict[str, Any]], object]:
    def change(document: dict[str, Any]) -> None:
        kept = [
            one
            for one in document["statements"]
            if f'"kind":"{kind}"'.encode()
            not in base64.b64decode(json.loads(one["envelope"])["payload"])
        ]
        assert len(kept) < len(document["statements"])
        document["statements"] = kept

    return change


def splice(document: dict[str, Any]) -> None:
    foreign = json.loads(receipt_of(LEDGER, RUN))["statements"]
    both = {one["sequence"]: one for one in (*document["statements"], *foreign)}
    document["statements"] = [both[sequence] for sequence in sorted(both)]


def older_checkpoint(document: dict[str, Any]) -> None:
    lines = document["checkpoint"].split("\n")
    document["checkpoint"] = "\n".join([lines[0], "5", *lines[2:]])


def respell(document: dict[str, Any]) -> None:
    document["statements"][-1]["envelope"] += " "


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("workspace-created"), "expected statement 0 first"),
        (drop("key-rotated"), "none of the published keys|is not in force"),
        (drop("edition-sealed"), "one edition's seal"),
        (drop("run-reserved"), "is not in the ledger"),
        (drop("run-started"), "only a started run can finish"),
        (drop("run-finished"), "only a finished run is scored"),
        (splice, "nothing else"),
        (older_checkpoint, "the signature is not by the log key|not signed by the log's key"),
        (respell, "inclusion proof does not lead"),
        (lambda d: d["statements"].reverse(), "in the log's order"),
        (lambda d: d["statements"].append(d["statements"][-1]), "in the log's order"),
        (lambda d: d["statements"][2]["proof"].pop(), "inclusion proof"),
        (lambda d: d["statements"][2]["proof"].append("0" * 64), "inclusion proof"),
        (lambda d: d["statements"][-1].update(sequence=9999), "says that it is statement"),
        (lambda d: d.update(run_id=RUN), "those of run 00000000000000aa, nothing else"),
        (lambda d: d.update(origin="example.org/other"), "origin: statement 0 began the log"),
        (lambda d: d["keys"].pop(), "keys: not the keys"),
        (lambda d: d["keys"][0].update(since=1), "keys: not the keys"),
    ],
)
def test_a_changed_claim_is_named(change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(ClaimDoesNotHold, match=message):
        verify_receipt(changed(change), source="receipt.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format="piste-receipt/2"), "field format"),
        (lambda d: d.update(extra=1), "field extra: is unknown"),
        (lambda d: d.update(statements=[]), "field statements"),
        (lambda d: d["statements"][0].update(sequence=-1), "sequence"),
        (lambda d: d["statements"][0].update(sequence="0"), "sequence"),
        (lambda d: d["statements"][0].update(proof=["xyz"]), "proof"),
        (lambda d: d["statements"][0].update(proof=["0" * 64] * 64), "proof"),
        (lambda d: d["statements"][0].update(envelope="{}"), "missing or unknown fields"),
        (lambda d: d.update(checkpoint=""), "expected text, an empty line"),
        (lambda d: d.update(run_id="../../etc"), "run_id"),
    ],
)
def test_a_receipt_out_of_form_is_refused_by_field(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(MalformedDocument, match=message):
        verify_receipt(changed(change), source="receipt.json")


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"\xff", b'{"run_id":1,"run_id":2}', b" " * 16_000_001]
)
def test_bytes_that_are_no_receipt_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedDocument, match=r"^receipt\.json"):
        verify_receipt(data, source="receipt.json")


def test_half_a_surrogate_pair_is_refused_and_not_a_crash() -> None:
    for change in (
        lambda d: d.update(checkpoint="@@"),
        lambda d: d["statements"][0].update(envelope="@@"),
    ):
        data = changed(change).replace(b'"@@"', b'"\\ud800"')
        with pytest.raises(MalformedDocument, match="an escape spells half a character"):
            verify_receipt(data, source="receipt.json")


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves_of(value[key], (*path, key))]
    if isinstance(value, list):
        return [leaf for key, one in enumerate(value) for leaf in leaves_of(one, (*path, key))]
    return [path]


FIELDS = leaves_of(json.loads(RECEIPT))


@settings(max_examples=80, deadline=None)
@given(data=st.data(), field=st.sampled_from(FIELDS))
def test_no_field_can_be_changed(data: st.DataObject, field: tuple[Any, ...]) -> None:
    document = json.loads(RECEIPT)
    holder = document
    for step in field[:-1]:
        holder = holder[step]
    old = holder[field[-1]]
    if isinstance(old, int):
        holder[field[-1]] = old + data.draw(st.integers(1, 5))
    else:
        place = data.draw(st.integers(0, len(old) - 1))
        put = data.draw(st.characters(codec="utf-8").filter(lambda one: one != old[place]))
        holder[field[-1]] = old[:place] + put + old[place + 1 :]
    with pytest.raises(PisteError):
        verify_receipt(readable_json(document), source="receipt.json")


VERIFIED = verify_receipt(RECEIPT, source="receipt.json")


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, len(RECEIPT) - 1), byte=st.integers(0, 255), cut=st.booleans())
def test_no_byte_changes_what_a_receipt_proves(place: int, byte: int, cut: bool) -> None:
    data = RECEIPT[:place] + (b"" if cut else bytes([byte])) + RECEIPT[place + 1 :]
    try:
        verified = verify_receipt(data, source="receipt.json")
    except PisteError:
        return
    assert verified == VERIFIED  # white space between the fields


def test_pymerkle_computes_the_root_that_the_receipt_is_proven_against() -> None:
    tree = InmemoryTree(algorithm="sha256")
    for leaf in LEDGER.stored_leaves():
        tree.append_entry(leaf.envelope)
    verified = verify_receipt(RECEIPT, source="r")
    assert tree.get_root() == verified.checkpoint.root


RECIPE = """
jq -rj '.keys[] | select(.role == "run") | select(.since <= '$AT') | .pem' receipt.json | tac |
  sed '/BEGIN/q' | tac > run.pub
jq -rj '.statements[] | select(.sequence == '$AT') | .envelope' receipt.json > leaf.json
jq -rj .payload leaf.json | base64 -d > payload.json
TYPE=$(jq -rj .payloadType leaf.json)
{ printf 'DSSEv1 %d %s %d ' ${#TYPE} "$TYPE" $(wc -c < payload.json); cat payload.json; } > pae
jq -rj '.signatures[0].sig' leaf.json | base64 -d > sig.der
openssl dgst -sha256 -verify run.pub -signature sig.der pae

jq -rj '[.keys[] | select(.role == "log")][-1].pem' receipt.json > log.pub
jq -rj .checkpoint receipt.json > checkpoint
head -n 3 checkpoint > note
tail -n 1 checkpoint | cut -d ' ' -f 3 | base64 -d | tail -c 64 > note.sig
openssl pkeyutl -verify -pubin -inkey log.pub -rawin -in note -sigfile note.sig

# the audit path, one digest after the other (RFC 9162, section 2.1.3.2)
hex() { sed 's/../\\\\x&/g'; }
hash() { printf "$1" | openssl dgst -sha256 -r | cut -d ' ' -f 1; }
digest=$({ printf '\\0'; cat leaf.json; } | openssl dgst -sha256 -r | cut -d ' ' -f 1)
position=$AT; last=$(( $(sed -n 2p checkpoint) - 1 ))
for sibling in $(jq -r '.statements[] | select(.sequence == '$AT') | .proof[]' receipt.json); do
  if [ $(( position & 1 )) = 1 ] || [ $position = $last ]; then
    digest=$(hash "\\\\x01$(echo $sibling | hex)$(echo $digest | hex)")
    while [ $(( position & 1 )) = 0 ] && [ $position != 0 ]; do
      position=$(( position >> 1 )); last=$(( last >> 1 ))
    done
  else
    digest=$(hash "\\\\x01$(echo $digest | hex)$(echo $sibling | hex)")
  fi
  position=$(( position >> 1 )); last=$(( last >> 1 ))
done
[ "$(printf "$(echo $digest | hex)" | base64)" = "$(sed -n 3p checkpoint)" ] && echo included
"""


@pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("jq", "openssl")), reason="missing: jq or openssl"
)
def test_jq_and_openssl_check_signature_checkpoint_and_inclusion(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_bytes(RECEIPT)
    at = verify_receipt(RECEIPT, source="r").entries[0].sequence
    answer = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"AT={at}\n{RECIPE}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "Verified OK" in answer.stdout
    assert "Signature Verified Successfully" in answer.stdout
    assert answer.stdout.endswith("included\n")
