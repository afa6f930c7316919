"""Private keys, as the ledger and the run folder need them: they sign, and are never seen."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from manifests.errors import RefusedByPolicy
from manifests.statements import KeyRole, PublicKey


class Signer(Protocol):
    """One private key."""

    @property
    def public_key(self) -> PublicKey:
        """Return the published form: role, algorithm, id and PEM."""

    def sign(self, message: bytes) -> bytes:
        """Sign `message`: DER of ECDSA P-256 with SHA-256, or Ed25519's 64 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeys:
    """The private keys that this host holds. A run host may lack the scorer's."""

    run: Signer | None = None
    scorer: Signer | None = None
    log: Signer | None = None

    def signer(self, role: KeyRole) -> Signer:
        """Return the key of `role`.

        Raises:
            RefusedByPolicy: when this host does not hold it.

        """
        signer = {"run": self.run, "scorer": self.scorer, "log": self.log}[role]
        if signer is None:
            raise RefusedByPolicy(
                f"this host holds no {role} key, which has to sign this; "
                f"do it on a host that has keys/{role}.pem"
            )
        return signer

    def held(self) -> tuple[PublicKey, ...]:
        """Return the published forms of the keys that are here."""
        return tuple(
            signer.public_key for signer in (self.run, self.scorer, self.log) if signer is not None
        )


class KeyFiles(Protocol):
    """The files of this host's private keys, as a rotation changes them."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the lock on the key files; the kernel lets go when the process dies.

        Raises:
            RefusedByPolicy: another process is changing them.

        """

    def prepare(self, role: KeyRole) -> PublicKey:
        """Make the role's next key beside the present one, on the disk when this returns."""

    def prepared(self) -> Mapping[KeyRole, PublicKey]:
        """Return the next keys that are prepared and not in place yet."""

    def install(self, role: KeyRole) -> None:
        """Put the prepared key into the present one's place, in one step that destroys the old."""

    def discard(self, role: KeyRole) -> None:
        """Remove whatever was prepared for `role`, half-written files included."""
