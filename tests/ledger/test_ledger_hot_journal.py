"""A writer that was killed with half a commit on disk: whoever reads next takes that back."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.errors import PlatformFault, RefusedByPolicy
from orchestrator.keys.pem.signing_keys import generate_signing_keys
from orchestrator.ledger.rules.log_audit import audit_log
from orchestrator.ledger.rules.merkle import Node
from orchestrator.ledger.sql.sql_store import create_sql_ledger, open_sql_ledger
from tests.support.synthetic_ledger import team_registered, workspace_created

HALF_A_COMMIT = """
import os, signal, sqlite3, sys
ledger = sqlite3.connect(sys.argv[1], isolation_level=None)
ledger.execute("PRAGMA cache_size = 1")  # pages of the open transaction go to the file at once
ledger.execute("BEGIN IMMEDIATE")
ledger.execute("UPDATE ledger_leaf SET envelope = zeroblob(800)")
ledger.execute("CREATE TABLE filler (data)")
ledger.executemany("INSERT INTO filler VALUES (zeroblob(?))", [(8000,)] * 30)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def disturbed(tmp_path: Path) -> Path:
    """A ledger of two statements whose pages a killed writer has overwritten."""
    path, keys = tmp_path / "ledger.sqlite", generate_signing_keys()
    create_sql_ledger(path, workspace_created(keys), keys=keys).append(team_registered())
    honest = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", HALF_A_COMMIT, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.with_name("ledger.sqlite-journal").stat().st_size > 0
    assert path.read_bytes()[: len(honest)] != honest
    return path


def test_a_reader_without_keys_finds_what_was_committed_and_nothing_else(disturbed: Path) -> None:
    ledger = open_sql_ledger(disturbed)
    audit = audit_log(ledger.stored_leaves(), checkpoint=ledger.checkpoint())
    assert (audit.faults, audit.tree.size) == ([], 2)
    assert not disturbed.with_name("ledger.sqlite-journal").exists()


def test_a_reader_still_writes_nothing(disturbed: Path) -> None:
    ledger = open_sql_ledger(disturbed)
    before = disturbed.read_bytes()
    (first,) = (leaf for leaf in ledger.stored_leaves() if leaf.sequence == 0)
    leaf, node = replace(first, sequence=2), Node(level=9, index=9, digest=bytes(32))
    with pytest.raises(PlatformFault), ledger._store.exclusive() as transaction:
        transaction.write((leaf,), (node,), b"forged")
    with pytest.raises(RefusedByPolicy, match="holds no run key"):
        ledger.append(team_registered("lyra"))
    assert disturbed.read_bytes() == before


def test_where_nothing_may_be_written_the_way_out_is_named(
    disturbed: Path, small_disk: Path
) -> None:
    for path in disturbed.parent.glob("ledger.sqlite*"):
        shutil.copy(path, small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(PlatformFault, match="copy the ledger and its -journal somewhere writable"):
        open_sql_ledger(small_disk / "ledger.sqlite")
