"""The append-only log of signed statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from manifests.statements import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One leaf of the log: the statement and the exact envelope bytes that were signed."""

    sequence: int
    statement: Statement
    envelope: bytes


Decide = Callable[[Sequence[Entry]], Statement]
"""Looks at the scope's history and returns the statement to append, or raises a refusal."""


class Ledger(Protocol):
    """Signed statements in an RFC 6962 tree. Appending is the only way to write."""

    def append(self, statement: Statement) -> Entry:
        """Sign and append one statement; durable when this returns."""

    def decide(
        self,
        decide: Decide,
        *,
        edition: str | None = None,
        team: str | None = None,
        run_id: str | None = None,
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

    def size(self) -> int:
        """Return the number of leaves."""

    def checkpoint(self) -> bytes:
        """Return the signed note (C2SP) over the present tree."""

    def inclusion_proof(self, sequence: int) -> tuple[bytes, ...]:
        """Return the RFC 6962 audit path of a leaf in the present tree."""

    def consistency_proof(self, older_size: int) -> tuple[bytes, ...]:
        """Return the RFC 6962 proof between an older tree and the present one."""
