"""The ledger in SQL: one SQLite file by default, the same code on a PostgreSQL URL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.statements import WorkspaceCreated
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.append import begin_log
from orchestrator.ledger.ledger_store import LedgerTransaction
from orchestrator.ledger.rules.entries import Scope, StoredLeaf
from orchestrator.ledger.rules.merkle import Node
from orchestrator.ledger.sql.schema import (
    HEAD,
    LEAF,
    METADATA,
    NODE,
    SCHEMA_VERSION,
)
from orchestrator.ledger.sql.sql_errors import BUSY_TIMEOUT_S, ledger_errors
from orchestrator.ledger.stored_ledger import StoredLedger

_BEGIN = "piste_begin"


class SqlTransaction:
    """One open transaction on the ledger's tables."""

    def __init__(self, connection: Connection, *, place: str, lock: bool) -> None:
        self._connection = connection
        self._place = place
        self._size, self._checkpoint = self._read_head(lock=lock)

    def size(self) -> int:
        """Return the number of leaves."""
        return self._size

    def checkpoint(self) -> bytes:
        """Return the newest signed note."""
        return self._checkpoint

    def leaves(
        self, scope: Scope, *, after: int = -1, limit: int | None = None
    ) -> Sequence[StoredLeaf]:
        """Return the matching leaves above `after`, in order, through an index."""
        query = select(LEAF).where(LEAF.c.sequence > after).order_by(LEAF.c.sequence).limit(limit)
        for column, wanted in (
            (LEAF.c.edition, scope.edition),
            (LEAF.c.team, scope.team),
            (LEAF.c.run_id, scope.run_id),
            (LEAF.c.kind, scope.kind),
        ):
            if wanted is not None:
                query = query.where(column == wanted)
        return [
            StoredLeaf(
                sequence=row.sequence,
                kind=row.kind,
                edition=row.edition,
                team=row.team,
                run_id=row.run_id,
                envelope=bytes(row.envelope),
            )
            for row in self._connection.execute(query)
        ]

    def node(self, level: int, index: int) -> bytes:
        """Return a complete subtree's hash."""
        query = select(NODE.c.digest).where(NODE.c.level == level, NODE.c.index == index)
        digest = self._connection.execute(query).scalar_one_or_none()
        if digest is None:
            raise MalformedDocument(
                f"{self._place}: node {level}/{index} of the tree is missing; restore a backup"
            )
        return bytes(digest)

    def write(self, leaves: Sequence[StoredLeaf], nodes: Sequence[Node], checkpoint: bytes) -> None:
        """Add leaves and nodes and replace the head."""
        self._connection.execute(insert(LEAF), [_leaf_row(leaf) for leaf in leaves])
        self._connection.execute(insert(NODE), [_node_row(node) for node in nodes])
        self._size, self._checkpoint = self._size + len(leaves), checkpoint
        head = update(HEAD).where(HEAD.c.id == 1)
        self._connection.execute(head.values(size=self._size, checkpoint=checkpoint))

    def _read_head(self, *, lock: bool) -> tuple[int, bytes]:
        query = select(HEAD.c.schema_version, HEAD.c.size, HEAD.c.checkpoint)
        # PostgreSQL: the head's row is the lock of all writers. SQLite: BEGIN IMMEDIATE is.
        row = self._connection.execute(query.with_for_update() if lock else query).one_or_none()
        if row is None:
            raise MalformedDocument(f"{self._place}: not a ledger: it has no head")
        if row.schema_version != SCHEMA_VERSION:
            raise MalformedDocument(
                f"{self._place}: written in ledger format {row.schema_version}, this piste reads "
                f"{SCHEMA_VERSION}; use the piste version that wrote it, or a newer one"
            )
        return row.size, bytes(row.checkpoint)


class SqlLedgerStore:
    """An engine and how to begin a transaction on it."""

    def __init__(self, engine: Engine, *, place: str, read_only: bool = False) -> None:
        self._engine = engine
        self._place = place
        self._lock = "BEGIN" if read_only else "BEGIN IMMEDIATE"

    @property
    def place(self) -> str:
        """The file's path, or the URL without its password."""
        return self._place

    @contextmanager
    def exclusive(self) -> Iterator[LedgerTransaction]:
        """Begin the only writing transaction; wait for others up to the busy timeout."""
        with self._begin(self._lock) as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{BUSY_TIMEOUT_S}s'")
            yield SqlTransaction(connection, place=self._place, lock=True)

    @contextmanager
    def snapshot(self) -> Iterator[LedgerTransaction]:
        """Begin a reading transaction."""
        with self._begin("BEGIN") as connection:
            yield SqlTransaction(connection, place=self._place, lock=False)

    def holds_ledger(self) -> bool:
        """Tell whether the head's table exists."""
        with ledger_errors(self._place), self._engine.connect() as connection:
            return connection.dialect.has_table(connection, HEAD.name)

    @contextmanager
    def creation(self) -> Iterator[LedgerTransaction]:
        """Create the tables and an empty head, and begin the transaction that fills them."""
        with self._begin("BEGIN IMMEDIATE") as connection:
            METADATA.create_all(connection, checkfirst=False)
            head = {"id": 1, "schema_version": SCHEMA_VERSION, "size": 0, "checkpoint": b""}
            connection.execute(insert(HEAD), head)
            yield SqlTransaction(connection, place=self._place, lock=True)

    @contextmanager
    def _begin(self, statement: str) -> Iterator[Connection]:
        with (
            ledger_errors(self._place),
            self._engine.connect() as connection,
            connection.execution_options(**{_BEGIN: statement}).begin(),
        ):
            yield connection


def create_sql_ledger(
    where: Path | str, created: WorkspaceCreated, *, keys: SigningKeys
) -> StoredLedger:
    """Create a ledger that begins with `created`, in one transaction.

    `where` is the path of a SQLite file that does not exist yet, or a database URL.

    Raises:
        RefusedByPolicy: when the file exists, or the database holds a ledger.
        PlatformFault: when it cannot be written.

    """
    if isinstance(where, Path):
        _claim_file(where)
    store = _store(where)
    if store.holds_ledger():
        raise RefusedByPolicy(f"{store.place} holds a ledger already; it is never overwritten")
    try:
        with store.creation() as transaction:
            begin_log(created, keys, transaction)
    except BaseException:
        if isinstance(where, Path):
            where.unlink(missing_ok=True)  # ours: claimed above, and never committed
        raise
    return StoredLedger(store, keys=keys)


def open_sql_ledger(where: Path | str, *, keys: SigningKeys | None = None) -> StoredLedger:
    """Open an existing ledger; without keys it can only be read.

    Raises:
        PlatformFault: when it cannot be opened.
        MalformedDocument: when it is no ledger, damaged, or of another format.

    """
    if isinstance(where, Path) and not where.is_file():
        raise PlatformFault(f"{where}: no ledger is here; create a workspace: piste init DIR")
    store = _store(where, read_only=keys is None)
    _require_ledger(store)
    return StoredLedger(store, keys=keys or SigningKeys())


def sqlite_store(path: Path) -> SqlLedgerStore:
    """Return the store in an existing SQLite file, for reading and writing."""
    return SqlLedgerStore(_sqlite_engine(path), place=str(path))


def _claim_file(path: Path) -> None:
    """Create the empty file, so that of two creators only one goes on."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError as error:
        raise RefusedByPolicy(f"{path} exists; a ledger is never overwritten") from error
    except OSError as error:
        raise PlatformFault(f"{path}: ledger cannot be created: {error.strerror}") from error


def _require_ledger(store: SqlLedgerStore) -> None:
    if not store.holds_ledger():
        raise MalformedDocument(f"{store.place}: not a ledger: the table {HEAD.name} is missing")
    with store.snapshot():
        pass  # reads the head and judges its format


def _store(where: Path | str, *, read_only: bool = False) -> SqlLedgerStore:
    if isinstance(where, Path):
        engine = _sqlite_engine(where, read_only=read_only)
        return SqlLedgerStore(engine, place=str(where), read_only=read_only)
    try:
        url = make_url(where)
        place = url.render_as_string(hide_password=True)
        if url.get_backend_name() == "sqlite":
            path = Path(url.database or "ledger.sqlite")
            engine = _sqlite_engine(path, read_only=read_only)
            return SqlLedgerStore(engine, place=place, read_only=read_only)
        return SqlLedgerStore(
            create_engine(url, isolation_level="READ COMMITTED", poolclass=NullPool), place=place
        )
    except (ArgumentError, NoSuchModuleError) as error:
        raise MalformedDocument(f"ledger URL: {error}") from error
    except ImportError as error:
        raise PlatformFault(
            f"{place}: the database driver {error.name} is missing; install piste[postgres]"
        ) from error


def _sqlite_engine(path: Path, *, read_only: bool = False) -> Engine:
    """Return an engine that opens the file anew for each transaction: safe across fork and kill.

    A reader, too, has to take back what a killed writer began and never committed, or it could
    not read: `mode=rw` allows that, and falls back to reading where the file is write-protected.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"

    def connect() -> sqlite3.Connection:
        # isolation_level None: this module begins and ends its transactions itself.
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        # EXTRA is FULL and also syncs the folder when the journal goes: a commit is durable.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute(f"PRAGMA query_only = {int(read_only)}")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options: dict[str, Any] = dict(connection.get_execution_options())
        connection.exec_driver_sql(options.get(_BEGIN, "BEGIN"))

    return engine


def _leaf_row(leaf: StoredLeaf) -> dict[str, object]:
    return {
        "sequence": leaf.sequence,
        "kind": leaf.kind,
        "edition": leaf.edition,
        "team": leaf.team,
        "run_id": leaf.run_id,
        "envelope": leaf.envelope,
    }


def _node_row(node: Node) -> dict[str, object]:
    return {"level": node.level, "index": node.index, "digest": node.digest}
