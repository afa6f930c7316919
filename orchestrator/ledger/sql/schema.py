"""The ledger's tables: one head, the leaves with columns to find them by, and the tree's nodes."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
)

SCHEMA_VERSION = 1
METADATA = MetaData()

_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")  # SQLite: the row id itself

HEAD = Table(
    "ledger_head",
    METADATA,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),  # always 1
    Column("schema_version", Integer, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("checkpoint", LargeBinary, nullable=False),
)

LEAF = Table(
    "ledger_leaf",
    METADATA,
    Column("sequence", _SEQUENCE, primary_key=True, autoincrement=False),
    Column("kind", String(32), nullable=False),
    Column("edition", String(64)),
    Column("team", String(64)),
    Column("run_id", String(16)),
    Column("envelope", LargeBinary, nullable=False),
    Index("ledger_leaf_by_team_in_edition", "edition", "team", "sequence"),
    Index("ledger_leaf_by_kind_in_edition", "edition", "kind", "sequence"),
    Index("ledger_leaf_by_kind_of_team", "team", "kind", "sequence"),
    Index("ledger_leaf_by_kind", "kind", "sequence"),
    Index("ledger_leaf_by_run", "run_id", "sequence"),
)

NODE = Table(
    "ledger_node",
    METADATA,
    Column("level", SmallInteger, primary_key=True, autoincrement=False),
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary(32), nullable=False),
    sqlite_with_rowid=False,
)
"""Every complete subtree, so that proofs and the frontier are O(log n) look-ups."""
