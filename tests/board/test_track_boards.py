"""New labels and the board on each track, and the lead in translation, as typed on a real ledger."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from manifests.digests import sha256_hex
from manifests.editions import Track
from orchestrator.cli.main import main
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.workspace import Workspace
from scorers.translation import SegmentScores, TranslationLabel, TranslationParameters, bleurt_model
from scorers.translation.derangement import derange_main_slices
from scorers.translation.exam import arrange
from tests.support.small_exams import (
    CLIPS,
    FRAMES,
    clip_name,
    glosses_of,
    new_workspace,
    opaque_names,
    predictions,
    reference_of,
    register,
    retain_run,
    seal_edition,
    write_labels,
)

ALWAYS_OPEN = ("2020-01-01", "2099-01-01")
EDITION = "exam-final"
TRACKS: tuple[Track, ...] = ("recognition", "translation", "segmentation")
MAIN = {"recognition": "macro_f1", "translation": "s_translation_partial", "segmentation": "mf1s"}
Piste = Callable[..., Any]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "workspace"
    new_workspace(root)
    opened = wiring.open_workspace(root)
    for team in ("nova", "vega"):
        register(opened, team)
    return opened


@pytest.fixture
def piste(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Piste]:
    """Run a command with --json; return its document."""
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}

    def run(*words: str | Path) -> Any:
        options = ["-w", str(workspace.store.root), "--json"]
        monkeypatch.setattr(sys, "argv", ["piste", *map(str, words), *options])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert ended.value.code in {0, None}, captured.err
        return json.loads(captured.out)

    yield run
    for name, handler in handlers.items():
        signal.signal(name, handler)


def right_answer(track: Track, number: int) -> dict[str, object]:
    """Answer one clip as its first labels have it."""
    if track == "recognition":
        return {"signs": glosses_of(number)}
    if track == "translation":
        return {"text": reference_of(number)}
    return {"segments": [{"start_frame": 10 * i, "end_frame": 10 * i + 8} for i in range(3)]}


def changed_label(track: Track, number: int) -> dict[str, object]:
    """Return what a second annotator says otherwise about a clip."""
    if track == "recognition":
        return {"glosses": list(reversed(glosses_of(number)))}
    if track == "translation":
        return {"reference": f"quite another sentence number {number} it is"}
    segments = [{"gloss": glosses_of(number)[0], "start": 0.0, "end": FRAMES / 25}]
    return {"segments": segments}


@pytest.mark.parametrize("track", TRACKS)
def test_new_labels_make_a_new_row_and_the_old_row_and_its_files_stay(
    workspace: Workspace, piste: Piste, tmp_path: Path, track: Track
) -> None:
    seal_edition(workspace, tmp_path / "exam", EDITION, track=track, dates=ALWAYS_OPEN)
    data = predictions(workspace, EDITION, lambda number: right_answer(track, number))
    run_id = retain_run(workspace, EDITION, "nova", data)
    piste("rescore", "--edition", EDITION)
    folder = workspace.store.root / "runs" / run_id
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    labels = tmp_path / "labels-v2.jsonl"
    write_labels(labels, track, {number: changed_label(track, number) for number in range(2)})
    added = piste("labels", "add", "--edition", EDITION, "--version", "labels-v2", labels)
    assert added["version"] == "labels-v2"
    (row,) = piste("rescore", "--edition", EDITION, "--labels", "labels-v2")["rows"]
    assert (row["run_id"], row["new"]) == (run_id, True)
    first = json.loads((folder / "score.json").read_bytes())
    second = json.loads((folder / "scores/labels-v2/score.json").read_bytes())
    assert first["public"][MAIN[track]] == pytest.approx(1)
    assert second["public"][MAIN[track]] < first["public"][MAIN[track]]
    assert (first["labels"], second["labels"]) == ("labels-v1", "labels-v2")
    assert {path: path.read_bytes() for path in before} == before
    again = piste("rescore", "--edition", EDITION, "--labels", "labels-v2")["rows"]
    assert [one["new"] for one in again] == [False]


@pytest.mark.parametrize("track", TRACKS)
def test_each_label_version_has_a_board_of_its_own(
    workspace: Workspace, piste: Piste, tmp_path: Path, track: Track
) -> None:
    seal_edition(workspace, tmp_path / "exam", EDITION, track=track, dates=ALWAYS_OPEN)
    data = predictions(workspace, EDITION, lambda number: right_answer(track, number))
    retain_run(workspace, EDITION, "nova", data)
    labels = tmp_path / "labels-v2.jsonl"
    write_labels(labels, track, {0: changed_label(track, 0)})
    piste("labels", "add", "--edition", EDITION, "--version", "labels-v2", labels)
    piste("rescore", "--edition", EDITION)
    piste("rescore", "--edition", EDITION, "--labels", "labels-v2")
    first = piste("board", "--edition", EDITION)
    second = piste("board", "--edition", EDITION, "--labels", "labels-v2")
    assert (first["labels"]["version"], second["labels"]["version"]) == ("labels-v1", "labels-v2")
    shown = [board["rows"] or board["unranked"] for board in (first, second)]
    assert [len(rows) for rows in shown] == [1, 1]
    if track == "translation":
        # no BLEURT: the partial never ranks, and the board says so
        assert first["rows"] == []
        assert "s_total could not be computed" in first["unranked"][0]["reason"]
    else:
        assert first["rows"][0]["rank"] == 1
        figures = [rows[0]["figures"] for rows in shown]
        assert figures[0] != figures[1]


@pytest.mark.parametrize("track", TRACKS)
def test_a_submission_is_scored_reviewed_and_listed_on_each_track(
    workspace: Workspace, piste: Piste, tmp_path: Path, track: Track
) -> None:
    seal_edition(
        workspace,
        tmp_path / "exam",
        EDITION,
        track=track,
        stage="qualifier",
        dates=ALWAYS_OPEN,
    )
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(predictions(workspace, EDITION, lambda n: right_answer(track, n)))
    handed_in = piste("submit", "--edition", EDITION, "--team", "nova", mine)
    assert handed_in["score"]["track"] == track
    assert piste("board", "--edition", EDITION)["rows"] == []
    piste("review", handed_in["run_id"], "accept", "--reason", "looks right")
    board = piste("board", "--edition", EDITION)
    listed = [*board["rows"], *board["held"], *board["unranked"]]
    assert [one["run_id"] for one in listed] == [handed_in["run_id"]]
    assert len(opaque_names(workspace, EDITION)) == CLIPS


def under_opaque_names(
    workspace: Workspace, track: Track, corpus: Path, folder: Path
) -> list[str | Path]:
    """Write what an organizer could reveal, and return it as options of `piste score`."""
    names = {clip_name(n): name for n, name in opaque_names(workspace, EDITION).items()}
    rows = [json.loads(line) for line in (corpus / "labels-v1.jsonl").read_bytes().splitlines()]
    for row in rows:
        row["clip_id"] = names[row["clip_id"]]
    folder.mkdir()
    labels = folder / "labels-v1.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options: list[str | Path] = ["--labels", labels]
    if track != "translation":
        return [*options, "--vocabulary", corpus / "vocabulary.txt"]
    for part in ("pose", "reference-pose"):
        (folder / part).mkdir()
        options += [f"--{part}", folder / part]
    for clip, name in names.items():
        pose = (corpus / "clips/keypoints" / f"{clip}.npy").read_bytes()
        (folder / "reference-pose" / f"{name}.npy").write_bytes(pose)
    return options


@pytest.mark.parametrize("track", TRACKS)
def test_score_gives_the_very_card_of_a_run_from_files_alone(
    workspace: Workspace, piste: Piste, tmp_path: Path, track: Track
) -> None:
    seal_edition(workspace, tmp_path / "exam", EDITION, track=track, dates=ALWAYS_OPEN)
    data = predictions(workspace, EDITION, lambda number: right_answer(track, number))
    run_id = retain_run(workspace, EDITION, "nova", data)
    piste("rescore", "--edition", EDITION)
    folder = workspace.store.root / "runs" / run_id
    card = json.loads((folder / "score.json").read_bytes())
    parts = dict(part.split(":", 1) for part in card["scorer"]["string"].split("|")[1:])
    options = under_opaque_names(workspace, track, tmp_path / "exam", tmp_path / "revealed")
    if parts.get("held_out", "none") != "none":
        options += ["--held-out", parts["held_out"]]
    again = alone(
        *("score", "--track", track, "--predictions", folder / "predictions.jsonl", *options),
        *("--seed", parts["seed"], "--resamples", parts["resamples"]),
    )
    assert again["scorer"] == card["scorer"]
    assert again["public"] == card["public"]
    assert again.keys() - card.keys() == {"private"}
    kept = json.loads((folder / "score.private.json").read_bytes())
    assert kept.keys() == again.keys()
    assert again["private"] == kept["private"]


def alone(*words: str | Path) -> dict[str, object]:
    """Run a command that knows no workspace, in a process of its own."""
    program = "from orchestrator.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words), "--json"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


class Likeness:
    """Stands for a BLEURT checkpoint, whose weights no test can have: likeness of characters."""

    sha256 = sha256_hex(b"likeness of characters")


def likeness_scores(
    checkpoint: Likeness,
    labels: Sequence[TranslationLabel],
    texts: Mapping[str, str],
    parameters: TranslationParameters,
) -> SegmentScores:
    corpus = arrange(labels, texts)
    faced = derange_main_slices(corpus, parameters.derangement_key)

    def score(row: int, reference: int) -> float:
        pair = (corpus.references[reference], corpus.hypotheses[row])
        return SequenceMatcher(None, *pair, autojunk=False).ratio()

    rows = range(len(corpus.clip_ids))
    return SegmentScores(
        "likeness",
        checkpoint.sha256,
        {corpus.clip_ids[row]: score(row, row) for row in rows},
        {
            corpus.clip_ids[row]: score(row, int(faced[row]))
            for row in rows
            if corpus.is_main()[row]
        },
    )


def worded(number: int, *, right: Collection[int]) -> dict[str, object]:
    """Translate the clips of `right` rightly; of the others leave half of the sentence out."""
    text = reference_of(number)
    return {"text": text if number in right else text[: len(text) // 2]}


def test_the_lead_in_translation_changes_only_by_a_significant_advantage(
    workspace: Workspace, piste: Piste, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bleurt_model, "load_checkpoint", lambda _: Likeness())
    monkeypatch.setattr(bleurt_model, "segment_scores", likeness_scores)
    (workspace.store.root / "checkpoints/likeness").mkdir(parents=True)
    register(workspace, "lyra")
    seal_edition(
        workspace,
        tmp_path / "exam",
        EDITION,
        track="translation",
        extra="bleurt: {checkpoint: checkpoints/likeness}\n",
        dates=ALWAYS_OPEN,
    )

    def enter(team: str, right: Collection[int]) -> tuple[str, dict[str, Any]]:
        data = predictions(workspace, EDITION, lambda number: worded(number, right=right))
        run_id = retain_run(workspace, EDITION, team, data)
        piste("rescore", "--edition", EDITION)
        return run_id, piste("board", "--edition", EDITION)

    nova, alone = enter("nova", ())
    assert alone["groups"][0]["lead"]["run_id"] == nova
    _, within_noise = enter("vega", {0})
    first, second = within_noise["rows"]
    assert (first["team"], second["team"]) == ("nova", "vega")
    assert first["main"] < second["main"]
    assert second["tie"]["tied"] is True
    assert within_noise["groups"][0]["lead"]["run_id"] == nova
    lyra, changed = enter("lyra", range(CLIPS))
    assert [row["team"] for row in changed["rows"]] == ["lyra", "vega", "nova"]
    assert changed["groups"][0]["lead"]["run_id"] == lyra
    assert [row["leader"] for row in changed["rows"]] == [True, False, False]
