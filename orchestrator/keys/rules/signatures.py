"""Verify signatures with published keys: ECDSA P-256 with SHA-256, and Ed25519."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import assert_never

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from manifests.dsse import Envelope
from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.statements import KeyAlgorithm, KeyRole, PublicKey
from manifests.text import escape_untrusted

VerifyingKey = ec.EllipticCurvePublicKey | Ed25519PublicKey


def describe_key(role: KeyRole, key: VerifyingKey) -> PublicKey:
    """Return the published form of `key`: its id is the SHA-256 of the SPKI DER."""
    return PublicKey(
        role=role,
        algorithm=_algorithm_of(key, place=f"the {role} key"),
        key_id=_key_id(key),
        pem=key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii"),
    )


@lru_cache(maxsize=256)
def verifying_key(published: PublicKey) -> VerifyingKey:
    """Return the key behind a published one, after checking that its fields agree.

    Raises:
        MalformedDocument: when the PEM is no such key, or id or algorithm are another key's.

    """
    place = f"published {published.role} key {published.key_id[:16]}"
    try:
        key = load_pem_public_key(published.pem.encode("utf-8"))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise MalformedDocument(f"{place}: not a PEM public key") from error
    if not isinstance(key, ec.EllipticCurvePublicKey | Ed25519PublicKey):
        raise MalformedDocument(f"{place}: neither ECDSA P-256 nor Ed25519")
    if _algorithm_of(key, place=place) != published.algorithm:
        raise MalformedDocument(f"{place}: not the {published.algorithm} key that it claims to be")
    if _key_id(key) != published.key_id:
        raise MalformedDocument(f"{place}: the id is not the SHA-256 of this key")
    return key


def verify_signature(
    published: PublicKey, *, message: bytes, signature: bytes, source: str
) -> None:
    """Check one signature over `message`.

    Raises:
        ClaimDoesNotHold: when it is not by this key over these bytes.

    """
    key = verifying_key(published)
    try:
        match key:
            case ec.EllipticCurvePublicKey():
                key.verify(signature, message, ec.ECDSA(SHA256()))
            case Ed25519PublicKey():
                key.verify(signature, message)
            case _:
                assert_never(key)
    except InvalidSignature as error:
        raise ClaimDoesNotHold(
            f"{source}: the signature is not by the {published.role} key "
            f"{published.key_id[:16]} over these bytes"
        ) from error


def verify_envelope(
    envelope: Envelope, *, keys: tuple[PublicKey, ...], payload_type: str, source: str
) -> PublicKey:
    """Check every signature that one of `keys` made; return the first such key.

    Signatures by other keys (an auditor's countersignature) are left alone.

    Raises:
        ClaimDoesNotHold: when the type differs, none of `keys` signed, or a signature is false.

    """
    if envelope.payload_type != payload_type:
        shown = escape_untrusted(envelope.payload_type, 80)
        raise ClaimDoesNotHold(f"{source}: the payload type is {shown}, expected {payload_type}")
    by_id = {key.key_id: key for key in keys}
    signers = []
    for signature in envelope.signatures:
        if signature.key_id in by_id:
            key = by_id[signature.key_id]
            verify_signature(
                key, message=envelope.signed_bytes(), signature=signature.signature, source=source
            )
            signers.append(key)
    if not signers:
        ids = ", ".join(escape_untrusted(item.key_id, 16) for item in envelope.signatures[:3])
        raise ClaimDoesNotHold(f"{source}: signed by {ids}, which is none of the published keys")
    return signers[0]


def _key_id(key: VerifyingKey) -> str:
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _algorithm_of(key: VerifyingKey, *, place: str) -> KeyAlgorithm:
    if isinstance(key, Ed25519PublicKey):
        return "ed25519"
    if isinstance(key.curve, ec.SECP256R1):
        return "ecdsa-p256"
    raise MalformedDocument(f"{place}: the curve is {key.curve.name}, expected P-256")
