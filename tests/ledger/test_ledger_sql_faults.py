"""The SQL ledger when files, disks and other people misbehave."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event

from manifests.errors import ClaimDoesNotHold, MalformedDocument, PlatformFault, RefusedByPolicy
from orchestrator.keys.pem.signing_keys import generate_signing_keys
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.rules.log_audit import LogCheck, audit_log
from orchestrator.ledger.sql import sql_errors as ledger_sql_errors
from orchestrator.ledger.sql import sql_store as ledger_sql
from orchestrator.ledger.sql.sql_store import (
    SqlLedgerStore,
    create_sql_ledger,
    open_sql_ledger,
)
from orchestrator.ledger.stored_ledger import StoredLedger
from tests.support.synthetic_ledger import (
    EDITION,
    TEAM,
    edition_sealed,
    run_reserved,
    run_started,
    run_voided,
    team_registered,
    workspace_created,
)

RUN = "00000000000000aa"


@pytest.fixture
def keys() -> SigningKeys:
    return generate_signing_keys()


@pytest.fixture
def path(tmp_path: Path, keys: SigningKeys) -> Path:
    path = tmp_path / "ledger #1?.sqlite"  # characters that a database URI gives a meaning to
    ledger = create_sql_ledger(path, workspace_created(keys), keys=keys)
    for statement in (
        edition_sealed(),
        team_registered(),
        run_reserved(RUN),
        run_started(RUN),
        run_voided(RUN),
    ):
        ledger.append(statement)
    return path


def change(path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()


def on_connect(ledger: StoredLedger, pragma: str) -> None:
    store = ledger._store
    assert isinstance(store, SqlLedgerStore)
    event.listen(
        store._engine, "begin", lambda connection: connection.exec_driver_sql(pragma), insert=True
    )


def test_the_ledger_is_one_file_that_can_be_copied(path: Path, tmp_path: Path) -> None:
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    assert open_sql_ledger(copy).size() == 6


def test_a_ledger_is_opened_by_url_as_well(path: Path, keys: SigningKeys, tmp_path: Path) -> None:
    plain = tmp_path / "plain.sqlite"
    shutil.copy(path, plain)
    ledger = open_sql_ledger(f"sqlite:///{plain}", keys=keys)
    assert ledger.append(team_registered("lyra")).sequence == 6


def test_an_existing_ledger_is_never_overwritten(path: Path, keys: SigningKeys) -> None:
    before = path.read_bytes()
    with pytest.raises(RefusedByPolicy, match="never overwritten"):
        create_sql_ledger(path, workspace_created(keys), keys=keys)
    assert path.read_bytes() == before


def test_a_creation_that_fails_leaves_no_file(tmp_path: Path, keys: SigningKeys) -> None:
    created = workspace_created(keys).model_copy(update={"origin": "has a space"})
    with pytest.raises(MalformedDocument, match="log origin"):
        create_sql_ledger(tmp_path / "ledger.sqlite", created, keys=keys)
    assert list(tmp_path.iterdir()) == []


def test_without_keys_a_ledger_is_read_and_not_written(path: Path) -> None:
    ledger = open_sql_ledger(path)
    assert len(list(ledger.entries())) == 6
    with pytest.raises(RefusedByPolicy, match="holds no run key"):
        ledger.append(team_registered("lyra"))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, PlatformFault, "no ledger is here.*piste init"),
        (b"", MalformedDocument, "the table ledger_head is missing"),
        (b"this is a text file, and long enough to look like one" * 20, MalformedDocument, "not a"),
    ],
)
def test_what_is_no_ledger_is_named_with_its_path(
    tmp_path: Path, content: bytes | None, error: type[Exception], message: str
) -> None:
    path = tmp_path / "ledger.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=message) as raised:
        open_sql_ledger(path)
    assert str(path) in str(raised.value)


def test_a_damaged_file_is_named_as_damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises((MalformedDocument, ClaimDoesNotHold)) as raised:
        list(open_sql_ledger(path).entries())
    assert str(path) in str(raised.value)


def test_another_format_version_is_refused_with_both_numbers(path: Path) -> None:
    change(path, "UPDATE ledger_head SET schema_version = 2")
    with pytest.raises(MalformedDocument, match="ledger format 2, this piste reads 1"):
        open_sql_ledger(path)


def test_a_read_only_database_says_how_to_make_it_writable(path: Path, keys: SigningKeys) -> None:
    ledger = open_sql_ledger(path, keys=keys)
    on_connect(ledger, "PRAGMA query_only = ON")
    with pytest.raises(PlatformFault, match="make the file and its folder writable"):
        ledger.append(team_registered("lyra"))


def test_a_full_disk_appends_nothing_and_says_so(path: Path, keys: SigningKeys) -> None:
    ledger = open_sql_ledger(path, keys=keys)
    on_connect(ledger, "PRAGMA max_page_count = 1")
    with pytest.raises(PlatformFault, match="no space is left") as raised:
        deque((ledger.append(team_registered(f"team-{number}")) for number in range(50)), maxlen=0)
    assert str(path) in str(raised.value)
    whole = open_sql_ledger(path)
    assert audit_log(whole.stored_leaves(), checkpoint=whole.checkpoint()).faults == []


def test_a_ledger_that_stays_locked_is_reported_with_the_time(
    path: Path, keys: SigningKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_sql, "BUSY_TIMEOUT_S", 0.1)
    ledger = open_sql_ledger(path, keys=keys)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(PlatformFault, match=f"over {ledger_sql_errors.BUSY_TIMEOUT_S} s"):
        ledger.append(team_registered("lyra"))
    holder.execute("ROLLBACK")
    holder.close()
    assert ledger.append(team_registered("lyra")).sequence == 6


def test_a_database_that_does_not_exist_is_a_platform_fault_without_its_password() -> None:
    with pytest.raises((PlatformFault, MalformedDocument)) as raised:
        open_sql_ledger("postgresql+psycopg://piste:secret@192.0.2.1/x?connect_timeout=1")
    assert "secret" not in str(raised.value)


def test_a_url_of_no_known_database_is_malformed() -> None:
    with pytest.raises(MalformedDocument, match="ledger URL"):
        open_sql_ledger("no url at all")


def test_keys_of_another_workspace_are_refused(path: Path) -> None:
    foreign = open_sql_ledger(path, keys=generate_signing_keys())
    with pytest.raises(PlatformFault, match=r"this host's run key is .* put the rotated key"):
        foreign.append(team_registered("lyra"))


def forge_envelope(path: Path) -> None:
    change(
        path,
        "UPDATE ledger_leaf SET envelope = (SELECT envelope FROM ledger_leaf WHERE sequence = 3) "
        "WHERE sequence = 4",
    )


def drop_the_void(path: Path) -> None:
    change(path, "DELETE FROM ledger_leaf WHERE sequence = 5")


def drop_the_middle(path: Path) -> None:
    change(path, "DELETE FROM ledger_leaf WHERE sequence = 4")


def hide_a_run(path: Path) -> None:
    change(path, "UPDATE ledger_leaf SET team = NULL WHERE sequence = 3")


def rename_a_run(path: Path) -> None:
    change(path, "UPDATE ledger_leaf SET run_id = '00000000000000ff' WHERE sequence = 3")


def swap_two(path: Path) -> None:
    change(path, "UPDATE ledger_leaf SET sequence = 99 WHERE sequence = 3")
    change(path, "UPDATE ledger_leaf SET sequence = 3 WHERE sequence = 4")
    change(path, "UPDATE ledger_leaf SET sequence = 4 WHERE sequence = 99")


def cut_with_head(path: Path) -> None:
    change(path, "DELETE FROM ledger_leaf WHERE sequence = 5")
    change(path, "UPDATE ledger_head SET size = 5")


def break_the_checkpoint(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        (note,) = connection.execute("SELECT checkpoint FROM ledger_head").fetchone()
        connection.execute("UPDATE ledger_head SET checkpoint = ?", (note.replace(b"6", b"7", 1),))
    connection.close()


@pytest.mark.parametrize(
    ("tamper", "check"),
    [
        (forge_envelope, LogCheck.SIGNATURE),
        (drop_the_void, LogCheck.TREE),
        (drop_the_middle, LogCheck.POSITION),
        (hide_a_run, LogCheck.COLUMNS),
        (rename_a_run, LogCheck.COLUMNS),
        (swap_two, LogCheck.SIGNATURE),
        (cut_with_head, LogCheck.TREE),
        (break_the_checkpoint, LogCheck.TREE),
    ],
)
def test_a_change_behind_our_back_is_found_by_the_audit(
    path: Path, tamper: Callable[[Path], None], check: LogCheck
) -> None:
    tamper(path)
    ledger = open_sql_ledger(path)
    audit = audit_log(ledger.stored_leaves(), checkpoint=ledger.checkpoint())
    assert check in {fault.check for fault in audit.faults}


@pytest.mark.parametrize("tamper", [forge_envelope, swap_two, rename_a_run])
def test_a_changed_entry_is_never_handed_out(path: Path, tamper: Callable[[Path], None]) -> None:
    tamper(path)
    with pytest.raises(ClaimDoesNotHold, match="the ledger was changed") as raised:
        list(open_sql_ledger(path).entries(edition=EDITION, team=TEAM))
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("tamper", [cut_with_head, break_the_checkpoint])
def test_nothing_is_appended_to_a_ledger_whose_tree_is_not_the_signed_one(
    path: Path, keys: SigningKeys, tamper: Callable[[Path], None]
) -> None:
    tamper(path)
    with pytest.raises(ClaimDoesNotHold):
        open_sql_ledger(path, keys=keys).append(team_registered("lyra"))


def test_a_missing_node_of_the_tree_is_reported_and_not_guessed(path: Path) -> None:
    change(path, "DELETE FROM ledger_node WHERE level = 1")
    with pytest.raises(MalformedDocument, match=r"node 1/\d of the tree is missing"):
        open_sql_ledger(path).inclusion_proof(0)
