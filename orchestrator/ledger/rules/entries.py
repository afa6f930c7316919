"""One statement of the log as read, as stored, and the scope that selects some of them."""

from __future__ import annotations

from dataclasses import dataclass

from manifests.statements import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One leaf of the log: the statement and the exact envelope bytes that were signed."""

    sequence: int
    statement: Statement
    envelope: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLeaf:
    """One leaf as a store keeps it: the envelope, and columns to find it by. Nothing is trusted."""

    sequence: int
    kind: str
    edition: str | None
    team: str | None
    run_id: str | None
    envelope: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Selects the entries that match every given field; none given: all."""

    edition: str | None = None
    team: str | None = None
    run_id: str | None = None
    kind: str | None = None

    def matches(self, leaf: StoredLeaf) -> bool:
        """Tell whether `leaf` is in this scope."""
        return all(
            wanted is None or wanted == stored
            for wanted, stored in (
                (self.edition, leaf.edition),
                (self.team, leaf.team),
                (self.run_id, leaf.run_id),
                (self.kind, leaf.kind),
            )
        )


def stored_leaf(sequence: int, statement: Statement, envelope: bytes) -> StoredLeaf:
    """Return the leaf of `statement`, its columns taken from the statement itself."""
    return StoredLeaf(
        sequence=sequence,
        kind=statement.kind,
        edition=getattr(statement, "edition", None),
        team=getattr(statement, "team", None),
        run_id=getattr(statement, "run_id", None),
        envelope=envelope,
    )
