"""`piste verify` and `piste export` as they are typed: exit codes, JSON, what is shown."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.evidence.rules.catalogue import Check
from tests.support.bundle_edits import flipped
from tests.support.synthetic_evidence import (
    EDITION,
    ORIGIN,
    Scenario,
    salted_labels,
    shared_bundle,
    shared_story,
)


@pytest.fixture(scope="module")
def story() -> Scenario:
    return shared_story()


@pytest.fixture(scope="module")
def bundle() -> Path:
    return shared_bundle()


Done = subprocess.CompletedProcess[str]
Piste = Callable[..., Done]


@pytest.fixture
def piste(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Piste]:
    """Run the command line in this process: a new one would import everything again."""
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}

    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["piste", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        shown = capfdbinary.readouterr()
        status = code if isinstance(code, int) else 0
        return Done(list(map(str, words)), status, shown.out.decode(), shown.err.decode())

    yield run
    for name, handler in handlers.items():
        signal.signal(name, handler)


def document(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_bundle_that_holds_exits_0_and_shows_every_number(piste: Piste, bundle: Path) -> None:
    done = piste("verify", bundle)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\nholds\n")
    for check in Check:
        assert f"{check.number:>3}  " in done.stdout
        assert check.compares in done.stdout


def test_json_lists_each_check_with_its_result(piste: Piste, bundle: Path, story: Scenario) -> None:
    for path, kind in ((bundle, "bundle"), (story.root, "workspace")):
        found = document(piste("verify", path, "--json"))
        assert found["holds"] is True
        assert found["kind"] == kind
        assert [one["number"] for one in found["checks"]] == [check.number for check in Check]
        assert {one["result"] for one in found["checks"]} == {"pass", "skipped"}


def test_a_false_claim_exits_1_and_names_the_check(
    piste: Piste, bundle: Path, tmp_path: Path
) -> None:
    data = bundle.read_bytes()
    path = tmp_path / "changed.tar"
    path.write_bytes(flipped(data, data.index(b'"macro_f1"')))
    done = piste("verify", path, "--json")
    assert done.returncode == 1
    failed = {one["number"] for one in document(done)["checks"] if one["result"] == "fail"}
    assert Check.BUNDLE.number in failed
    shown = piste("verify", path)
    assert shown.returncode == 1
    assert shown.stdout.endswith("does not hold\n")


@pytest.mark.parametrize("name", ["notes.txt", "absent", "."])
def test_what_is_no_evidence_exits_2(piste: Piste, name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"hello\n")
    done = piste("verify", tmp_path / name)
    assert done.returncode == 2
    assert "neither a run folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_labels_checkpoint_key_and_origin_are_taken_from_files(
    piste: Piste, bundle: Path, story: Scenario, tmp_path: Path
) -> None:
    (tmp_path / "labels.jsonl").write_bytes(salted_labels(story))
    (tmp_path / "kept").write_bytes(story.open().ledger.checkpoint())
    key = story.open().ledger.keyset().current("log")
    (tmp_path / "log.pub").write_text(key.pem)
    held = ["--checkpoint", tmp_path / "kept", "--key", tmp_path / "log.pub", "--origin", ORIGIN]
    done = piste("verify", bundle, "--labels", tmp_path / "labels.jsonl", *held, "--json")
    assert done.returncode == 0, done.stdout
    passed = {one["number"] for one in document(done)["checks"] if one["result"] == "pass"}
    assert {Check.ANCHOR.number, Check.OLDER.number, Check.RESCORE.number} <= passed
    other = piste("verify", bundle, "--origin", "example.org/other")
    assert other.returncode == 1


def test_a_malformed_file_of_the_auditor_exits_2(
    piste: Piste, bundle: Path, tmp_path: Path
) -> None:
    (tmp_path / "odd").write_bytes(b"odd\n")
    assert piste("verify", bundle, "--checkpoint", tmp_path / "odd").returncode == 2
    assert piste("verify", bundle, "--key", tmp_path / "odd").returncode == 2


def test_export_writes_what_verify_accepts(
    piste: Piste, story: Scenario, bundle: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bundle.tar"
    done = piste("export", EDITION, "-o", path, "-w", story.root, "--json")
    assert done.returncode == 0, done.stderr
    assert document(done)["of"] == "edition"
    assert path.read_bytes() == bundle.read_bytes()
    again = piste("export", EDITION, "-o", path, "-w", story.root)
    assert again.returncode == 3
    assert "never replaces" in again.stderr


def test_export_of_a_run_takes_all_its_options(
    piste: Piste, story: Scenario, tmp_path: Path
) -> None:
    path = tmp_path / "run.tar"
    words = ("export", story.runs["first"], "-o", path, "-w", story.root)
    done = piste(*words, "--bagit", "--private", "--log")
    assert done.returncode == 0, done.stderr
    assert piste("verify", path).returncode == 0


def test_export_says_what_it_does_not_know(piste: Piste, story: Scenario, tmp_path: Path) -> None:
    done = piste("export", "nothing-2026", "-o", tmp_path / "x.tar", "-w", story.root)
    assert done.returncode == 3
    assert "neither a run nor an edition" in done.stderr
    assert not (tmp_path / "x.tar").exists()


def test_a_receipt_from_runs_show_verifies_alone_and_a_changed_one_does_not(
    piste: Piste, story: Scenario, tmp_path: Path
) -> None:
    run_id = next(iter(story.runs.values()))
    shown = piste("runs", "show", run_id, "--proof", "-w", story.root)
    assert shown.returncode == 0, shown.stderr
    receipt = tmp_path / "receipt.json"
    receipt.write_text(shown.stdout)
    holds = piste("verify", receipt, "--json")
    assert holds.returncode == 0, holds.stderr
    assert document(holds)["run_id"] == run_id
    assert "only the whole log shows" in piste("verify", receipt).stdout
    changed = json.loads(shown.stdout)
    changed["statements"][-1]["proof"][0] = "00" * 32
    receipt.write_text(json.dumps(changed))
    assert piste("verify", receipt).returncode == 1
