"""Identity files under a passphrase that is quick to try: the age format with little work.

`age -p` and pyrage choose a work factor that costs about a second, which is right for people and
slow for tests. The format (C2SP age.md, scrypt recipient) says the factor in the file, and readers
take smaller ones; so this writes the same stanza with N = 2^10, out of primitives alone.
"""

from __future__ import annotations

import base64
import hmac
import os

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

_LOG_N = 10


def protect_lightly(identity_file: bytes, secret: str) -> bytes:
    """Return an age file that opens with the passphrase; of at most one chunk, 64 KiB."""
    file_key, salt, nonce = os.urandom(16), os.urandom(16), os.urandom(16)
    label = b"age-encryption.org/v1/scrypt" + salt
    wrap_key = Scrypt(salt=label, length=32, n=2**_LOG_N, r=8, p=1).derive(secret.encode())
    body = ChaCha20Poly1305(wrap_key).encrypt(bytes(12), file_key, None)
    header = b"age-encryption.org/v1\n-> scrypt %s %d\n%s\n---" % (
        _base64(salt),
        _LOG_N,
        _base64(body),
    )
    mac = hmac.digest(_derived(file_key, salt=b"", info=b"header"), header, "sha256")
    payload_key = _derived(file_key, salt=nonce, info=b"payload")
    last_chunk = bytes(11) + b"\x01"
    payload = ChaCha20Poly1305(payload_key).encrypt(last_chunk, identity_file, None)
    return header + b" " + _base64(mac) + b"\n" + nonce + payload


def _derived(key: bytes, *, salt: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=info).derive(key)


def _base64(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")
