"""seal.json: what an edition's seal commits to, and to whom its parts are encrypted. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from manifests.digests import Sha256Hex
from manifests.encoding import parse_json_object, readable_json
from manifests.errors import MalformedDocument
from manifests.names import EditionName
from manifests.statements import LabelsCommitment, PublicKey
from manifests.text import escape_untrusted

AgeRecipient = Annotated[str, StringConstraints(pattern=r"^age1[02-9ac-hj-np-z]{58}$")]
"""An age X25519 recipient: public, safe to print."""


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_DocumentT = TypeVar("_DocumentT", bound=_Document)


class SealingPlan(_Document):
    """Who can open a sealed file.

    Each layer is one age file; any one of a layer's recipients opens it. `layers[0]` is the
    innermost: with two layers a file is encrypted to the first, then to the second, and whoever
    opens it needs an identity of each (the two-person rule).
    """

    layers: tuple[Annotated[tuple[AgeRecipient, ...], Field(min_length=1, max_length=16)], ...] = (
        Field(min_length=1, max_length=4)
    )

    def missing(self, held: Collection[str]) -> tuple[tuple[str, ...], ...]:
        """Return the layers that no identity of the recipients `held` opens."""
        return tuple(layer for layer in self.layers if not set(layer) & set(held))


def any_of(*recipients: str) -> SealingPlan:
    """Return the plan under which any one of `recipients` opens a file."""
    return SealingPlan(layers=(recipients,))


def both_of(first: str, second: str) -> SealingPlan:
    """Return the two-person plan: encrypt to `first`, then to `second`; both are needed."""
    return SealingPlan(layers=((first,), (second,)))


class SealRecipients(_Document):
    """The recipients of an edition: clips apart from labels, clip order and clip sums' salt."""

    clips: SealingPlan
    labels: SealingPlan


class SealDocument(_Document):
    """seal.json, public from the day of sealing. Its SHA-256 stands in the ledger."""

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
    return _validated(SealDocument, data, source)


def encode_recipients(recipients: SealRecipients) -> bytes:
    """Return the bytes of keys/recipients.json, the recipients that the next edition gets."""
    return readable_json(recipients.model_dump(mode="json"))


def parse_recipients(data: bytes, *, source: str) -> SealRecipients:
    """Parse keys/recipients.json.

    Raises:
        MalformedDocument: with `source` and the first field that is wrong.

    """
    return _validated(SealRecipients, data, source)


def _validated(kind: type[_DocumentT], data: bytes, source: str) -> _DocumentT:
    parse_json_object(data, source=source)  # duplicate keys and NaN are refused here
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        fact = escape_untrusted(f"{place}: {first['msg']}", 200)
        raise MalformedDocument(f"{source}: {fact}") from error
