"""The append-only log of signed statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from manifests.statements import Statement
from orchestrator.ledger.rules.entries import Entry, StoredLeaf
from orchestrator.ledger.rules.keyset import Keyset

__all__ = ["Decide", "Entry", "Ledger", "StoredLeaf"]

Decide = Callable[[Sequence[Entry]], Statement]
"""Looks at the scope's history and returns the statement to append, or raises a refusal."""


class Ledger(Protocol):
    """Signed statements in an RFC 6962 tree. Appending is the only way to write.

    A statement that the log's own rules forbid (a second start of a run, a fourth run, an edition
    sealed twice; see `orchestrator.ledger.rules.log_state`) is refused inside the transaction.
    """

    def append(self, statement: Statement) -> Entry:
        """Sign and append one statement; durable when this returns."""

    def decide(
        self,
        decide: Decide,
        *,
        edition: str | None = None,
        team: str | None = None,
        run_id: str | None = None,
        kind: str | None = None,
    ) -> Entry:
        """Append what `decide` returns, in one exclusive transaction.

        `decide` sees the entries that match every given scope, in order; nobody else appends
        between its look and the append. An exception of `decide` leaves the ledger as it was.
        """

    def entries(
        self,
        *,
        edition: str | None = None,
        team: str | None = None,
        run_id: str | None = None,
        kind: str | None = None,
    ) -> Iterator[Entry]:
        """Yield the matching entries in order; envelopes' signatures are checked on the way."""

    def stored_leaves(self) -> Iterator[StoredLeaf]:
        """Yield every leaf as it is stored, unverified, for an audit; low memory."""

    def size(self) -> int:
        """Return the number of leaves."""

    def keyset(self) -> Keyset:
        """Return the keys that the log has published so far."""

    def checkpoint(self) -> bytes:
        """Return the signed note (C2SP) over the present tree."""

    def node(self, level: int, index: int) -> bytes:
        """Return the hash of a complete subtree (see `orchestrator.ledger.rules.merkle`)."""

    def inclusion_proof(self, sequence: int, size: int | None = None) -> tuple[bytes, ...]:
        """Return the RFC 6962 audit path of a leaf in the tree of `size` (default: present)."""

    def consistency_proof(
        self, older_size: int, newer_size: int | None = None
    ) -> tuple[bytes, ...]:
        """Return the RFC 6962 proof between an older tree and a newer (default: present) one."""
