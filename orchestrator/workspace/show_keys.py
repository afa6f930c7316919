"""`piste keys`: which keys sign, since when, which are here, and who opens what is sealed."""

from __future__ import annotations

from dataclasses import dataclass

from manifests.statements import PublicKey
from orchestrator.keys.rules.recipients import SealingPlan
from orchestrator.keys.sealing_port import Keyring, Purpose
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.ports import Ledger
from orchestrator.ledger.rules.checkpoint import note_verifier
from orchestrator.ledger.rules.keyset import Keyset


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeyRow:
    """A published key."""

    key: PublicKey
    since: int
    """The first statement that it may sign."""
    until: int | None
    """The statement that retired it, which it signed itself; None while it is in force."""
    held: bool
    """Whether this host has the private half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealingRow:
    """Who opens the clips, or the labels, of the next edition."""

    purpose: Purpose
    plan: SealingPlan
    identity_files: tuple[str, ...]
    """The identity files of this host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    """All keys of a workspace."""

    origin: str
    log_verifier: str
    """The log's key as a C2SP verifier key, for tools that check the signed note."""
    signing: tuple[SigningKeyRow, ...]
    sealing: tuple[SealingRow, ...]


def show_keys(*, ledger: Ledger, signing: SigningKeys, keyring: Keyring) -> KeyReport:
    """Return the published keys, retired ones included, and the recipients. Opens no identity."""
    keyset = ledger.keyset()
    held = {key.key_id for key in signing.held()}
    return KeyReport(
        origin=keyset.origin,
        log_verifier=note_verifier(keyset.origin, keyset.current("log")),
        signing=tuple(
            SigningKeyRow(
                key=period.key,
                since=period.since,
                until=_retired_at(period.key, keyset),
                held=period.key.key_id in held,
            )
            for period in keyset.periods
        ),
        sealing=tuple(
            SealingRow(
                purpose=purpose,
                plan=keyring.plan(purpose),
                identity_files=keyring.identity_files(purpose),
            )
            for purpose in Purpose
        ),
    )


def _retired_at(key: PublicKey, keyset: Keyset) -> int | None:
    of_role = [period for period in keyset.periods if period.key.role == key.role]
    place = [period.key.key_id for period in of_role].index(key.key_id)
    return of_role[place + 1].since - 1 if place + 1 < len(of_role) else None
