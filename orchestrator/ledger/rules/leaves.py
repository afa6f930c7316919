"""From a statement to the leaf that is signed and logged, and back with every check."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from manifests.dsse import (
    Envelope,
    Signature,
    parse_envelope,
    pre_authentication_encoding,
    render_envelope,
)
from manifests.encoding import canonical_json, parse_json
from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.statements import PAYLOAD_TYPE, STATEMENT, Statement, WorkspaceCreated
from manifests.text import escape_untrusted
from orchestrator.keys.rules.signatures import verify_envelope
from orchestrator.ledger.rules.entries import Entry, StoredLeaf, stored_leaf
from orchestrator.ledger.rules.keyset import Keyset, begin_keyset

MAX_LEAF_BYTES = 65_535
"""An entry bundle of C2SP tlog-tiles gives a leaf's length in 16 bits."""

Sign = Callable[[bytes], bytes]


def encode_statement(statement: Statement) -> bytes:
    """Return the payload: the statement's canonical JSON.

    Raises:
        MalformedDocument: when it holds what JSON cannot, or its own rules are broken.

    """
    try:
        payload = canonical_json(statement.model_dump(mode="json"))
        STATEMENT.validate_json(payload, strict=True)
    except (PydanticSerializationError, ValidationError, ValueError) as error:
        reason = escape_untrusted(str(error), 300)
        raise MalformedDocument(f"{statement.kind} statement cannot be logged: {reason}") from error
    return payload


def seal_statement(statement: Statement, *, key_id: str, sign: Sign) -> bytes:
    """Return the leaf: the DSSE envelope of a statement whose sequence is set, signed by one key.

    Raises:
        MalformedDocument: when the leaf would be larger than a published log can hold.

    """
    payload = encode_statement(statement)
    signature = sign(pre_authentication_encoding(PAYLOAD_TYPE, payload))
    leaf = render_envelope(
        Envelope(
            payload=payload,
            payload_type=PAYLOAD_TYPE,
            signatures=(Signature(key_id=key_id, signature=signature),),
        )
    )
    if len(leaf) > MAX_LEAF_BYTES:
        raise MalformedDocument(
            f"{statement.kind} statement: {len(leaf)} bytes when signed, "
            f"at most {MAX_LEAF_BYTES} fit into the log"
        )
    return leaf


def parse_statement(payload: bytes, *, source: str) -> Statement:
    """Read one statement strictly, in its one canonical form.

    Raises:
        MalformedDocument: with `source` and what is wrong.

    """
    if canonical_json(parse_json(payload, source=source)) != payload:
        raise MalformedDocument(f"{source}: the statement is not in canonical form")
    try:
        return STATEMENT.validate_json(payload, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = escape_untrusted(".".join(str(part) for part in first["loc"]), 80)
        raise MalformedDocument(f"{source}: {field}: {first['msg']}") from error


def open_leaf(leaf: bytes, *, sequence: int, keyset: Keyset | None) -> Entry:
    """Verify one leaf at its position and return it as an entry.

    The bytes are verified first, and then those bytes are read. `keyset` holds the keys published
    before `sequence` (later ones do no harm); it is None only for statement 0, which publishes the
    key that signs it.

    Raises:
        MalformedDocument: when envelope or statement break their format.
        ClaimDoesNotHold: when signature, signing key or position are wrong.

    """
    source = f"statement {sequence}"
    envelope = parse_envelope(leaf, source=source)
    if keyset is None:
        keyset = _keyset_of_first(envelope, source=source)
    signer = verify_envelope(
        envelope, keys=keyset.published(), payload_type=PAYLOAD_TYPE, source=source
    )
    statement = parse_statement(envelope.payload, source=source)
    if statement.sequence != sequence:
        raise ClaimDoesNotHold(f"{source}: it says that it is statement {statement.sequence}")
    expected = keyset.signer_at(statement, sequence)
    if len(envelope.signatures) != 1 or signer.key_id != expected.key_id:
        raise ClaimDoesNotHold(
            f"{source}: a {statement.kind} must be signed by the {expected.role} key "
            f"{expected.key_id[:16]} alone, and is by {signer.role} key {signer.key_id[:16]}"
        )
    return Entry(sequence=sequence, statement=statement, envelope=leaf)


def open_stored_leaf(leaf: StoredLeaf, *, keyset: Keyset | None) -> Entry:
    """Verify a leaf from a store, its columns included.

    Raises:
        ClaimDoesNotHold: also when a column differs from the signed statement.

    """
    entry = open_leaf(leaf.envelope, sequence=leaf.sequence, keyset=keyset)
    if stored_leaf(leaf.sequence, entry.statement, leaf.envelope) != leaf:
        raise ClaimDoesNotHold(
            f"statement {leaf.sequence}: the store's columns differ from what was signed"
        )
    return entry


def _keyset_of_first(envelope: Envelope, *, source: str) -> Keyset:
    statement = parse_statement(envelope.payload, source=source)
    if not isinstance(statement, WorkspaceCreated):
        raise ClaimDoesNotHold(f"{source}: the log does not begin with workspace-created")
    return begin_keyset(statement)
