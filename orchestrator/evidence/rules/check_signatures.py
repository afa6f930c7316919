"""Checks 19 and 20: the detached signature of a folder's sums, and the run's DSSE envelope."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from manifests.digests import sha256_hex
from manifests.dsse import parse_envelope, render_envelope
from manifests.encoding import canonical_json, parse_json_object
from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.runs import RunRecord
from manifests.statements import KeyRole, PublicKey
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.keys.rules.signatures import describe_key, verify_envelope, verify_signature
from orchestrator.ledger.rules.keyset import Keyset
from orchestrator.runs.rules.run_files import (
    ENVELOPE,
    IN_TOTO_PAYLOAD_TYPE,
    SUMS,
    SUMS_SIGNATURE,
    in_toto_statement,
)


def read_public_key(pem: bytes, *, role: KeyRole, source: str) -> PublicKey:
    """Return the key in a PEM file, which must be in its one usual spelling.

    Raises:
        MalformedDocument: when it is no such key.

    """
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise MalformedDocument(f"{source}: not a PEM public key") from error
    if not isinstance(key, ec.EllipticCurvePublicKey | Ed25519PublicKey):
        raise MalformedDocument(f"{source}: neither ECDSA P-256 nor Ed25519")
    described = describe_key(role, key)
    if described.pem.encode("ascii") != pem:
        raise MalformedDocument(f"{source}: not the usual spelling of this key")
    return described


def keys_since(keyset: Keyset, role: KeyRole, sequence: int) -> tuple[PublicKey, ...]:
    """Return the keys of `role` that were in force at `sequence` or later."""
    periods = [period for period in keyset.periods if period.key.role == role]
    ends = [period.since for period in periods[1:]]
    return tuple(
        period.key
        for place, period in enumerate(periods)
        if place == len(ends) or ends[place] > sequence
    )


def check_sums_signature(
    findings: Findings,
    folder: Folder,
    *,
    role: KeyRole,
    published: tuple[PublicKey, ...] | None,
) -> PublicKey | None:
    """Check the signature over `SHA256SUMS` (check 19); return the key that made it.

    `published` are the keys that may have signed; None: there is no log to tell, and the folder's
    own key shows only that it is consistent with itself.
    """
    with findings.judging(Check.SIGNATURE):
        findings.compared(Check.SIGNATURE)
        name = f"{role}.pub"
        source = f"{folder.place}/{name}"
        key = read_public_key(folder.read(name), role=role, source=source)
        if published is None:
            findings.note(
                Check.SIGNATURE,
                f"no log is here: the folder's own key {key.key_id} was used; compare it with the "
                "edition's, or give that with --key",
            )
        elif key not in published:
            raise ClaimDoesNotHold(
                f"{source}: key {key.key_id[:16]} is none that the log published for this"
            )
        verify_signature(
            key,
            message=folder.read(SUMS),
            signature=_detached(folder),
            source=f"{folder.place}/{SUMS_SIGNATURE}",
        )
        return key
    return None


def _detached(folder: Folder) -> bytes:
    source, data = f"{folder.place}/{SUMS_SIGNATURE}", folder.read(SUMS_SIGNATURE)
    try:
        signature = base64.b64decode(data)
    except (binascii.Error, ValueError) as error:
        raise MalformedDocument(f"{source}: not base64") from error
    if data not in {base64.b64encode(signature) + b"\n", base64.encodebytes(signature)}:
        raise MalformedDocument(f"{source}: base64 in another spelling of the same bytes")
    return signature


def check_envelope(
    findings: Findings,
    folder: Folder,
    *,
    record: RunRecord,
    key: PublicKey,
    listed: Mapping[str, str],
) -> None:
    """Check the in-toto statement of a run: signature, subjects, predicate (check 20)."""
    with findings.judging(Check.ENVELOPE):
        findings.compared(Check.ENVELOPE)
        source, data = f"{folder.place}/{ENVELOPE}", folder.read(ENVELOPE)
        envelope = parse_envelope(data, source=source)
        if render_envelope(envelope) != data:
            raise ClaimDoesNotHold(f"{source}: the envelope is not in canonical form")
        verify_envelope(envelope, keys=(key,), payload_type=IN_TOTO_PAYLOAD_TYPE, source=source)
        statement = parse_json_object(envelope.payload, source=source)
        subjects = dict(listed) | {SUMS: sha256_hex(folder.read(SUMS))}
        expected = in_toto_statement(record, subjects, builder=_builder(statement, source=source))
        if statement.get("subject") != expected["subject"]:
            raise ClaimDoesNotHold(f"{source}: the subjects are not the files of SHA256SUMS")
        if canonical_json(expected) != envelope.payload:
            raise ClaimDoesNotHold(f"{source}: the predicate is not what the run's record says")


def _builder(statement: Mapping[str, Any], *, source: str) -> str:
    """Return the version of piste that wrote the statement: the one field no record repeats."""
    value: Any = statement
    for name in ("predicate", "runDetails", "builder", "version", "piste"):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, str):
        raise MalformedDocument(f"{source}: the statement names no builder")
    return value
