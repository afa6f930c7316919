"""Who can open what is sealed: plans of age recipients, and the document that lists them. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from manifests.encoding import readable_json
from manifests.validation import parse_json_document

AgeRecipient = Annotated[str, StringConstraints(pattern=r"^age1[02-9ac-hj-np-z]{58}$")]
"""An age X25519 recipient: public, safe to print."""


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


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


def encode_recipients(recipients: SealRecipients) -> bytes:
    """Return the bytes of keys/recipients.json, the recipients that the next edition gets."""
    return readable_json(recipients.model_dump(mode="json"))


def parse_recipients(data: bytes, *, source: str) -> SealRecipients:
    """Parse keys/recipients.json.

    Raises:
        MalformedDocument: with `source` and the first field that is wrong.

    """
    return parse_json_document(SealRecipients, data, source=source)
