"""Single changes to an organizer's own workspace: files, folders and the ledger's rows."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.kinds import EvidenceKind, kind_of
from tests.support.bundle_edits import edited_json, flipped
from tests.support.synthetic_evidence import EDITION, Scenario, failed, reveal, shared_story, verify


@pytest.fixture(scope="module")
def story() -> Scenario:
    return shared_story()


@pytest.fixture
def root(story: Scenario, tmp_path: Path) -> Path:
    return Path(shutil.copytree(story.root, tmp_path / "workspace"))


def _sql(root: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(root / "ledger.sqlite")
    with connection:
        changed = connection.execute(statement, values).rowcount
    connection.close()
    assert changed > 0


def _table(root: Path, fragment: str) -> str:
    connection = sqlite3.connect(root / "ledger.sqlite")
    names: list[str] = [row[0] for row in connection.execute("select name from sqlite_master")]
    connection.close()
    return next(name for name in names if fragment in name and not name.startswith("ix"))


def _leaf(root: Path, sequence: int) -> bytes:
    connection = sqlite3.connect(root / "ledger.sqlite")
    query = f"select envelope from {_table(root, 'leaf')} where sequence = ?"
    data: bytes = connection.execute(query, (sequence,)).fetchone()[0]
    connection.close()
    return data


def _edit_leaf(root: Path, _: Scenario) -> None:
    data = _leaf(root, 6)
    _sql(
        root,
        f"update {_table(root, 'leaf')} set envelope = ? where sequence = 6",
        flipped(data, len(data) // 2),
    )


def _exchange_leaves(root: Path, _: Scenario) -> None:
    one, other = _leaf(root, 6), _leaf(root, 7)
    table = _table(root, "leaf")
    _sql(root, f"update {table} set envelope = ? where sequence = 6", other)
    _sql(root, f"update {table} set envelope = ? where sequence = 7", one)


def _on_leaves(statement: str) -> Callable[[Path, Scenario], None]:
    return lambda root, _: _sql(root, statement.format(leaf=_table(root, "leaf")))


def _on_head(statement: str) -> Callable[[Path, Scenario], None]:
    return lambda root, _: _sql(root, statement.format(head=_table(root, "head")))


def _flip(pattern: str) -> Callable[[Path, Scenario], None]:
    def change(root: Path, story: Scenario) -> None:
        path = root / pattern.format(**story.runs, edition=EDITION)
        path.write_bytes(flipped(path.read_bytes(), path.stat().st_size // 2))

    return change


def _remove(pattern: str) -> Callable[[Path, Scenario], None]:
    def change(root: Path, story: Scenario) -> None:
        path = root / pattern.format(**story.runs, edition=EDITION)
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def _add(pattern: str) -> Callable[[Path, Scenario], None]:
    def change(root: Path, story: Scenario) -> None:
        path = root / pattern.format(**story.runs, edition=EDITION)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"more\n")

    return change


def _private_digit(root: Path, story: Scenario) -> None:
    path = root / f"runs/{story.runs['first']}/score.private.json"
    path.write_bytes(edited_json(path.read_bytes(), lambda d: d["public"].update(top1=0.5)))


def _exchange_clips(root: Path, _: Scenario) -> None:
    folder = root / "editions" / EDITION / "sealed"
    one, other, *_rest = sorted(folder.iterdir())
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def _corrupt(root: Path, _: Scenario) -> None:
    path = root / "ledger.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


CHANGES: dict[str, tuple[Check, Callable[[Path, Scenario], None]]] = {
    "a statement's byte": (Check.STATEMENTS, _edit_leaf),
    "two statements exchanged": (Check.STATEMENTS, _exchange_leaves),
    "a statement removed": (
        Check.STATEMENTS,
        _on_leaves("delete from {leaf} where sequence = 6"),
    ),
    "the last statement removed": (
        Check.CHECKPOINT,
        _on_leaves("delete from {leaf} where sequence = (select max(sequence) from {leaf})"),
    ),
    "a column's team": (
        Check.COLUMNS,
        _on_leaves("update {leaf} set team = 'lumen' where kind = 'run-reserved'"),
    ),
    "a column's run": (
        Check.COLUMNS,
        _on_leaves("update {leaf} set run_id = null where kind = 'run-voided'"),
    ),
    "a column's kind": (
        Check.COLUMNS,
        _on_leaves("update {leaf} set kind = 'run-scored' where kind = 'run-voided'"),
    ),
    "the head's size": (Check.CHECKPOINT, _on_head("update {head} set size = size - 1")),
    "the head's checkpoint": (
        Check.CHECKPOINT,
        _on_head("update {head} set checkpoint = x'00'"),
    ),
    "half of the ledger": (Check.STATEMENTS, _corrupt),
    "no ledger": (Check.STATEMENTS, _remove("ledger.sqlite")),
    "predictions": (Check.KEPT, _flip("runs/{first}/predictions.jsonl")),
    "the encrypted log": (Check.KEPT, _flip("runs/{first}/log.age")),
    "the encrypted log, listed": (Check.LISTING, _flip("runs/{first}/log.age")),
    "the effective configuration": (Check.KEPT, _flip("runs/{first}/effective.json")),
    "a record": (Check.RECORD, _flip("runs/{second}/run.json")),
    "a signature": (Check.SIGNATURE, _flip("runs/{second}/SHA256SUMS.sig")),
    "an envelope": (Check.ENVELOPE, _flip("runs/{second}/run.dsse.json")),
    "a key": (Check.SIGNATURE, _flip("runs/{second}/run.pub")),
    "a card": (Check.CARD, _flip("runs/{first}/score.json")),
    "a private card": (Check.PRIVATE_CARD, _flip("runs/{first}/score.private.json")),
    "a private card's digit": (Check.PRIVATE_CARD, _private_digit),
    "a later card": (Check.CARD, _flip("runs/{first}/scores/labels-v2/score.json")),
    "a later signature": (
        Check.SIGNATURE,
        _flip("runs/{first}/scores/labels-v2/SHA256SUMS.sig"),
    ),
    "later cards removed": (Check.CARD, _remove("runs/{first}/scores")),
    "a run removed": (Check.RUNS, _remove("runs/{first}")),
    "a run that nobody reserved": (Check.RUNS, _add("runs/0000000000000000/run.json")),
    "a file added to a run": (Check.LISTING, _add("runs/{first}/more.txt")),
    "a folder added to a run": (Check.LISTING, _add("runs/{first}/more/file.txt")),
    "a sealed clip": (Check.CIPHERTEXTS, _flip("editions/{edition}/sealed/0001.age")),
    "a sealed clip removed": (Check.CIPHERTEXTS, _remove("editions/{edition}/sealed/0001.age")),
    "a sealed clip added": (Check.CIPHERTEXTS, _add("editions/{edition}/sealed/9999.age")),
    "two sealed clips exchanged": (Check.CIPHERTEXTS, _exchange_clips),
    "the edition": (Check.SEAL, _flip("editions/{edition}/edition.yaml")),
    "the profile": (Check.SEAL, _flip("editions/{edition}/profile.yaml")),
    "the seal": (Check.SEAL, _flip("editions/{edition}/seal.json")),
    "the list of ciphertexts": (Check.SEAL, _flip("editions/{edition}/sealed.sha256")),
    "an edition removed": (Check.SEAL, _remove("editions/{edition}")),
    "plain labels beside the sealed ones": (
        Check.SEAL,
        _add("editions/{edition}/labels/labels-v1.jsonl"),
    ),
    "labels revealed by nobody": (
        Check.REVEAL,
        _add("editions/{edition}/revealed/labels-v1.jsonl"),
    ),
}


def test_the_untouched_workspace_holds(root: Path) -> None:
    assert failed(verify(root)) == set()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_to_a_workspace_is_found_by_the_check_that_is_meant_for_it(
    name: str, root: Path, story: Scenario
) -> None:
    check, change = CHANGES[name]
    change(root, story)
    assert check in failed(verify(root))


def test_an_older_head_is_found(root: Path, story: Scenario) -> None:
    older = story.open().ledger.checkpoint()
    scenario = Scenario(root)
    reveal(scenario)
    assert failed(verify(root)) == set()
    _sql(root, f"update {_table(root, 'head')} set checkpoint = ?", older)
    assert Check.CHECKPOINT in failed(verify(root))


def test_keys_and_locks_are_no_evidence_and_are_not_read(root: Path) -> None:
    (root / "keys" / "run.pem").chmod(0)
    (root / "locks" / "odd").symlink_to("/etc")
    assert failed(verify(root)) == set()


def test_a_sealing_that_is_under_way_is_passed_over(root: Path) -> None:
    (root / "editions" / ".sealing-another").mkdir()
    (root / "editions" / ".sealing-another" / "seal.json").write_bytes(b"half")
    assert failed(verify(root)) == set()


def test_a_run_that_is_under_way_needs_no_folder(root: Path, story: Scenario) -> None:
    assert not (root / "runs" / story.runs["pending"]).exists()
    (root / "runs" / story.runs["pending"]).mkdir()
    (root / "runs" / story.runs["pending"] / "effective.json").write_bytes(b"{}")
    assert failed(verify(root)) == set()


@pytest.mark.parametrize("missing", ["piste.json", "ledger.sqlite"])
def test_a_workspace_is_known_without_one_of_its_marks(missing: str) -> None:
    names = {"piste.json", "ledger.sqlite", "editions", "runs", "keys"} - {missing}
    assert kind_of(names) is EvidenceKind.WORKSPACE


def test_an_edition_and_a_run_are_known_by_any_of_their_files(story: Scenario) -> None:
    assert kind_of({"seal.json"}) is EvidenceKind.EDITION
    assert kind_of({"run.dsse.json"}) is EvidenceKind.RUN
    assert kind_of({"log", "editions", "runs"}) is EvidenceKind.BUNDLE
    assert kind_of({"predictions.jsonl"}) is None
