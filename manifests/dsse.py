"""DSSE envelopes (secure-systems-lab/dsse, protocol version 1): bytes in, bytes out, no keys."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from manifests.encoding import Json, canonical_json, parse_json_object
from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One signature over the pre-authentication encoding, and the id of the key that made it."""

    key_id: str
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The payload's exact bytes, their type, and who signed both."""

    payload: bytes
    payload_type: str
    signatures: tuple[Signature, ...]

    def signed_bytes(self) -> bytes:
        """Return the bytes that every signature covers."""
        return pre_authentication_encoding(self.payload_type, self.payload)


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return `DSSEv1 len(type) type len(payload) payload`, lengths in bytes (protocol: PAE)."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def render_envelope(envelope: Envelope) -> bytes:
    """Encode as canonical JSON with standard, padded base64."""
    return canonical_json(
        {
            "payload": base64.b64encode(envelope.payload).decode("ascii"),
            "payloadType": envelope.payload_type,
            "signatures": [
                {
                    "keyid": signature.key_id,
                    "sig": base64.b64encode(signature.signature).decode("ascii"),
                }
                for signature in envelope.signatures
            ],
        }
    )


def parse_envelope(data: bytes, *, source: str) -> Envelope:
    """Read one envelope strictly; nothing in it is trusted yet.

    Stricter than the protocol, which lets a reader be generous: exactly the protocol's fields,
    standard base64 in its only spelling, at least one signature, a key id with each.

    Raises:
        MalformedDocument: with `source` and the field.

    """
    document = parse_json_object(data, source=source)
    _require_fields(document, {"payload", "payloadType", "signatures"}, source=source)
    signatures = document["signatures"]
    if not isinstance(signatures, list) or not signatures:
        raise MalformedDocument(f"{source}: signatures: expected a list of at least one")
    return Envelope(
        payload=_decode(document["payload"], source=f"{source}: payload"),
        payload_type=_text(document["payloadType"], source=f"{source}: payloadType"),
        signatures=tuple(
            _parse_signature(item, source=f"{source}: signatures[{index}]")
            for index, item in enumerate(signatures)
        ),
    )


def _parse_signature(item: Json, *, source: str) -> Signature:
    if not isinstance(item, dict):
        raise MalformedDocument(f"{source}: expected an object")
    _require_fields(item, {"keyid", "sig"}, source=source)
    return Signature(
        key_id=_text(item["keyid"], source=f"{source}.keyid"),
        signature=_decode(item["sig"], source=f"{source}.sig"),
    )


def _require_fields(document: dict[str, Json], names: set[str], *, source: str) -> None:
    if document.keys() != names:
        odd = ", ".join(sorted(escape_untrusted(name, 40) for name in document.keys() ^ names))
        raise MalformedDocument(f"{source}: missing or unknown fields: {odd}")


def _text(value: Json, *, source: str) -> str:
    if not isinstance(value, str):
        raise MalformedDocument(f"{source}: expected a string")
    return value


def _decode(value: Json, *, source: str) -> bytes:
    text = _text(value, source=source)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedDocument(f"{source}: not standard base64") from error
    if base64.b64encode(data).decode("ascii") != text:
        raise MalformedDocument(f"{source}: base64 in a second spelling of the same bytes")
    return data
