"""Rotation: the old key signs, the ledger decides what a kill leaves, the log stays sound."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from manifests.dsse import parse_envelope
from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.statements import KeyRole, KeyRotated
from orchestrator.keys.pem import key_files, signing_keys
from orchestrator.keys.pem.key_files import KeyFolder
from orchestrator.keys.pem.signing_keys import create_key_file, next_key_path
from orchestrator.ledger import append as ledger_append
from orchestrator.ledger.ports import Ledger
from orchestrator.ledger.rules.log_audit import audit_log
from orchestrator.ledger.sql import sql_store as ledger_sql
from orchestrator.wiring.keys import KEYS_LOCK, rotate
from orchestrator.wiring.workspaces import create_workspace, open_workspace
from orchestrator.workspace.show_keys import show_keys
from tests.support.killed_processes import die_after, die_before, exit_code
from tests.support.synthetic_ledger import (
    EDITION,
    edition_sealed,
    run_reserved,
    run_voided,
    team_registered,
)

ROLES: tuple[KeyRole, ...] = ("run", "scorer", "log")
PRIVATE = ["log.pem", "run.pem", "scorer.pem"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_workspace(tmp_path / "w", origin="example.org/piste")
    return tmp_path / "w"


def private_files(root: Path) -> list[str]:
    """Every file of the keys folder that holds a signing key, hidden ones included."""
    return sorted(path.name for path in (root / "keys").iterdir() if ".pem" in path.name)


def assert_sound(ledger: Ledger) -> None:
    audit = audit_log(ledger.stored_leaves(), checkpoint=ledger.checkpoint())
    assert audit.faults == []


@pytest.mark.parametrize("role", ROLES)
def test_the_old_key_signs_its_end_and_the_new_one_signs_from_there_on(
    root: Path, role: KeyRole
) -> None:
    before = open_workspace(root).signing.signer(role).public_key
    rotated = rotate(root, role, reason="a laptop was lost")
    workspace = open_workspace(root)
    (entry,) = workspace.ledger.entries(kind="key-rotated")
    statement = entry.statement
    assert isinstance(statement, KeyRotated)
    assert (statement.old_key_id, statement.reason) == (before.key_id, "a laptop was lost")
    envelope = parse_envelope(entry.envelope, source="rotation")
    assert [signature.key_id for signature in envelope.signatures] == [before.key_id]
    assert workspace.signing.signer(role).public_key == rotated.new == statement.new_key
    workspace.ledger.append(edition_sealed())
    workspace.ledger.append(team_registered())
    assert_sound(workspace.ledger)


@pytest.mark.parametrize("role", ROLES)
def test_the_old_private_key_is_gone_and_the_new_one_is_private(root: Path, role: KeyRole) -> None:
    old = (root / f"keys/{role}.pem").read_bytes()
    rotate(root, role, reason="yearly")
    assert private_files(root) == PRIVATE
    assert (root / f"keys/{role}.pem").stat().st_mode & 0o777 == 0o600
    assert all(old not in path.read_bytes() for path in (root / "keys").iterdir())


def test_keys_can_be_rotated_again_and_all_of_them(root: Path) -> None:
    for role in (*ROLES, *ROLES, "log"):
        rotate(root, role, reason="yearly")
    ledger = open_workspace(root).ledger
    assert ledger.size() == 8
    assert_sound(ledger)


def test_the_table_says_since_when_each_key_signs_and_which_are_here(root: Path) -> None:
    rotate(root, "run", reason="yearly")
    (root / "keys/scorer.pem").unlink()
    workspace = open_workspace(root)
    report = show_keys(
        ledger=workspace.ledger, signing=workspace.signing, keyring=workspace.keyring
    )
    rows = [(row.key.role, row.since, row.until, row.held) for row in report.signing]
    assert sorted(rows, key=str) == [
        ("log", 0, None, True),
        ("run", 0, 1, False),
        ("run", 2, None, True),
        ("scorer", 0, None, False),
    ]


def rotate_and_die(root: Path, role: KeyRole, point: str) -> None:
    match point:
        case "half a key":
            die_after(signing_keys, "_write_key")
        case "key linked":
            die_after(Path, "hardlink_to")
        case "key prepared":
            die_before(ledger_append.LedgerAppend, "append")
        case "statement signed":
            die_before(ledger_sql.SqlTransaction, "write")
        case "statement written, not committed":
            die_after(ledger_sql.SqlTransaction, "write")
        case "statement logged":
            die_before(key_files, "promote_next_key")
        case "key installed":
            die_after(key_files, "promote_next_key")
    rotate(root, role, reason="killed")


BEFORE = [
    "half a key",
    "key linked",
    "key prepared",
    "statement signed",
    "statement written, not committed",
]
BEHIND = ["statement logged", "key installed"]


@pytest.mark.parametrize("role", ["run", "log"])
@pytest.mark.parametrize("point", BEFORE + BEHIND)
def test_a_kill_between_any_two_steps_leaves_a_ledger_that_works(
    root: Path, role: KeyRole, point: str
) -> None:
    before = open_workspace(root).signing.signer(role).public_key
    assert exit_code(rotate_and_die, root, role, point) == -signal.SIGKILL
    workspace = open_workspace(root)
    after = workspace.signing.signer(role).public_key
    assert (after == before) == (point in BEFORE)
    assert workspace.ledger.keyset().current(role) == after
    assert private_files(root) == PRIVATE
    workspace.ledger.append(team_registered())
    assert_sound(workspace.ledger)
    rotate(root, role, reason="once more")
    assert open_workspace(root).ledger.keyset().current(role) not in (before, after)


def test_no_rotation_while_a_run_is_under_way(root: Path) -> None:
    ledger = open_workspace(root).ledger
    for statement in (edition_sealed(), team_registered(), run_reserved("00000000000000aa")):
        ledger.append(statement)
    with pytest.raises(RefusedByPolicy, match="run 00000000000000aa is under way"):
        rotate(root, "run", reason="yearly")
    ledger.append(run_voided("00000000000000aa"))
    with (
        open_workspace(root).store.lock_run("00000000000000aa"),
        pytest.raises(RefusedByPolicy, match="is under way"),
    ):
        rotate(root, "run", reason="its process still writes the evidence")
    assert rotate(root, "run", reason="yearly").sequence == 5
    assert EDITION in {getattr(one.statement, "edition", "") for one in ledger.entries()}


def test_two_processes_do_not_rotate_at_once_and_a_reader_leaves_them_alone(root: Path) -> None:
    files = KeyFolder(root / "keys", lock=root / KEYS_LOCK, passphrase=None)
    with files.exclusive():
        files.prepare("run")
        with pytest.raises(RefusedByPolicy, match="another process is changing its keys"):
            rotate(root, "run", reason="yearly")
        open_workspace(root).ledger.append(team_registered())
        assert next_key_path(root / "keys", "run").exists()
    open_workspace(root)
    assert not next_key_path(root / "keys", "run").exists()


@pytest.mark.parametrize("missing", ROLES)
def test_a_host_without_the_key_or_the_logs_key_cannot_rotate(root: Path, missing: KeyRole) -> None:
    (root / f"keys/{missing}.pem").unlink()
    with pytest.raises(RefusedByPolicy, match=f"holds no {missing} key"):
        rotate(root, missing, reason="yearly")
    assert open_workspace(root).ledger.size() == 1
    assert len(private_files(root)) == 2


def test_a_host_that_kept_the_old_key_is_told_to_fetch_the_new_one(root: Path) -> None:
    old = (root / "keys/run.pem").read_bytes()
    rotate(root, "run", reason="yearly")
    new = (root / "keys/run.pem").read_bytes()
    (root / "keys/run.pem").write_bytes(old)
    with pytest.raises(PlatformFault, match="put the rotated key"):
        open_workspace(root).ledger.append(team_registered())
    (root / "keys/run.pem").write_bytes(new)
    open_workspace(root).ledger.append(team_registered())


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501, "two\nlines", "bell\a"])
def test_a_rotation_has_a_public_reason_of_one_line(root: Path, reason: str) -> None:
    with pytest.raises(MalformedDocument, match="reason: "):
        rotate(root, "run", reason=reason)
    assert open_workspace(root).ledger.size() == 1


def test_a_planted_key_that_the_ledger_does_not_name_is_removed(root: Path) -> None:
    before = open_workspace(root).signing.held()
    create_key_file(next_key_path(root / "keys", "run"), "run")
    assert open_workspace(root).signing.held() == before
    assert private_files(root) == PRIVATE


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_prepared_key_that_others_may_read_is_not_put_in_place(root: Path, mode: int) -> None:
    path = next_key_path(root / "keys", "run")
    create_key_file(path, "run")
    path.chmod(mode)
    with pytest.raises(PlatformFault, match=f"mode 0{mode:o}"):
        open_workspace(root)
    path.unlink()
    assert open_workspace(root).ledger.size() == 1
