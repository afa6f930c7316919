"""The log's checkpoint: a C2SP signed note (tlog-checkpoint, signed-note) with Ed25519."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.statements import PublicKey
from orchestrator.keys.rules.signatures import verify_signature, verifying_key
from orchestrator.ledger.rules.merkle import HASH_BYTES

MAX_NOTE_BYTES = 1_000_000  # the limit that the signed-note format names
_ED25519 = b"\x01"
_ORIGIN = re.compile(r"[!-*,-~]{1,200}", re.ASCII)
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_SIGNATURE_LINE = re.compile(r"— (?P<name>[^\s+]+) (?P<blob>[A-Za-z0-9+/]+={0,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The tree that a note speaks of."""

    origin: str
    size: int
    root: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSignature:
    """One signature line: who, which key (four bytes of its id), and the signature."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedCheckpoint:
    """A parsed note. Nothing in it is verified yet."""

    checkpoint: Checkpoint
    text: bytes
    signatures: tuple[NoteSignature, ...]


def require_origin(origin: str) -> None:
    """Refuse an origin that cannot name a key: printable ASCII without space or plus, 1 to 200.

    Raises:
        MalformedDocument: with the origin's rule.

    """
    if _ORIGIN.fullmatch(origin) is None:
        raise MalformedDocument(
            f"log origin {origin!r}: expected 1 to 200 printable ASCII characters, no space, no +"
        )


def note_key_id(name: str, published: PublicKey) -> bytes:
    """Return the first four bytes of SHA-256(name ‖ 0x0A ‖ 0x01 ‖ raw Ed25519 key)."""
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + _raw_key(published)).digest()[:4]


def note_verifier(name: str, published: PublicKey) -> str:
    """Return `name+<key id in hex>+<base64 of 0x01 and the key>`, the signed-note verifier key."""
    blob = base64.b64encode(_ED25519 + _raw_key(published)).decode("ascii")
    return f"{name}+{note_key_id(name, published).hex()}+{blob}"


def checkpoint_text(checkpoint: Checkpoint) -> bytes:
    """Return the three signed lines: origin, size and root."""
    root = base64.b64encode(checkpoint.root).decode("ascii")
    return f"{checkpoint.origin}\n{checkpoint.size}\n{root}\n".encode()


def render_checkpoint(
    checkpoint: Checkpoint, *, key: PublicKey, sign: Callable[[bytes], bytes]
) -> bytes:
    """Return the note, signed with the log's key under the origin's name."""
    text = checkpoint_text(checkpoint)
    blob = base64.b64encode(note_key_id(checkpoint.origin, key) + sign(text)).decode("ascii")
    return text + f"\n— {checkpoint.origin} {blob}\n".encode()


def parse_checkpoint(data: bytes, *, source: str) -> SignedCheckpoint:
    """Read one note strictly; extension lines are refused, since this log writes none.

    Raises:
        MalformedDocument: with `source` and the line.

    """
    if len(data) > MAX_NOTE_BYTES:
        raise MalformedDocument(f"{source}: {len(data)} bytes, a note has at most {MAX_NOTE_BYTES}")
    text, separator, signatures = data.partition(b"\n\n")
    if not separator or not signatures.endswith(b"\n"):
        raise MalformedDocument(f"{source}: expected text, an empty line and signature lines")
    lines = _decode(text, source=source).split("\n")
    if len(lines) != 3:
        raise MalformedDocument(f"{source}: {len(lines)} lines of text, expected 3")
    require_origin(lines[0])
    if _SIZE.fullmatch(lines[1]) is None:
        raise MalformedDocument(f"{source}: line 2: expected the tree's size in decimal")
    root = _base64(lines[2], source=f"{source}: line 3")
    if len(root) != HASH_BYTES:
        raise MalformedDocument(f"{source}: line 3: expected a root of {HASH_BYTES} bytes")
    return SignedCheckpoint(
        checkpoint=Checkpoint(origin=lines[0], size=int(lines[1]), root=root),
        text=text + b"\n",
        signatures=tuple(
            _parse_signature_line(line, source=f"{source}: signature line {number}")
            for number, line in enumerate(_decode(signatures, source=source)[:-1].split("\n"), 1)
        ),
    )


def verify_checkpoint(data: bytes, *, key: PublicKey, source: str) -> Checkpoint:
    """Return the checkpoint after verifying its signature by the log's key.

    Signatures of others (witnesses) are left alone.

    Raises:
        MalformedDocument: when it is no such note.
        ClaimDoesNotHold: when the log's key did not sign it.

    """
    note = parse_checkpoint(data, source=source)
    name = note.checkpoint.origin
    key_id = note_key_id(name, key)
    ours = [line for line in note.signatures if (line.name, line.key_id) == (name, key_id)]
    if not ours:
        raise ClaimDoesNotHold(f"{source}: not signed by the log's key {key.key_id[:16]}")
    for line in ours:
        verify_signature(key, message=note.text, signature=line.signature, source=source)
    return note.checkpoint


def _raw_key(published: PublicKey) -> bytes:
    key = verifying_key(published)
    if not isinstance(key, Ed25519PublicKey):
        raise MalformedDocument(f"key {published.key_id[:16]}: a log key is Ed25519")
    return key.public_bytes_raw()


def _parse_signature_line(line: str, *, source: str) -> NoteSignature:
    match = _SIGNATURE_LINE.fullmatch(line)
    if match is None:
        raise MalformedDocument(f"{source}: expected — name base64")
    blob = _base64(match["blob"], source=source)
    if len(blob) < 5:
        raise MalformedDocument(f"{source}: too short to hold a key id and a signature")
    return NoteSignature(name=match["name"], key_id=blob[:4], signature=blob[4:])


def _decode(data: bytes, *, source: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedDocument(f"{source}: not UTF-8 at byte {error.start}") from error


def _base64(text: str, *, source: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedDocument(f"{source}: not standard base64") from error
    if base64.b64encode(data).decode("ascii") != text:
        raise MalformedDocument(f"{source}: base64 in a second spelling of the same bytes")
    return data
