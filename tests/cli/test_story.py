"""The long story: two organizers, one auditor, and nothing between them but exported files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from manifests.digests import sha256_hex
from manifests.errors import ClaimDoesNotHold
from orchestrator.evidence.make_receipt import make_receipt
from orchestrator.evidence.rules.receipt import verify_receipt
from orchestrator.wiring import workspaces as wiring
from tests.support.simulated_world import SimulatedEnd
from tests.support.small_exams import (
    glosses_of,
    predictions,
    recognition_answers,
    reference_of,
    write_edition,
    write_labels,
)
from tests.support.story_steps import (
    World,
    answering,
    asked,
    check_script,
    piste,
    simulated_world,
    unpacked,
)

QUALIFIER, FINAL = "clerc-qualifier", "clerc-final"
OTHER = "other-final"
DAY_S = 86_400
SECRET_LOG = b"a line of the container's log that could carry a clip"


@dataclass(frozen=True, slots=True)
class Published:
    """What left the organizers' hands, in a folder of its own, and the ids the story speaks of."""

    folder: Path
    runs: dict[str, str]
    final_keys: list[str]
    run_key: Path


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    root = tmp_path_factory.mktemp("story")
    with simulated_world(root / "images") as world:
        made = _clerc(world, root)
        _other_organizer(world, root, made)
        assert world.containers_and_volumes() == ()
        assert world.entrants.isdisjoint(world.engine.list_image_ids())
    _remove_workspaces(root)
    yield made
    shutil.rmtree(root)


def _remove_workspaces(root: Path) -> None:
    for name in ("clerc", "other", "exams", "images"):
        shutil.rmtree(root / name)


def _exam(root: Path, name: str, **fields: Any) -> Path:
    folder = root / "exams" / name
    folder.mkdir(parents=True)
    return write_edition(folder, name, **fields)


def _clerc(world: World, root: Path) -> Published:
    """Live through a season: a qualifier, a final, two label versions, faults and refunds."""
    workspace, public = root / "clerc", root / "public"
    public.mkdir()
    asked("init", workspace, "--origin", "example.org/clerc")
    for name, stage in ((QUALIFIER, "qualifier"), (FINAL, "final")):
        asked("seal", _exam(root, name, stage=stage), workspace=workspace)
    for team in ("nova", "lynx"):
        asked("team", "add", team, workspace=workspace)
    _keep_checkpoint(public / "before-the-first-run", workspace)
    runs = _submission(workspace, root) | _certified_runs(world, workspace)
    keys = _rotations(workspace, public)
    runs |= _runs_after_rotation(world, workspace, runs)
    _second_labels(workspace, root)
    _board(workspace, runs)
    _what_people_see(world, workspace, runs)
    _reveal(world, workspace, runs)
    _receipts(workspace, public, runs)
    asked("export", FINAL, "-o", public / "final.tar", workspace=workspace)
    asked("export", FINAL, "-o", public / "bag.tar", "--bagit", "--log", workspace=workspace)
    asked("export", QUALIFIER, "-o", public / "qualifier.tar", workspace=workspace)
    asked("export", runs["first"], "-o", public / "run.tar", "--private", workspace=workspace)
    assert piste("verify", workspace).code == 0
    return Published(public, runs, keys, public / "first-run-key.pem")


def _keep_checkpoint(path: Path, workspace: Path) -> None:
    path.write_text(piste("log", "checkpoint", workspace=workspace).out)


def _submission(workspace: Path, root: Path) -> dict[str, str]:
    mine = root / "exams" / "mine.jsonl"
    mine.write_bytes(
        predictions(wiring.open_workspace(workspace), QUALIFIER, recognition_answers(wrong=2))
    )
    done = asked("submit", mine, "-e", QUALIFIER, "-t", "nova", workspace=workspace)
    asked("review", done["run_id"], "accept", "--reason", "plausible", workspace=workspace)
    return {"submitted": done["run_id"]}


def _certify(image: Path, team: str, workspace: Path, *more: str) -> tuple[int, dict[str, Any]]:
    options = ("--edition", FINAL, "--team", team, "--json", *more)
    ended = piste("certify", image, *options, workspace=workspace)
    return ended.code, ended.document()


def _certified_runs(world: World, workspace: Path) -> dict[str, str]:
    good = world.image("nova", answering(recognition_answers(wrong=2), log=SECRET_LOG))
    code, first = _certify(good, "nova", workspace)
    assert (code, first["outcome"], first["quota"]["left"]) == (0, "completed", 2)
    assert first["score"]["public"]["top1"] == pytest.approx(10 / 12)

    world.engine.lose_at("wait_for_exit")
    code, lost = _certify(good, "nova", workspace)
    assert (code, lost["outcome"], lost["voided"]["by"]) == (4, "platform-fault", "tool")
    world.engine.restart()
    words = ("runs", "list", "--edition", FINAL, "--team", "nova")
    listed = asked(*words, workspace=workspace)["runs"]
    states = [(run["state"], run["counts"], run["labels"]) for run in listed]
    assert states == [("finished", True, ["labels-v1"]), ("voided", False, [])]
    assert world.containers_and_volumes() == ()

    crash = world.image("lynx", lambda _files: SimulatedEnd(exit_code=3, runs_s=1.0))
    code, crashed = _certify(crash, "lynx", workspace)
    assert (code, crashed["outcome"], crashed["score"]) == (1, "nonzero-exit", None)
    reason = "the organizer's input was at fault"
    asked("runs", "void", crashed["run_id"], "--reason", reason, workspace=workspace)
    shown = asked("runs", "show", crashed["run_id"], workspace=workspace)
    assert shown["voided"]["reason"] == reason
    assert (shown["quota"]["used"], shown["quota"]["attempts_used"]) == (0, 1)
    return {"first": first["run_id"], "lost": lost["run_id"], "crashed": crashed["run_id"]}


def _rotations(workspace: Path, public: Path) -> list[str]:
    """Rotate every key; return the ids that were published when the editions were sealed."""
    keys = asked("keys", workspace=workspace)["signing"]
    (first,) = [key["pem"] for key in keys if key["role"] == "run"]
    (public / "first-run-key.pem").write_text(first)
    for role in ("run", "scorer", "log"):
        rotated = asked("keys", "rotate", role, "--reason", "yearly", workspace=workspace)
        assert rotated["new_key"]["key_id"] != rotated["old_key_id"]
    return [key["key_id"] for key in keys]


def _runs_after_rotation(world: World, workspace: Path, runs: dict[str, str]) -> dict[str, str]:
    better = world.image("nova-2", answering(recognition_answers(wrong=1)))
    code, repeated = _certify(better, "nova", workspace, "--repeat", "2")
    assert (code, repeated["repeats_agree"], repeated["certified_run"]) == (0, True, 2)
    code, last = _certify(better, "nova", workspace)
    assert (code, last["quota"]["left"]) == (0, 0)

    before = piste("log", "checkpoint", workspace=workspace).out
    code, refused = _certify(better, "nova", workspace)
    assert (code, refused["error"]["kind"]) == (3, "RefusedByPolicy")
    replayed = asked("replay", runs["first"], world.folder / "nova.tar", workspace=workspace)
    assert (replayed["holds"], replayed["predictions"]["differing"]) == (True, 0)
    assert piste("replay", runs["first"], better, workspace=workspace).code == 3
    assert piste("log", "checkpoint", workspace=workspace).out == before
    return {"repeated": repeated["run_id"], "last": last["run_id"]}


def _second_labels(workspace: Path, root: Path) -> None:
    """Add what a second annotator reads otherwise, and score on it: old rows stay."""
    again = root / "exams" / "labels-v2.jsonl"
    changed: dict[int, dict[str, object]] = {0: {"glosses": ["NOW", *glosses_of(0)[1:]]}}
    write_labels(again, "recognition", changed)
    words = ("labels", "add", again, "-e", FINAL, "--version", "labels-v2", "--note", "two Deaf")
    asked(*words, workspace=workspace)
    rows = asked("rescore", "-e", FINAL, "--labels", "labels-v2", workspace=workspace)["rows"]
    assert [row["new"] for row in rows] == [True, True, True]
    again_rows = asked("rescore", "-e", FINAL, "--labels", "labels-v2", workspace=workspace)["rows"]
    assert [row["new"] for row in again_rows] == [False, False, False]


def _board(workspace: Path, runs: dict[str, str]) -> None:
    counted = {runs[name] for name in ("first", "repeated", "last")}
    for version in ("labels-v1", "labels-v2"):
        rows = asked("board", "-e", FINAL, "--labels", version, workspace=workspace)["rows"]
        assert {row["run_id"] for row in rows} == counted
        assert rows[-1]["run_id"] == runs["first"]


def _what_people_see(world: World, workspace: Path, runs: dict[str, str]) -> None:
    """The same without --json: words and tables, and no document."""
    table = piste("runs", "list", workspace=workspace).out
    rows = {line.split()[0]: line for line in table.splitlines()[1:]}
    assert set(runs.values()) == set(rows)
    assert "labels-v1, labels-v2" in rows[runs["last"]]
    assert "voided" in rows[runs["lost"]]
    shown = piste("runs", "show", runs["repeated"], workspace=workspace).out
    (outcome,) = [line for line in shown.splitlines() if line.startswith("outcome")]
    assert outcome.split() == ["outcome", "completed"]
    assert "agree to the last byte" in shown
    assert "certified runs: 3 used, 1 voided, 0 of 3 left; attempts: 6 of 10 left" in shown
    lost = piste("runs", "show", runs["lost"], workspace=workspace).out
    assert "platform-fault" in lost
    assert "by the tool: " in lost
    words = ("replay", runs["last"], world.folder / "nova-2.tar")
    replayed = piste(*words, workspace=workspace).out
    assert replayed.startswith("the replay agrees\n")
    assert "equal to the last digit" in replayed


def _reveal(world: World, workspace: Path, runs: dict[str, str]) -> None:
    early = piste("reveal", FINAL, workspace=workspace)
    assert (early.code, "open until 2027-03-01" in early.err) == (3, True)
    world.clock.advance(100 * DAY_S)
    code, late = _certify(world.folder / "lynx.tar", "lynx", workspace)
    assert (code, "closed" in late["error"]["message"]) == (3, True)
    revealed = asked("reveal", FINAL, workspace=workspace)
    assert sorted(revealed["files"]) == [
        "revealed/clips.sha256",
        "revealed/labels-v1.jsonl",
        "revealed/labels-v2.jsonl",
    ]


def _receipts(workspace: Path, public: Path, runs: dict[str, str]) -> None:
    opened = wiring.open_workspace(workspace)
    for name in ("first", "lost", "submitted"):
        (public / f"{name}.receipt.json").write_bytes(make_receipt(opened, runs[name]))


def _other_organizer(world: World, root: Path, made: Published) -> None:
    """Another organizer, another exam, another log; the same engine."""
    workspace = root / "other"
    asked("init", workspace, "--origin", "example.org/other")
    dates = ("2027-03-01", "2027-06-01")
    asked("seal", _exam(root, OTHER, track="translation", dates=dates), workspace=workspace)
    asked("team", "add", "nova", "--track", "private-data", workspace=workspace)
    image = world.image("translator", answering(lambda number: {"text": reference_of(number)}))
    words = ("certify", image, "--edition", OTHER, "--team", "nova")
    done = asked(*words, workspace=workspace)
    assert done["score"]["public"]["chrf"] == pytest.approx(1.0)
    made.runs["other"] = done["run_id"]
    asked("export", OTHER, "-o", made.folder / "other.tar", workspace=workspace)


def _checks(document: dict[str, Any]) -> dict[int, str]:
    return {check["number"]: check["result"] for check in document["checks"]}


def test_an_auditor_verifies_every_export_and_what_she_kept_from_elsewhere(
    published: Published,
) -> None:
    at = published.folder
    final = asked(
        "verify",
        at / "final.tar",
        "--checkpoint",
        at / "before-the-first-run",
        "--key",
        published.run_key,
        "--origin",
        "example.org/clerc",
    )
    results = _checks(final)
    assert results[4] == results[9] == results[10] == results[16] == results[26] == "pass"
    compared = {check["number"]: check["compared"] for check in final["checks"]}
    assert compared[24] == 3 * 2  # three completed runs, each on two label versions
    assert compared[26] == 3 * 2 + 2  # the same, and both label files with their commitments
    for name in ("bag.tar", "qualifier.tar", "run.tar", "other.tar"):
        assert asked("verify", at / name)["holds"] is True, name


def test_stock_tools_agree_with_piste(published: Published, tmp_path: Path) -> None:
    done = check_script(unpacked(published.folder / "final.tar", tmp_path / "final"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.endswith("Everything that these tools can check holds.\n")


def test_revealed_labels_of_either_version_give_the_same_cards_again(
    published: Published, tmp_path: Path
) -> None:
    folder = unpacked(published.folder / "final.tar", tmp_path / "final")
    labels = folder / "editions" / FINAL / "revealed"
    for version in ("labels-v1", "labels-v2"):
        given = asked("verify", folder, "--labels", labels / f"{version}.jsonl")
        assert _checks(given)[26] == "pass"
    foreign = tmp_path / "foreign.jsonl"
    foreign.write_bytes((labels / "labels-v1.jsonl").read_bytes().replace(b"OLD", b"NOW", 1))
    refused = piste("verify", folder, "--labels", foreign, "--json")
    assert (refused.code, _checks(refused.document())[26]) == (1, "fail")


def test_another_organizers_log_is_not_taken_for_this_one(published: Published) -> None:
    kept = published.folder / "before-the-first-run"
    words = ("verify", published.folder / "other.tar", "--json")
    for pin, number in (
        (("--checkpoint", kept), 10),
        (("--key", published.run_key), 4),
        (("--origin", "example.org/clerc"), 4),
    ):
        ended = piste(*words, *pin)
        assert (ended.code, _checks(ended.document())[number]) == (1, "fail"), pin


def test_a_doctored_copy_passes_neither_piste_nor_the_stock_tools(
    published: Published, tmp_path: Path
) -> None:
    """The forger makes the list of files anew, too: it needs no key."""
    folder = unpacked(published.folder / "other.tar", tmp_path / "other")
    assert check_script(folder).returncode == 0
    card = folder / "runs" / published.runs["other"] / "score.json"
    honest = card.read_bytes()
    forged = honest.replace(b'"bleu": 1.0', b'"bleu": 0.9', 1)
    assert forged != honest
    card.write_bytes(forged)
    sums = (folder / "SHA256SUMS").read_text()
    (folder / "SHA256SUMS").write_text(sums.replace(sha256_hex(honest), sha256_hex(forged)))
    ended = piste("verify", folder, "--json")
    failed = {number for number, result in _checks(ended.document()).items() if result == "fail"}
    assert (ended.code, failed) == (1, {18, 24})
    done = check_script(folder)
    assert (done.returncode, " 18  FALSE" in done.stdout) == (1, True)


def test_nothing_that_must_stay_left_with_the_exports(published: Published, tmp_path: Path) -> None:
    for name in ("qualifier", "run", "other"):
        folder = unpacked(published.folder / f"{name}.tar", tmp_path / name)
        files = [path for path in folder.rglob("*") if path.is_file()]
        everything = b"\0".join(path.read_bytes() for path in files)
        for secret in (SECRET_LOG, b"PRIVATE KEY", b"AGE-SECRET-KEY", b"\x93NUMPY"):
            assert secret not in everything, (name, secret)
        names = {path.name for path in files}
        assert names.isdisjoint({"log.age", "labels-v1.age", "clips.sha256.age"})
        assert ("score.private.json" in names) is (name == "run")


def test_receipts_verify_alone_with_the_keys_that_were_published_first(
    published: Published,
) -> None:
    for name, state in (("first", "finished"), ("lost", "voided"), ("submitted", "submitted")):
        data = (published.folder / f"{name}.receipt.json").read_bytes()
        proven = verify_receipt(data, source=name, trusted_key_ids=published.final_keys)
        assert proven.run.run_id == published.runs[name]
        assert proven.run.state.value == state, name
    with pytest.raises(ClaimDoesNotHold, match="trusted"):
        verify_receipt(data, source=name, trusted_key_ids=["0" * 64])
