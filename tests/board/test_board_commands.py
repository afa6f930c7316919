"""submit, review, rescore, labels add and board, as typed."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.workspace import Workspace
from tests.support.small_exams import (
    new_workspace,
    predictions,
    recognition_answers,
    register,
    retain_run,
    seal_edition,
    write_labels,
)

QUALIFIER, FINAL = "exam-qualifier", "exam-final"
ALWAYS_OPEN = ("2020-01-01", "2099-01-01")
Piste = Callable[..., tuple[int, str, str]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "workspace"
    new_workspace(root)
    opened = wiring.open_workspace(root)
    for stage, name in (("qualifier", QUALIFIER), ("final", FINAL)):
        seal_edition(
            opened,
            tmp_path / stage,
            name,
            stage="qualifier" if stage == "qualifier" else "final",
            dates=ALWAYS_OPEN,
        )
    register(opened, "nova")
    register(opened, "clerc", organizer=True, data_track="private-data")
    return opened


@pytest.fixture
def piste(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Piste]:
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["piste", *words, "-w", str(workspace.store.root)])
        monkeypatch.setenv("COLUMNS", "240")
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return code if isinstance(code, int) else 0, captured.out, captured.err

    yield run
    for name, handler in handlers.items():
        signal.signal(name, handler)


@pytest.fixture
def mine(workspace: Workspace, tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(predictions(workspace, QUALIFIER, recognition_answers(wrong=3)))
    return path


def parsed(out: str) -> dict[str, Any]:
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


def test_a_qualifier_row_goes_from_submission_over_review_to_the_board(
    workspace: Workspace, piste: Piste, mine: Path
) -> None:
    code, out, _ = piste(
        "submit", str(mine), "-e", QUALIFIER, "-t", "nova", "--note", "public data", "--json"
    )
    assert code == 0
    submitted = parsed(out)
    run_id = submitted["run_id"]
    assert submitted["score"]["public"]["top1"] == pytest.approx(9 / 12)
    assert "private" not in submitted["score"]
    _, out, _ = piste("board", "-e", QUALIFIER, "--json")
    assert (parsed(out)["rows"], parsed(out)["awaiting_review"]) == ([], 1)
    code, out, _ = piste("review", run_id, "accept", "--reason", "plausible", "--json")
    assert (code, parsed(out)["decision"]) == (0, "accept")
    assert f"held #1 nova · run {run_id} · awaiting Final" in piste("board", "-e", QUALIFIER)[1]
    _, out, _ = piste("board", "-e", QUALIFIER, "--json")
    assert [row["run_id"] for row in parsed(out)["held"]] == [run_id]
    assert parsed(out)["counterpart"]["edition"] == FINAL
    data = predictions(workspace, FINAL, recognition_answers(wrong=3))
    retain_run(workspace, FINAL, "nova", data)
    code, _, _ = piste("rescore", "-e", FINAL)
    assert code == 0
    _, out, _ = piste("board", "-e", QUALIFIER, "--json")
    (row,) = parsed(out)["rows"]
    assert (row["rank"], row["status"], row["training_note"]) == (1, "self-reported", "public data")
    assert row["gap"]["flagged"] is False


def test_a_bad_file_ends_with_2_and_says_that_no_slot_was_spent(piste: Piste, mine: Path) -> None:
    mine.write_bytes(mine.read_bytes().replace(b'"PARIS"', b'"PAR IS"', 2))
    size_before = parsed(piste("board", "-e", QUALIFIER, "--json")[1])["awaiting_review"]
    code, out, err = piste("submit", str(mine), "-e", QUALIFIER, "-t", "nova")
    assert (code, out) == (2, "")
    assert err.count("mine.jsonl:") == 2
    assert "took no slot" in err
    after = parsed(piste("board", "-e", QUALIFIER, "--json")[1])["awaiting_review"]
    assert (size_before, after) == (0, 0)


def test_the_rate_limit_ends_with_3_and_the_next_free_slot(piste: Piste, mine: Path) -> None:
    words = ("submit", str(mine), "-e", QUALIFIER, "-t", "nova")
    assert [piste(*words)[0], piste(*words)[0]] == [0, 0]
    code, out, err = piste(*words)
    assert (code, out) == (3, "")
    assert "the next slot is free at 20" in err


def test_a_submission_without_json_shows_the_card_and_the_next_step(
    piste: Piste, mine: Path
) -> None:
    code, out, _ = piste("submit", str(mine), "-e", QUALIFIER, "-t", "nova")
    assert code == 0
    assert "macro-F1" in out
    assert "accept --reason" in out


def test_new_labels_make_new_rows_and_the_old_board_stays(
    workspace: Workspace, piste: Piste, tmp_path: Path
) -> None:
    data = predictions(workspace, FINAL, recognition_answers(wrong=1))
    retain_run(workspace, FINAL, "nova", data)
    assert piste("rescore", "-e", FINAL)[0] == 0
    before = piste("board", "-e", FINAL, "--json")[1]
    labels = tmp_path / "labels-v2.jsonl"
    write_labels(labels, "recognition", {1: {"glosses": ["NOW", "NOW", "NOW"]}})
    code, out, _ = piste(
        "labels", "add", str(labels), "-e", FINAL, "--version", "labels-v2", "--json"
    )
    assert (code, parsed(out)["version"]) == (0, "labels-v2")
    code, out, _ = piste("rescore", "-e", FINAL, "--labels", "labels-v2", "--json")
    assert [row["new"] for row in parsed(out)["rows"]] == [True]
    again = piste("rescore", "-e", FINAL, "--labels", "labels-v2", "--json")[1]
    assert [row["new"] for row in parsed(again)["rows"]] == [False]
    after = parsed(piste("board", "-e", FINAL, "--json")[1])
    assert after["rows"] == parsed(before)["rows"]
    assert after["labels_versions"] == ["labels-v1", "labels-v2"]
    new = parsed(piste("board", "-e", FINAL, "--labels", "labels-v2", "--json")[1])
    assert new["rows"][0]["versions"]["labels"] == "labels-v2"
    assert new["rows"][0]["main"] < after["rows"][0]["main"]


def test_the_table_shows_status_dagger_tie_interval_and_what_is_not_ranked(
    workspace: Workspace, piste: Piste
) -> None:
    for team, wrong in (("clerc", 0), ("nova", 1)):
        retain_run(
            workspace, FINAL, team, predictions(workspace, FINAL, recognition_answers(wrong))
        )
    assert piste("rescore", "-e", FINAL)[0] == 0
    left = retain_run(
        workspace, FINAL, "nova", predictions(workspace, FINAL, recognition_answers(2))
    )
    code, out, _ = piste("board", "-e", FINAL)
    assert code == 0
    lines = out.splitlines()
    first = next(line for line in lines if line.startswith("1 "))
    second = next(line for line in lines if line.startswith("2 "))
    assert first.split()[1:4] == ["clerc", "†", "organizer"]
    assert second.split()[1:4] == ["nova", "certified", "1"]
    assert second.rstrip().endswith("tie")
    assert any(" to +" in line and "28.5.2" in line for line in lines)
    assert max(map(len, lines[3:7])) <= 80
    assert any("trained on private data" in line for line in lines)
    assert any(f"run {left} · not scored on labels-v1 yet" in line for line in lines)
    open_data = piste("board", "-e", FINAL, "--track", "open-data", "--json")[1]
    assert [row["team"] for row in parsed(open_data)["rows"]] == ["nova"]


def test_a_host_without_labels_shows_the_board_and_says_why_no_interval_stands_there(
    workspace: Workspace, piste: Piste
) -> None:
    for team, wrong in (("clerc", 0), ("nova", 1)):
        retain_run(
            workspace, FINAL, team, predictions(workspace, FINAL, recognition_answers(wrong))
        )
    piste("rescore", "-e", FINAL)
    with_labels = parsed(piste("board", "-e", FINAL, "--json")[1])["rows"][1]["tie"]
    assert with_labels["paired"]["delta"] > 0
    (workspace.store.root / "keys/labels.agekey").unlink()
    code, out, _ = piste("board", "-e", FINAL, "--json")
    tie = parsed(out)["rows"][1]["tie"]
    assert code == 0
    assert tie["paired"] is None
    assert "identity" in tie["reason"]
    assert tie["tied"] == with_labels["tied"]
    code, out, err = piste("rescore", "-e", FINAL, "--json")
    assert (code, parsed(out)["error"]["kind"]) == (3, "IdentityMissing")
    assert err.startswith("piste: ")


@pytest.mark.parametrize(
    ("words", "code", "fact"),
    [
        (("board", "-e", "nothing"), 3, "the editions are exam-final, exam-qualifier"),
        (("board", "-e", FINAL, "--labels", "labels-v7"), 3, "no labels labels-v7"),
        (("board", "-e", FINAL, "--qualifier", "nothing"), 3, "nothing: not in this workspace"),
        (("board", "-e", FINAL, "--qualifier", "a", "--final", "b"), 2, "--qualifier for a Final"),
        (("review", "0" * 16, "accept", "--reason", "x"), 3, "not in the ledger"),
        (("submit", "/nowhere", "-e", QUALIFIER, "-t", "nova"), 2, "/nowhere"),
    ],
)
def test_a_refusal_says_the_fact_and_ends_with_its_code(
    piste: Piste, words: tuple[str, ...], code: int, fact: str
) -> None:
    ended, out, err = piste(*words)
    assert (ended, out) == (code, "")
    assert fact in err
    assert "Traceback" not in err
