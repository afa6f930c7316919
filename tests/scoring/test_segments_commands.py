"""`piste segments`: edit gold, select on validation, score the choice on test."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.terminal_fixtures import Said, Type

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/segmentation"
VALIDATION = EXAMPLES / "validation"
VOCABULARY = EXAMPLES / "vocabulary.txt"
NAMES = ("baseline", "eager", "sluggish")
OBJECTIVES = {"mf1s", "auc_ru", "wer_all"}


Piste = Callable[..., Said]


@pytest.fixture
def piste(typed: Type, monkeypatch: pytest.MonkeyPatch) -> Piste:
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: typed("segments", *words)


def candidates(folder: Path, names: tuple[str, ...] = NAMES) -> list[object]:
    """Return the options that name segmenters with the consumer's answers to them."""
    found: list[object] = []
    for name in names:
        files = (folder / f"{name}.predictions.jsonl", folder / f"{name}.consumer.jsonl")
        found += ["--candidate", f"{name}={files[0]},{files[1]}"]
    return found


def select(output: Path, *more: object) -> list[object]:
    """Return `segments select` on the validation clips."""
    labels = ["--labels", VALIDATION / "labels-v1.jsonl", "--vocabulary", VOCABULARY]
    return ["select", *labels, *candidates(VALIDATION), "-o", output, *more]


def held_out(manifest: Path, *more: object, folder: Path = EXAMPLES) -> list[object]:
    """Return `segments test` on the test clips, or on the clips of another folder."""
    labels = ["--labels", folder / "labels-v1.jsonl", "--vocabulary", VOCABULARY]
    return ["test", "--manifest", manifest, *labels, *candidates(folder), *more]


@pytest.fixture
def manifest(piste: Piste, tmp_path: Path) -> Path:
    path = tmp_path / "selection.json"
    assert piste(*select(path)).code == 0
    return path


def rows(path: Path) -> dict[str, list[tuple[int, int]]]:
    """Return each clip's segments of a predictions file."""
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    return {
        row["clip_id"]: [(each["start_frame"], each["end_frame"]) for each in row["segments"]]
        for row in found
    }


def gold() -> dict[str, list[tuple[int, int]]]:
    """Return each test clip's segments in frames, half open, as the corpus defines them."""
    labels = [json.loads(line) for line in (EXAMPLES / "labels-v1.jsonl").read_bytes().splitlines()]
    return {
        label["clip_id"]: [
            (int(each["start"] * label["fps"]), int(each["end"] * label["fps"]))
            for each in label["segments"]
        ]
        for label in labels
    }


def edit(piste: Piste, output: Path, kind: str, size: int, *more: object) -> Said:
    labels = ("--labels", EXAMPLES / "labels-v1.jsonl")
    return piste("edit", *labels, "--kind", kind, "--size", size, "-o", output, *more)


def test_an_erosion_of_four_frames_takes_two_off_each_end_of_the_gold(
    piste: Piste, tmp_path: Path
) -> None:
    ended = edit(piste, tmp_path / "eroded.jsonl", "erosion", 4, "--json")
    total = sum(map(len, gold().values()))
    (file,) = ended.document["files"]
    assert (file["segments"], file["exact"]) == (total, total)
    expected = {clip: [(a + 2, b - 2) for a, b in spans] for clip, spans in gold().items()}
    assert rows(tmp_path / "eroded.jsonl") == expected


def test_the_gold_scores_one_and_an_edit_of_it_less(
    piste: Piste,
    typed: Type,
    tmp_path: Path,
) -> None:
    files = {"gold": tmp_path / "gold.jsonl"}
    files["gold"].write_text(
        "".join(
            json.dumps(
                {
                    "clip_id": clip,
                    "segments": [{"start_frame": a, "end_frame": b} for a, b in spans],
                }
            )
            + "\n"
            for clip, spans in gold().items()
        )
    )
    for kind, size in (("erosion", 5), ("deletion", 50), ("merge", 50)):
        files[kind] = tmp_path / f"{kind}.jsonl"
        assert edit(piste, files[kind], kind, size).code == 0
    figures = {}
    for name, path in files.items():
        options = ["--labels", EXAMPLES / "labels-v1.jsonl", "--predictions", path]
        scored = typed("score", "--track", "segmentation", *options, "--json")
        figures[name] = scored.document["public"]["mf1s"]
    assert figures.pop("gold") == 1
    assert all(figure < 1 for figure in figures.values()), figures


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        *(("dilation", 2), ("jitter", 4), ("deletion", 25), ("merge", 25), ("split", 25)),
        *(("iou-inner", 60), ("frames-inner", 3)),
    ],
)
def test_an_edit_is_a_valid_predictions_file_and_its_seed_makes_it_again(
    piste: Piste, tmp_path: Path, kind: str, size: int
) -> None:
    first, again = tmp_path / "first.jsonl", tmp_path / "again.jsonl"
    assert edit(piste, first, kind, size, "--seed", 5).code == 0
    assert edit(piste, again, kind, size, "--seed", 5).code == 0
    assert first.read_bytes() == again.read_bytes()
    edited = rows(first)
    assert edited.keys() == gold().keys()
    assert edited != gold()
    for spans in edited.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_outer_windows_that_overlap_come_in_several_files_of_segmentations(
    piste: Piste, tmp_path: Path
) -> None:
    ended = edit(piste, tmp_path / "outer.jsonl", "iou-outer", 40, "--json")
    files = [Path(file["file"]) for file in ended.document["files"]]
    assert [path.name for path in files[:2]] == ["outer.jsonl", "outer.2.jsonl"]
    assert sum(len(s) for path in files for s in rows(path).values()) == sum(
        map(len, gold().values())
    )


@pytest.mark.parametrize(
    ("kind", "size", "fact"),
    [("deletion", 101, "101"), ("erosion", -1, "-1"), ("iou-inner", 0, "0")],
)
def test_a_size_out_of_its_bounds_is_refused_and_nothing_is_written(
    piste: Piste, tmp_path: Path, kind: str, size: int, fact: str
) -> None:
    ended = edit(piste, tmp_path / "edited.jsonl", kind, size)
    assert (ended.code, ended.out) == (2, "")
    assert fact in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_never_overwritten(piste: Piste, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("mine")
    for ended in (edit(piste, path, "erosion", 1), piste(*select(path))):
        assert ended.code == 3
        assert "name a new file" in ended.err
    assert path.read_text() == "mine"


def test_the_manifest_names_a_choice_for_each_objective_and_all_that_it_rests_on(
    piste: Piste, tmp_path: Path
) -> None:
    path = tmp_path / "selection.json"
    printed = piste(*select(path, "--json")).document
    kept = json.loads(path.read_bytes())
    assert kept == printed
    assert kept["candidates"] == list(NAMES)
    assert set(kept["selected"]) == OBJECTIVES
    assert len(kept["validation_clips"]) == 24
    assert [level["retention_percent"] for level in kept["rejection"]] == [95, 90, 80]
    figures = {name: kept["inputs"][name]["figures"] for name in NAMES}
    best = {"mf1s": max, "auc_ru": max, "wer_all": min}
    for objective, choose in best.items():
        values = {name: figures[name][objective] for name in NAMES}
        assert kept["selected"][objective] == choose(values, key=values.__getitem__)


def test_the_examples_show_that_localisation_and_recognition_choose_differently(
    manifest: Path,
) -> None:
    selected = json.loads(manifest.read_bytes())["selected"]
    assert selected["mf1s"] != selected["auc_ru"]


def test_the_test_report_has_a_card_for_each_objective_with_frozen_thresholds_and_contrasts(
    piste: Piste, manifest: Path
) -> None:
    report = piste(*held_out(manifest, "--json")).document
    assert set(report["cards"]) == OBJECTIVES
    frozen = json.loads(manifest.read_bytes())["rejection"]
    for card in report["cards"].values():
        thresholds = [level["threshold"] for level in card["public"]["rejection"]]
        assert thresholds == [level["threshold"] for level in frozen]
    assert set(report["changes"]) == OBJECTIVES - {"mf1s"}
    for objective, changes in report["changes"].items():
        for figure, change in changes.items():
            assert change["low"] <= change["delta"] <= change["high"]
            public = report["cards"][objective]["public"]
            base = report["cards"]["mf1s"]["public"]
            values = [each[figure] for each in (public, base)]
            if figure.startswith("wer"):
                values = [each["wer"] for each in values]
            assert change["delta"] == pytest.approx(values[0] - values[1])
    assert report["joint"]["public"]["wer_iv"]["n"] > 0


def test_the_test_report_reads_well_at_80_columns(piste: Piste, manifest: Path) -> None:
    ended = piste(*held_out(manifest))
    assert ended.code == 0
    assert "selected by mf1s" in ended.out
    assert "instead of mf1s: auc_ru" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80


def test_a_selection_is_made_again_to_the_last_byte(
    piste: Piste, manifest: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.json"
    assert piste(*select(again)).code == 0
    assert again.read_bytes() == manifest.read_bytes()


def test_test_clips_that_were_in_validation_are_refused(piste: Piste, manifest: Path) -> None:
    ended = piste(*held_out(manifest, folder=VALIDATION))
    assert (ended.code, ended.out) == (3, "")
    assert "24 test clips" in ended.err
    assert "were in validation" in ended.err


def test_one_validation_clip_among_the_test_clips_is_enough_for_a_refusal(
    piste: Piste, manifest: Path, tmp_path: Path
) -> None:
    labels = tmp_path / "labels-v1.jsonl"
    smuggled = (VALIDATION / "labels-v1.jsonl").read_bytes().splitlines(keepends=True)[0]
    labels.write_bytes((EXAMPLES / "labels-v1.jsonl").read_bytes() + smuggled)
    words = held_out(manifest)
    words[words.index("--labels") + 1] = labels
    for name in (f"{each}.{kind}.jsonl" for each in NAMES for kind in ("predictions", "consumer")):
        first = (VALIDATION / name).read_bytes().splitlines(keepends=True)[0]
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes() + first)
    at = words.index("--candidate")
    words[at : at + 2 * len(NAMES)] = candidates(tmp_path)
    ended = piste(*words)
    assert (ended.code, ended.out) == (3, "")
    assert "1 test clips, validation_0001 first" in ended.err


def test_another_vocabulary_than_the_selection_s_is_refused(
    piste: Piste, manifest: Path, tmp_path: Path
) -> None:
    other = tmp_path / "vocabulary.txt"
    other.write_text(VOCABULARY.read_text() + "ZEBRA\n")
    words = held_out(manifest)
    words[words.index("--vocabulary") + 1] = other
    ended = piste(*words)
    assert (ended.code, ended.out) == (3, "")
    assert "vocabulary" in ended.err


def test_a_manifest_whose_choice_was_changed_by_hand_to_nobody_is_refused(
    piste: Piste, manifest: Path
) -> None:
    document = json.loads(manifest.read_bytes())
    document["selected"]["mf1s"] = "nobody"
    manifest.write_text(json.dumps(document))
    ended = piste(*held_out(manifest))
    assert (ended.code, ended.out) == (2, "")
    assert "does not declare" in ended.err


def test_a_selected_candidate_without_test_output_is_asked_for(
    piste: Piste, manifest: Path
) -> None:
    chosen = json.loads(manifest.read_bytes())["selected"]["mf1s"]
    words = held_out(manifest)
    at = words.index("--candidate")
    others = tuple(name for name in NAMES if name != chosen)
    words[at : at + 2 * len(NAMES)] = candidates(EXAMPLES, others)
    ended = piste(*words)
    assert (ended.code, ended.out) == (2, "")
    assert f"no test output of {chosen}" in ended.err


def test_a_candidate_that_is_written_wrongly_is_refused_with_how_it_is_written(
    piste: Piste, tmp_path: Path
) -> None:
    words = select(tmp_path / "selection.json")
    words[words.index("--candidate") + 1] = "baseline=only-one-file.jsonl"
    ended = piste(*words)
    assert (ended.code, ended.out) == (2, "")
    assert "NAME=PREDICTIONS.jsonl,CONSUMER.jsonl" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_bad_line_of_a_candidate_is_named_with_clip_and_number(
    piste: Piste, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    lines = (VALIDATION / "baseline.predictions.jsonl").read_text().splitlines()
    clip = json.loads(lines[1])["clip_id"]
    lines[1] = json.dumps({"clip_id": clip, "segments": [{"start_frame": 9, "end_frame": 3}]})
    bad.write_text("\n".join(lines) + "\n")
    words = select(tmp_path / "selection.json")
    at = words.index("--candidate") + 1
    words[at] = f"baseline={bad},{VALIDATION / 'baseline.consumer.jsonl'}"
    ended = piste(*words)
    assert (ended.code, ended.out) == (2, "")
    assert f"bad.jsonl:2, clip {clip}" in ended.err
    assert not (tmp_path / "selection.json").exists()
