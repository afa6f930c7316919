"""Encrypt to public recipients, open with identities that few hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

from manifests.errors import PlatformFault, RefusedByPolicy
from orchestrator.keys.rules.recipients import SealingPlan


class Purpose(StrEnum):
    """What an identity opens. A host that runs entrants holds no label identity."""

    CLIPS = "clips"
    LABELS = "labels"


class IdentityMissing(RefusedByPolicy):
    """This host holds no identity for the purpose; nothing was spent."""


class WrongIdentity(PlatformFault):
    """None of the identities at hand opens the file."""


class SealedFileChanged(PlatformFault):
    """The ciphertext was changed or cut short after it was sealed."""


class Sealer(Protocol):
    """Encrypts. Needs no secret."""

    def seal(self, plain: bytes, plan: SealingPlan) -> bytes:
        """Return `plain` as age, one layer per layer of `plan`, the first innermost."""


class BulkSealer(Protocol):
    """Encrypts what is large, and many of it; threads share it. Needs no secret."""

    def seal_to(
        self, write: Callable[[memoryview], None], parts: Sequence[bytes], plan: SealingPlan
    ) -> str:
        """Hand the joined `parts` as age to `write`, and return the SHA-256 of that in hex.

        What `write` gets is void when it returns.
        """


class Unsealer(Protocol):
    """Decrypts with the identities of one purpose."""

    def recipients(self) -> tuple[str, ...]:
        """Return the public recipients of the identities at hand."""

    def open_sealed(self, sealed: bytes, *, layers: int, source: str) -> bytes:
        """Return the plaintext of a file sealed in `layers` layers; nothing of it on a failure.

        Raises:
            WrongIdentity: no identity opens a layer.
            SealedFileChanged: the file is not what was sealed; `source` names it.

        """


class Keyring(Protocol):
    """The identities that this host holds, and the recipients that the next edition gets."""

    def plan(self, purpose: Purpose) -> SealingPlan:
        """Return the recipients for `purpose`."""

    def holds(self, purpose: Purpose) -> bool:
        """Tell whether an identity file for `purpose` is there, without reading it."""

    def identity_files(self, purpose: Purpose) -> tuple[str, ...]:
        """Return the names of the identity files for `purpose`, without reading them."""

    def unsealer(self, purpose: Purpose) -> Unsealer:
        """Load the identities for `purpose`. Raises IdentityMissing with the next step."""
