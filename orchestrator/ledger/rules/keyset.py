"""The published keys, folded over the log: which key may sign which statement, and when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from manifests.errors import ClaimDoesNotHold
from manifests.statements import (
    SCORER_KINDS,
    KeyRole,
    KeyRotated,
    PublicKey,
    Statement,
    WorkspaceCreated,
)
from orchestrator.keys.rules.signatures import verifying_key

ROLES: tuple[KeyRole, ...] = ("run", "scorer", "log")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPeriod:
    """A key, and the sequence of the first statement that it may sign."""

    since: int
    key: PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyset:
    """All keys that the log published so far, the oldest first."""

    origin: str
    periods: tuple[KeyPeriod, ...]

    def key_at(self, role: KeyRole, sequence: int) -> PublicKey:
        """Return the key of `role` in force at position `sequence` of the log."""
        return [
            period.key
            for period in self.periods
            if period.key.role == role and period.since <= sequence
        ][-1]

    def current(self, role: KeyRole) -> PublicKey:
        """Return the newest key of `role`."""
        return [period.key for period in self.periods if period.key.role == role][-1]

    def published(self) -> tuple[PublicKey, ...]:
        """Return every key, retired ones included, in the order of publication."""
        return tuple(period.key for period in self.periods)

    def find(self, key_id: str) -> PublicKey | None:
        """Return the published key with this id, or None."""
        return next((key for key in self.published() if key.key_id == key_id), None)

    def role_for(self, statement: Statement) -> KeyRole:
        """Return whose signature `statement` needs: a rotation is signed by the key that goes.

        Raises:
            ClaimDoesNotHold: when a rotation retires a key that was never published.

        """
        if isinstance(statement, KeyRotated):
            old = self.find(statement.old_key_id)
            if old is None:
                raise ClaimDoesNotHold(
                    f"key {statement.old_key_id[:16]} cannot be rotated: it was never published"
                )
            return old.role
        return "scorer" if statement.kind in SCORER_KINDS else "run"

    def signer_at(self, statement: Statement, sequence: int) -> PublicKey:
        """Return the only key that may sign `statement` at `sequence`."""
        return self.key_at(self.role_for(statement), sequence)

    def rotated(self, statement: KeyRotated, sequence: int) -> Keyset:
        """Return the keyset after a rotation at `sequence`; the new key signs from the next on.

        Raises:
            ClaimDoesNotHold: when the old key is not in force, the new one is not of the same
                role and algorithm, or its id was published before.

        """
        role, new = self.role_for(statement), statement.new_key
        old = self.key_at(role, sequence)
        place = f"rotation of the {role} key at statement {sequence}"
        if statement.old_key_id != old.key_id:
            raise ClaimDoesNotHold(f"{place}: key {statement.old_key_id[:16]} is not in force")
        if (new.role, new.algorithm) != (old.role, old.algorithm):
            raise ClaimDoesNotHold(
                f"{place}: the new key is a {new.algorithm} {new.role} key, "
                f"expected {old.algorithm} {old.role}"
            )
        if self.find(new.key_id) is not None:
            raise ClaimDoesNotHold(f"{place}: key {new.key_id[:16]} was published before")
        verifying_key(new)
        return Keyset(
            origin=self.origin, periods=(*self.periods, KeyPeriod(since=sequence + 1, key=new))
        )

    def after(self, statement: Statement, sequence: int) -> Keyset:
        """Return the keyset after any statement."""
        return self.rotated(statement, sequence) if isinstance(statement, KeyRotated) else self


def begin_keyset(statement: WorkspaceCreated) -> Keyset:
    """Return the keys that the log's first statement publishes: one of each role, all apart.

    Raises:
        ClaimDoesNotHold: when a role is missing, stands twice or has a key of the wrong kind.

    """
    roles = sorted(key.role for key in statement.keys)
    if roles != sorted(ROLES) or len({key.key_id for key in statement.keys}) != len(ROLES):
        raise ClaimDoesNotHold("statement 0: expected one run, one scorer and one log key, apart")
    for key in statement.keys:
        verifying_key(key)
        expected = "ed25519" if key.role == "log" else "ecdsa-p256"
        if key.algorithm != expected:
            raise ClaimDoesNotHold(
                f"statement 0: the {key.role} key is {key.algorithm}, expected {expected}"
            )
    return Keyset(
        origin=statement.origin,
        periods=tuple(KeyPeriod(since=0, key=key) for key in statement.keys),
    )


def fold_keyset(statements: Iterable[Statement]) -> Keyset:
    """Return the keyset of a log, given at least its workspace-created and key-rotated statements.

    Raises:
        ClaimDoesNotHold: when the first is not workspace-created, or a rotation is not allowed.

    """
    keyset: Keyset | None = None
    for statement in statements:
        if keyset is not None:
            keyset = keyset.after(statement, statement.sequence)
        elif isinstance(statement, WorkspaceCreated):
            keyset = begin_keyset(statement)
        else:
            break
    if keyset is None:
        raise ClaimDoesNotHold("the log does not begin with a workspace-created statement")
    return keyset
