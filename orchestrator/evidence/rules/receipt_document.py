"""The receipt's document: how a run's statements and their proofs are written down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from manifests.digests import Sha256Hex
from manifests.encoding import parse_json_object, readable_json
from manifests.errors import MalformedDocument
from manifests.names import RunId
from manifests.statements import KeyRole
from manifests.validation import Listed, Place, StrictDocument, validate_document
from orchestrator.ledger.rules.entries import Entry
from orchestrator.ledger.rules.keyset import Keyset

MAX_RECEIPT_BYTES = 16_000_000
"""A run has a dozen statements of at most 64 KiB; rescoring adds rows."""
_MAX_PROOF = 63
_MAX_STATEMENTS = 2000


def _whole_characters(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("half of a surrogate pair is no character")
    return text


_Exact = Annotated[str, AfterValidator(_whole_characters)]
"""Text that stands for bytes: it has a UTF-8 form."""


class ReceiptStatement(StrictDocument):
    """One leaf of the log with its audit path."""

    sequence: int = Field(ge=0)
    envelope: _Exact
    """The leaf's exact bytes: the DSSE envelope's JSON as text."""
    proof: Annotated[tuple[Sha256Hex, ...], Listed, Field(max_length=_MAX_PROOF)]
    """The audit path, the leaf's sibling first, in hex."""


class ReceiptKey(StrictDocument):
    """A published key, repeated from the statements so that other tools find it."""

    role: KeyRole
    algorithm: Literal["ecdsa-p256", "ed25519"]
    key_id: Sha256Hex
    pem: str
    since: int = Field(ge=0)
    """The first statement that it may sign."""


class Receipt(StrictDocument):
    """The document as it is written."""

    format: Literal["piste-receipt/1"]
    origin: str
    run_id: RunId
    checkpoint: _Exact
    """The signed note (C2SP) that every audit path leads to."""
    keys: Annotated[tuple[ReceiptKey, ...], Listed]
    statements: Annotated[
        tuple[ReceiptStatement, ...], Listed, Field(min_length=1, max_length=_MAX_STATEMENTS)
    ]


def render_receipt(
    run_id: str,
    *,
    checkpoint: bytes,
    keyset: Keyset,
    proven: Iterable[tuple[Entry, Sequence[bytes]]],
) -> bytes:
    """Return the receipt's file; `proven` pairs each entry with its audit path."""
    receipt = Receipt(
        format="piste-receipt/1",
        origin=keyset.origin,
        run_id=run_id,
        checkpoint=checkpoint.decode("utf-8"),
        keys=published_keys(keyset),
        statements=tuple(
            ReceiptStatement(
                sequence=entry.sequence,
                envelope=entry.envelope.decode("utf-8"),
                proof=tuple(digest.hex() for digest in proof),
            )
            for entry, proof in proven
        ),
    )
    return readable_json(receipt.model_dump(mode="json"))


def parse_receipt(data: bytes, *, source: str) -> Receipt:
    """Read a receipt strictly; nothing in it is verified yet.

    Raises:
        MalformedDocument: with `source` and the first field that is wrong.

    """
    if len(data) > MAX_RECEIPT_BYTES:
        raise MalformedDocument(
            f"{source}: {len(data)} bytes, a receipt has at most {MAX_RECEIPT_BYTES}"
        )

    def place(_: Place) -> str:
        return source

    return validate_document(Receipt, parse_json_object(data, source=source), prefix=place)


def published_keys(keyset: Keyset) -> tuple[ReceiptKey, ...]:
    """Return every key of the log with the position from which on it signs."""
    return tuple(
        ReceiptKey(**period.key.model_dump(), since=period.since) for period in keyset.periods
    )
