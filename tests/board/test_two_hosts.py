"""A run host that opens no labels certifies; two people elsewhere complete the row together."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.evidence.rules.receipt import verify_receipt
from orchestrator.keys.age.age_files import generate_identity
from orchestrator.wiring.workspaces import open_workspace
from tests.support.small_exams import recognition_answers, write_edition
from tests.support.story_steps import World, answering, asked, piste, simulated_world

EDITION = "two-person-final"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with simulated_world(tmp_path / "images") as world:
        yield world


@pytest.fixture
def people(tmp_path: Path) -> list[tuple[Path, str]]:
    """Two identity files that lie on no host yet, and their recipients."""
    made = []
    for name in ("first", "second"):
        identity, recipient = generate_identity()
        path = tmp_path / name
        path.write_bytes(identity)
        path.chmod(0o600)
        made.append((path, recipient))
    return made


@pytest.fixture
def run_host(tmp_path: Path, people: list[tuple[Path, str]]) -> Path:
    """A workspace with a sealed edition, and neither a label identity nor the scorer's key."""
    root, corpus = tmp_path / "host", tmp_path / "corpus"
    corpus.mkdir()
    asked("init", root, "--origin", "example.org/two")
    recipients = [recipient for _, recipient in people]
    asked("keys", "recipients", "set", "--labels", "two-person", *recipients, workspace=root)
    (root / "keys/labels.agekey").unlink()
    asked("seal", write_edition(corpus, EDITION), workspace=root)
    asked("team", "add", "nova", workspace=root)
    (root / "keys/scorer.pem").rename(tmp_path / "scorer.pem")
    return root


def certify(world: World, root: Path) -> dict[str, object]:
    image = world.image("nova", answering(recognition_answers(wrong=2)))
    return asked("certify", image, "--edition", EDITION, "--team", "nova", workspace=root)


def test_two_people_complete_the_row_that_the_run_host_could_not_score(
    world: World, run_host: Path, people: list[tuple[Path, str]], tmp_path: Path
) -> None:
    done = certify(world, run_host)
    assert (done["outcome"], done["score"]) == ("completed", None)
    rescore = ("rescore", "--edition", EDITION, "--labels", "labels-v1")

    ended = piste(*rescore, workspace=run_host)
    assert ended.code == 3
    assert "no labels.agekey" in ended.err

    shutil.copy(people[0][0], run_host / "keys/labels.agekey")
    ended = piste(*rescore, workspace=run_host)
    assert ended.code == 3
    assert f"missing is the identity of {people[1][1]}" in ended.err

    shutil.copy(people[1][0], run_host / "keys/labels-b.agekey")
    (tmp_path / "scorer.pem").rename(run_host / "keys/scorer.pem")
    asked(*rescore, workspace=run_host)
    receipt = piste("runs", "show", str(done["run_id"]), "--proof", workspace=run_host).out
    verified = verify_receipt(receipt.encode(), source="receipt")
    assert [one.statement.kind for one in verified.entries][-1] == "run-scored"
    assert piste("verify", run_host).code == 0


def test_a_run_key_rotated_between_two_runs_leaves_both_checkable(
    world: World, run_host: Path
) -> None:
    first = certify(world, run_host)
    asked("keys", "rotate", "run", "--reason", "yearly", workspace=run_host)
    second = certify(world, run_host)
    folders = [run_host / "runs" / str(one["run_id"]) for one in (first, second)]
    assert len({(folder / "run.pub").read_bytes() for folder in folders}) == 2
    ledger = open_workspace(run_host).ledger
    assert (folders[1] / "run.pub").read_text() == ledger.keyset().current("run").pem
    assert piste("verify", run_host).code == 0
