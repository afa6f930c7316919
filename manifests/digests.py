"""SHA-256 digests in their two spellings: bare hex for files, `sha256:…` for OCI content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import StringConstraints

Sha256Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""64 lower-case hex digits: the digest of a file's bytes."""

OciDigest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""`sha256:` and 64 lower-case hex digits: the digest of an OCI index, manifest, config or layer."""

_OCI_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


def sha256_hex(data: bytes | bytearray | memoryview) -> str:
    """Return the SHA-256 of `data` as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_of_chunks(chunks: Iterable[bytes]) -> str:
    """Return the SHA-256 of the concatenated `chunks`, which are read once."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def oci_digest(data: bytes) -> str:
    """Return the OCI spelling of the SHA-256 of `data`."""
    return f"sha256:{sha256_hex(data)}"


def is_oci_digest(text: str) -> bool:
    """Tell whether `text` is `sha256:` and 64 lower-case hex digits, nothing else."""
    return _OCI_DIGEST.fullmatch(text) is not None
