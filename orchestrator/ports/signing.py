"""Private keys, as the ledger and the run folder need them: they sign, and are never seen."""

from __future__ import annotations

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
