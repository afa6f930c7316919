"""seal.json: what an edition's seal commits to. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from manifests.digests import Sha256Hex
from manifests.encoding import readable_json
from manifests.names import EditionName
from manifests.statements import LabelsCommitment, PublicKey
from manifests.validation import parse_json_document
from orchestrator.keys.rules.recipients import SealRecipients


class SealDocument(BaseModel):
    """seal.json, public from the day of sealing. Its SHA-256 stands in the ledger."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["piste-seal/1"] = "piste-seal/1"
    edition: EditionName
    created: datetime
    edition_sha256: Sha256Hex
    """SHA-256 of edition.yaml."""
    clips: int = Field(ge=1)
    clip_set_sha256: Sha256Hex
    """SHA-256 of the salted clips.sha256, which is published after the edition closes."""
    sealed_sums_sha256: Sha256Hex
    """SHA-256 of sealed.sha256, which lists the ciphertexts."""
    vocabulary_sha256: Sha256Hex | None
    labels: tuple[LabelsCommitment, ...]
    """The label versions that exist at sealing; later ones are `labels-added` statements."""
    profile: str
    profile_sha256: Sha256Hex
    recipients: SealRecipients
    keys: tuple[PublicKey, ...]
    """The published keys of the workspace that sealed."""


def encode_seal(seal: SealDocument) -> bytes:
    """Return seal.json's bytes; the same document gives the same bytes."""
    return readable_json(seal.model_dump(mode="json"))


def parse_seal(data: bytes, *, source: str) -> SealDocument:
    """Parse seal.json.

    Raises:
        MalformedDocument: with `source` and the first field that is wrong.

    """
    return parse_json_document(SealDocument, data, source=source)
