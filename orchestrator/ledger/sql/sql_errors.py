"""Say what a database's error means here: place, fact, bound and remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from manifests.errors import DiskFull, MalformedDocument, PisteError, PlatformFault
from manifests.text import escape_untrusted

BUSY_TIMEOUT_S = 30

_REMEDIES: tuple[tuple[str, type[PisteError], str], ...] = (
    (
        "SQLITE_BUSY",
        PlatformFault,
        (
            f"another process held the ledger for over {BUSY_TIMEOUT_S} s; "
            "see who has it open, then run the command again"
        ),
    ),
    ("SQLITE_LOCKED", PlatformFault, "the ledger is locked; run the command again"),
    (
        "SQLITE_READONLY_ROLLBACK",
        PlatformFault,
        (
            "a killed command left a journal beside it, and this user may not take back what it "
            "began; read it as its owner, or copy the ledger and its -journal somewhere writable"
        ),
    ),
    (
        "SQLITE_READONLY",
        PlatformFault,
        "the ledger cannot be written; make the file and its folder writable for this user",
    ),
    (
        "SQLITE_FULL",
        DiskFull,
        (
            "no space is left for the ledger, and nothing was appended; "
            "free some disk space and run the command again"
        ),
    ),
    (
        "SQLITE_CANTOPEN",
        PlatformFault,
        (
            "the ledger cannot be opened; "
            "check that it exists and that its folder is writable for this user"
        ),
    ),
    ("SQLITE_PERM", PlatformFault, "this user may not open the ledger"),
    ("SQLITE_IOERR", PlatformFault, "the disk under the ledger failed; nothing was appended"),
    ("SQLITE_CORRUPT", MalformedDocument, "the ledger file is damaged; restore a backup"),
    (
        "SQLITE_NOTADB",
        MalformedDocument,
        "this is not a ledger file; create a workspace with: piste init DIR",
    ),
)

_POSTGRES_STATES = {  # PostgreSQL manual, appendix A
    "55P03": "SQLITE_BUSY",  # lock_not_available: lock_timeout ran out
    "25006": "SQLITE_READONLY",  # read_only_sql_transaction
    "42501": "SQLITE_PERM",  # insufficient_privilege
    "53100": "SQLITE_FULL",  # disk_full
    "58030": "SQLITE_IOERR",  # io_error
    "XX001": "SQLITE_CORRUPT",  # data_corrupted
}


@contextmanager
def ledger_errors(place: str) -> Iterator[None]:
    """Turn every database error inside into a PisteError that names `place` and the remedy."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _translate(error, place) from error


def _cause_name(cause: BaseException | None) -> str:
    """Return SQLite's name of the error, for a PostgreSQL state the one that means the same."""
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorname", "") or ""
    return _POSTGRES_STATES.get(getattr(cause, "sqlstate", None) or "", "")


def _translate(error: SQLAlchemyError, place: str) -> PisteError:
    cause = error.orig if isinstance(error, DBAPIError) else None
    name = _cause_name(cause)
    for prefix, kind, remedy in _REMEDIES:
        if name.startswith(prefix):
            return kind(f"{place}: {remedy}")
    shown = escape_untrusted(str(cause or error), 300)
    return PlatformFault(f"{place}: the ledger's database failed: {shown}")
