"""`piste certify` and `piste runs` as typed: exit codes, JSON, and what a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.simulated_world import SimulatedEnd, sleeps_for_ever
from tests.support.small_exams import recognition_answers, write_edition
from tests.support.story_steps import Ended, World, answering, asked, piste, simulated_world

EDITION, TEAM = "certified-final", "nova"
GOOD = answering(recognition_answers(wrong=2))


@dataclass(frozen=True, slots=True)
class Desk:
    """An organizer's terminal: a workspace with one sealed edition and one team."""

    world: World
    workspace: Path

    def certify(self, image: Path | str, *more: str, team: str = TEAM) -> Ended:
        words = ("certify", image, "--edition", EDITION, "--team", team, *more)
        return piste(*words, workspace=self.workspace)

    def runs(self, *words: str) -> Ended:
        return piste("runs", *words, workspace=self.workspace)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    root = tmp_path_factory.mktemp("desk")
    workspace, folder = root / "workspace", root / "edition"
    with simulated_world(root / "world") as world:
        asked("init", workspace)
        folder.mkdir()
        quota = "quota: {certified_runs: 50, attempts: 60}\n"
        asked("seal", write_edition(folder, EDITION, extra=quota), workspace=workspace)
        asked("team", "add", TEAM, workspace=workspace)
        yield Desk(world, workspace)


def test_certify_json_is_one_document_and_nothing_else(desk: Desk) -> None:
    ended = desk.certify(desk.world.image("good", GOOD), "--json")
    assert ended.code == 0
    document = ended.document()
    assert ended.out.count("\n") == ended.out.rstrip("\n").count("\n") + 1
    assert {
        "run_id",
        "edition",
        "team",
        "outcome",
        "diagnostics",
        "image",
        "environment",
        "quota",
        "predictions_sha256",
        "image_removed",
        "run_folder",
        "score",
    } <= set(document)
    assert set(document["image"]) == {
        "reference",
        "index_digest",
        "manifest_digest",
        "config_digest",
        "diff_ids",
        "platform",
    }
    assert {"docker", "api", "runtime", "runc", "containerd", "kernel", "gpu"} <= set(
        document["environment"]
    )
    assert {"certified_runs", "used", "left", "attempts_left"} <= set(document["quota"])
    assert (document["outcome"], document["image_removed"]) == ("completed", True)
    assert document["score"]["public"]["top1"] == pytest.approx(10 / 12)
    assert "private" not in document["score"]
    assert Path(document["run_folder"], "run.dsse.json").is_file()


def test_certify_shows_a_person_the_outcome_the_quota_and_the_folder(desk: Desk) -> None:
    before = desk.certify(desk.world.image("good", GOOD), "--json").document()["quota"]
    ended = desk.certify(desk.world.image("good", GOOD))
    assert ended.code == 0
    for words in ("completed", "macro", f"{before['used'] + 1} used", "removed", EDITION):
        assert words in ended.out
    assert "\x1b" not in ended.out


def _end(**fields: object) -> SimulatedEnd:
    return SimulatedEnd(runs_s=1.0, **fields)  # type: ignore[arg-type]  # its own fields


ENDS = {
    "nonzero-exit": lambda _files: _end(exit_code=3),
    "timed-out": sleeps_for_ever,
    "out-of-memory": lambda _files: _end(out_of_memory=True),
    "no-predictions": lambda _files: _end(),
    "invalid-predictions": lambda _files: _end(files={"predictions.jsonl": b"{"}),
    "output-limit": lambda _files: _end(files={"no good name": b""}),
}


@pytest.mark.parametrize("outcome", ENDS)
def test_an_entrant_that_does_not_complete_is_exit_1_with_its_codes(
    desk: Desk, outcome: str
) -> None:
    ended = desk.certify(desk.world.image(outcome, ENDS[outcome]), "--json")
    document = ended.document()
    assert (ended.code, document["outcome"], document["score"]) == (1, outcome, None)
    assert document["diagnostics"]
    shown = desk.runs("show", document["run_id"])
    assert shown.code == 0
    assert outcome in shown.out
    assert document["diagnostics"][0] in shown.out


def test_a_lost_engine_is_exit_4_and_the_run_is_given_back(desk: Desk) -> None:
    used = desk.certify(desk.world.image("good", GOOD), "--json").document()["quota"]["used"]
    desk.world.engine.lose_at("wait_for_exit")
    ended = desk.certify(desk.world.image("good", GOOD), "--json")
    desk.world.engine.restart()
    document = ended.document()
    assert (ended.code, document["outcome"]) == (4, "platform-fault")
    assert document["voided"]["by"] == "tool"
    assert document["quota"]["used"] == used
    reaped = desk.runs("reap", "--json")
    assert reaped.code == 0
    assert desk.world.containers_and_volumes() == ()


@pytest.mark.parametrize(
    ("words", "code", "fact"),
    [
        (("certify", "x/y:1", "--edition", EDITION, "--team", "nobody"), 3, "nobody"),
        (("certify", "/nowhere.tar", "--edition", EDITION, "--team", TEAM), 2, "/nowhere.tar"),
        (("certify", "x", "--edition", "no-such", "--team", TEAM), 3, "no-such"),
        (("certify", "x", "--edition", EDITION), 2, "--team"),
        (("certify", "x", "--edition", EDITION, "--team", TEAM, "--repeat", "11"), 2, "repeat"),
        (("certify", "engine:mine", "--edition", EDITION, "--team", TEAM), 3, "docker save"),
        (("runs", "show", "0123456789abcdef"), 3, "piste runs list"),
        (("runs", "void", "0123456789abcdef", "--reason", "why"), 3, "piste runs list"),
        (("runs", "void", "0123456789abcdef"), 2, "--reason"),
    ],
)
def test_refusals_name_the_fact_and_spend_nothing(
    desk: Desk, words: tuple[str, ...], code: int, fact: str
) -> None:
    before = desk.runs("list", "--json").document()
    ended = piste(*words, workspace=desk.workspace)
    assert (ended.code, ended.out) == (code, "")
    assert fact in ended.err
    assert "Traceback" not in ended.err
    assert desk.runs("list", "--json").document() == before


def test_a_refusal_with_json_is_a_document_too(desk: Desk) -> None:
    ended = desk.certify("/nowhere.tar", "--json")
    document = ended.document()
    assert (ended.code, document["exit_code"]) == (2, 2)
    assert "/nowhere.tar" in document["error"]["message"]


def test_an_untrusted_run_id_is_escaped_before_it_is_shown(desk: Desk) -> None:
    ended = desk.runs("show", "\x1b[2J")
    assert ended.code == 3
    assert "\x1b" not in ended.err


def test_runs_are_listed_shown_and_voided(desk: Desk) -> None:
    run_id = desk.certify(desk.world.image("good", GOOD), "--json").document()["run_id"]
    listed = desk.runs("list", "--edition", EDITION, "--team", TEAM)
    assert run_id in listed.out
    shown = asked("runs", "show", run_id, workspace=desk.workspace)
    assert (shown["run_id"], shown["voided"]) == (run_id, None)
    assert shown["score"]["public"]["top1"] == pytest.approx(10 / 12)
    voided = desk.runs("void", run_id, "--reason", "a clip was broken")
    assert voided.code == 0
    again = asked("runs", "show", run_id, workspace=desk.workspace)
    assert again["voided"] == {"by": "organizer", "reason": "a clip was broken"}
    assert again["quota"]["used"] == shown["quota"]["used"] - 1
    assert desk.runs("void", run_id, "--reason", "again").code == 3
    assert desk.runs("void", run_id, "--reason", " ").code == 2
    rows = {run["run_id"]: run for run in desk.runs("list", "--json").document()["runs"]}
    assert (rows[run_id]["state"], rows[run_id]["counts"]) == ("voided", False)


def test_reap_with_nothing_to_do_says_so(desk: Desk) -> None:
    desk.runs("reap")
    ended = desk.runs("reap")
    assert (ended.code, ended.out) == (0, "nothing to pick up\n")
    assert desk.runs("reap", "--json").document() == {"settled": []}
