"""`piste score` on each track, on the files that ship with the project."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples.make import example_files
from tests.support.terminal_fixtures import Said, Type

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

CARD = {"track", "scorer", "labels", "complete", "public", "private", "provenance"}
FILES = {
    "recognition": ("predictions.jsonl", "--vocabulary", "vocabulary.txt", "--held-out", "ECHO"),
    "translation": (
        *("predictions.jsonl", "--bleurt-scores", "bleurt-scores.jsonl"),
        *("--pose", "pose", "--reference-pose", "reference-pose"),
    ),
    "segmentation": (
        *("baseline.predictions.jsonl", "--vocabulary", "vocabulary.txt"),
        *("--consumer", "baseline.consumer.jsonl"),
    ),
}
PUBLIC_KEYS = {
    "recognition": {
        *("macro_f1", "macro_f1_floor", "macro_f1_min3", "top1", "top3", "top1_by_length"),
        *("held_out", "bleu1", "bleu2", "ger", "ger_levenshtein", "false_alarms", "abstention"),
        "counts",
    },
    "translation": {
        *("s_total", "s_translation", "s_translation_partial", "bleurt", "chrf", "bleu"),
        *("by_slice", "grounding", "s_generalization", "s_pose", "counts"),
        *("signatures", "bleurt_checkpoint", "reasons"),
    },
    "segmentation": {
        *("mf1b", "mf1s", "frame_macro_f1", "frame_macro_f1_io", "foreground_iou", "coverage"),
        *("retained", "purity"),
        *("matched_accuracy", "all_reference_accuracy", "auc_ru", "auc_ru_grid", "wer_all"),
        *("wer_iv", "oov_share", "count_ratio_all", "count_ratio_iv", "rejection", "counts"),
        *("utility", "intervals", "reasons"),
    },
}
"""The keys of the cards of the example files: what the design fixes, and what was added."""
INNER_KEYS: dict[str, dict[str, set[str]]] = {
    "recognition": {
        "held_out": {"n", "top1", "half_width", "wilson"},
        "abstention": {
            *("accuracy_at_80", "coverage_at_90", "aurc", "false_alarms_at_80"),
            *("auroc_right_wrong", "auroc_right_oov", "curve"),
        },
        "counts": {"clips", "positions", "scored_tokens", "scored_signs", "oov_positions"},
    },
    "translation": {
        "grounding": {"g", "m", "threshold", "passed", "by_component"},
        "by_slice": {"studio", "broadcast", "conversational", "canary"},
        "bleurt_checkpoint": {"name", "sha256"},
    },
    "segmentation": {
        "wer_all": {"wer", "s", "d", "i", "n"},
        "wer_iv": {"wer", "s", "d", "i", "n"},
    },
}
PRIVATE_KEYS = {
    "recognition": {"by_sign", "confusion"},
    "translation": {"grounding_scores", "by_clip"},
    "segmentation": {"by_signer"},
}
TRACKS = tuple(FILES)


Piste = Callable[..., Said]


@pytest.fixture
def piste(typed: Type, monkeypatch: pytest.MonkeyPatch) -> Iterator[Piste]:
    """Type commands in an empty folder: no workspace, and an engine that cannot be."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    monkeypatch.setenv("COLUMNS", "80")
    yield typed
    assert list(Path.cwd().iterdir()) == []


def words(track: str, *more: object, **changed: Path) -> list[object]:
    """Return `score` of the track's example files; `changed` names other files by option."""
    predictions, *options = FILES[track]
    folder = EXAMPLES / track
    named = {"labels": folder / "labels-v1.jsonl", "predictions": folder / predictions}
    found: list[object] = ["score", "--track", track]
    for option, path in (named | changed).items():
        found += [f"--{option}", path]
    for word in options:
        plain = word.startswith("--") or word == "ECHO"
        found.append(word if plain else folder / word)
    return [*found, *more]


def test_the_example_files_are_what_the_generator_makes() -> None:
    made = example_files()
    tracked = [p for track in TRACKS for p in (EXAMPLES / track).rglob("*") if p.is_file()]
    assert {str(path.relative_to(EXAMPLES)): path.read_bytes() for path in tracked} == made
    assert sum(map(len, made.values())) < 300_000


@pytest.mark.parametrize("track", TRACKS)
def test_score_prints_one_card_with_the_keys_that_are_promised(piste: Piste, track: str) -> None:
    ended = piste(*words(track, "--json"))
    assert (ended.code, ended.err) == (0, "")
    card = ended.document
    assert set(card) == CARD
    assert set(card["scorer"]) == {"name", "version", "string"}
    assert (card["track"], card["labels"], card["complete"]) == (track, "labels-v1", True)
    assert set(card["public"]) == PUBLIC_KEYS[track]
    for name, keys in INNER_KEYS[track].items():
        assert set(card["public"][name]) == keys, name
    assert set(card["private"]) == PRIVATE_KEYS[track]


@pytest.mark.parametrize("track", TRACKS)
def test_the_same_files_give_the_same_card_to_the_last_byte(piste: Piste, track: str) -> None:
    assert piste(*words(track, "--json")).out == piste(*words(track, "--json")).out


@pytest.mark.parametrize("track", TRACKS)
def test_the_order_of_the_lines_changes_no_figure(piste: Piste, track: str, tmp_path: Path) -> None:
    straight = piste(*words(track, "--json")).document
    turned = tmp_path / "turned.jsonl"
    lines = (EXAMPLES / track / FILES[track][0]).read_bytes().splitlines(keepends=True)
    turned.write_bytes(b"".join(reversed(lines)))
    again = piste(*words(track, "--json", predictions=turned)).document
    assert again["public"] == straight["public"]


def test_the_recognition_table_shows_what_the_document_holds(piste: Piste) -> None:
    public = piste(*words("recognition", "--json")).document["public"]
    shown = piste(*words("recognition"))
    assert shown.code == 0
    row = next(line for line in shown.out.splitlines() if "macro-F1 " in line)
    floor = 100 * public["macro_f1_floor"]
    assert f"{100 * public['macro_f1']:.1f}% ± {floor:.1f}" in row
    assert f"n = {public['held_out']['n']}" in shown.out


def test_the_translation_table_shows_what_the_document_holds(piste: Piste) -> None:
    public = piste(*words("translation", "--json")).document["public"]
    shown = piste(*words("translation")).out
    for name in ("s_total", "chrf", "bleu", "s_pose"):
        assert f"{public[name]:.3f}" in shown
    assert "gate not enforced" in shown


def test_the_segmentation_table_shows_what_the_document_holds(piste: Piste) -> None:
    public = piste(*words("segmentation", "--json")).document["public"]
    shown = piste(*words("segmentation")).out
    for name in ("mf1s", "mf1b", "auc_ru"):
        assert f"{100 * public[name]:.1f}%" in shown
    wer = public["wer_all"]
    assert f"S {wer['s']} D {wer['d']} I {wer['i']} of {wer['n']}" in shown


@pytest.mark.parametrize("track", TRACKS)
def test_a_table_holds_no_line_wider_than_the_terminal_and_no_null(
    piste: Piste, track: str
) -> None:
    shown = piste(*words(track)).out
    assert max(map(len, shown.splitlines())) <= 80
    assert "None" not in shown


def test_poses_and_bleurt_scores_are_left_out_together_with_what_rests_on_them(
    piste: Piste,
) -> None:
    folder = EXAMPLES / "translation"
    bare = piste(
        *("score", "--track", "translation", "--json"),
        *("--labels", folder / "labels-v1.jsonl", "--predictions", folder / "predictions.jsonl"),
    ).document["public"]
    full = piste(*words("translation", "--json")).document["public"]
    assert [bare[name] for name in ("s_total", "s_translation", "bleurt", "s_pose")] == [None] * 4
    assert bare["s_translation_partial"] == full["s_translation_partial"]
    assert bare["grounding"]["m"] == "chrf"
    assert {"s_total", "s_translation", "bleurt", "s_pose"} <= set(bare["reasons"])


def test_a_predicted_pose_that_is_the_reference_scores_one_and_a_missing_one_nothing(
    piste: Piste, tmp_path: Path
) -> None:
    folder = EXAMPLES / "translation"
    copied = tmp_path / "pose"
    copied.mkdir()
    references = sorted((folder / "reference-pose").iterdir())
    for path in references[:-1]:
        (copied / path.name).write_bytes(path.read_bytes())
    found = words("translation", "--json")
    found[found.index(folder / "pose")] = copied
    public = piste(*found).document["public"]
    assert public["s_pose"] == pytest.approx((len(references) - 1) / len(references))


def test_without_a_consumer_localisation_stands_and_recognition_is_null(piste: Piste) -> None:
    folder = EXAMPLES / "segmentation"
    bare = piste(
        *("score", "--track", "segmentation", "--json"),
        *("--labels", folder / "labels-v1.jsonl"),
        *("--predictions", folder / "baseline.predictions.jsonl"),
    ).document["public"]
    full = piste(*words("segmentation", "--json")).document["public"]
    assert (bare["mf1s"], bare["mf1b"]) == (full["mf1s"], full["mf1b"])
    assert bare["all_reference_accuracy"] is None
    assert {"wer_all", "wer_iv", "all_reference_accuracy"} <= set(bare["reasons"])


@pytest.mark.parametrize(("track", "option"), [(t, o) for t in TRACKS for o in ("seed", "n")])
def test_seed_and_resamples_stand_in_the_scorer_string(
    piste: Piste, track: str, option: str
) -> None:
    words_of = {"seed": ("--seed", 7), "n": ("--resamples", 150)}
    in_string = {"seed": "seed:7", "n": "resamples:150"}
    string = piste(*words(track, "--json", *words_of[option])).document["scorer"]["string"]
    assert in_string[option] in string.split("|")
    assert in_string[option] not in piste(*words(track, "--json")).document["scorer"]["string"]


def test_without_a_held_out_signer_the_figure_is_null_with_its_reason(piste: Piste) -> None:
    found = words("recognition", "--json")
    at = found.index("--held-out")
    del found[at : at + 2]
    public = piste(*found).document["public"]
    assert public["held_out"] is None
    assert "held-out" in public["reasons"]["held_out"]


def test_a_held_out_signer_that_signs_no_clip_is_refused(piste: Piste) -> None:
    found = words("recognition")
    found[found.index("ECHO")] = "NOBODY"
    ended = piste(*found)
    assert (ended.code, ended.out) == (2, "")
    assert "NOBODY" in ended.err


BAD_LINES = {
    "recognition": [
        ('{"clip_id": "CLIP", "signs": [{"candidates": ["WHO"], "confidence": NaN}]}', "NaN"),
        ('{"clip_id": "CLIP", "signs": [{"candidates": ["WHO"], "confidence": 1.5}]}', "1.5"),
        ('{"clip_id": "CLIP", "signs": [{"candidates": ["A", "B", "C", "D"]}]}', "4"),
        ('{"clip_id": "CLIP", "signs": ["WHO KNOWS"]}', "whitespace"),
        ('{"clip_id": "CLIP", "signs": ["A"], "signs": ["B"]}', "signs"),
        ('{"clip_id": "CLIP", "signs": ' + str(["A"] * 40).replace("'", '"') + "}", "40"),
        ('{"clip_id": "clip_9999", "signs": []}', "clip_9999"),
        ("not json", "JSON"),
    ],
    "translation": [
        ('{"clip_id": "CLIP", "text": 7}', "text"),
        ('{"clip_id": "CLIP", "sentence": "Now."}', "text"),
        ('{"clip_id": "clip_9999", "text": "Now."}', "clip_9999"),
        ("[]", "object"),
    ],
    "segmentation": [
        ('{"clip_id": "CLIP", "segments": [{"start_frame": 5, "end_frame": 5}]}', "5"),
        ('{"clip_id": "CLIP", "segments": [{"start_frame": 5, "end_frame": 9999}]}', "9999"),
        ('{"clip_id": "CLIP", "segments": [{"start_frame": 1.5, "end_frame": 9}]}', "whole number"),
        (
            '{"clip_id": "CLIP", "segments": [{"start_frame": 9, "end_frame": 20}, {"start_frame": 15, "end_frame": 25}]}',
            "overlap",
        ),
        ('{"clip_id": "clip_9999", "segments": []}', "clip_9999"),
    ],
}


@pytest.mark.parametrize(
    ("track", "line", "fact"), [(t, *bad) for t, lines in BAD_LINES.items() for bad in lines]
)
def test_a_bad_line_is_named_with_file_clip_and_number_and_nothing_is_scored(
    piste: Piste, tmp_path: Path, track: str, line: str, fact: str
) -> None:
    good = (EXAMPLES / track / FILES[track][0]).read_text().splitlines()
    clip = json.loads(good[2])["clip_id"]
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join([*good[:2], line.replace("CLIP", clip), *good[3:]]) + "\n")
    ended = piste(*words(track, predictions=bad))
    assert (ended.code, ended.out) == (2, "")
    assert "bad.jsonl:3" in ended.err
    assert fact.lower() in ended.err.lower()
    if "CLIP" in line:
        assert clip in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("track", TRACKS)
def test_a_clip_that_is_answered_twice_is_refused(piste: Piste, tmp_path: Path, track: str) -> None:
    good = (EXAMPLES / track / FILES[track][0]).read_bytes().splitlines(keepends=True)
    twice = tmp_path / "twice.jsonl"
    twice.write_bytes(b"".join([*good, good[0]]))
    ended = piste(*words(track, predictions=twice))
    assert (ended.code, ended.out) == (2, "")
    assert f"twice.jsonl:{len(good) + 1}" in ended.err


@pytest.mark.parametrize("track", TRACKS)
def test_a_missing_clip_makes_the_card_incomplete_and_every_figure_null(
    piste: Piste, tmp_path: Path, track: str
) -> None:
    good = (EXAMPLES / track / FILES[track][0]).read_bytes().splitlines(keepends=True)
    short = tmp_path / "short.jsonl"
    short.write_bytes(b"".join(good[1:]))
    ended = piste(*words(track, "--json", predictions=short))
    assert ended.code == 1
    card = ended.document
    assert card["complete"] is False
    figures = PUBLIC_KEYS[track] - {"counts", "reasons", "signatures", "bleurt_checkpoint"}
    assert {name: card["public"][name] for name in figures} == dict.fromkeys(figures)
    assert set(card["public"]["reasons"]) == figures
    shown = piste(*words(track, predictions=short))
    assert shown.code == 1
    assert "incomplete" in shown.out


FOREIGN = [
    ("recognition", "--consumer", "recognition/predictions.jsonl"),
    ("recognition", "--bleurt-scores", "translation/bleurt-scores.jsonl"),
    ("recognition", "--pose", "translation/pose"),
    ("translation", "--vocabulary", "recognition/vocabulary.txt"),
    ("translation", "--held-out", "ECHO"),
    ("translation", "--consumer", "recognition/predictions.jsonl"),
    ("segmentation", "--held-out", "ECHO"),
    ("segmentation", "--reference-pose", "translation/reference-pose"),
    ("segmentation", "--bleurt-checkpoint", "translation/pose"),
]


@pytest.mark.parametrize(("track", "option", "value"), FOREIGN)
def test_an_option_of_another_track_is_refused_by_name(
    piste: Piste, track: str, option: str, value: str
) -> None:
    ended = piste(*words(track), option, value if value == "ECHO" else EXAMPLES / value)
    assert (ended.code, ended.out) == (2, "")
    assert f"{option} does not belong to the track {track}" in ended.err


def test_recognition_without_a_vocabulary_is_refused(piste: Piste) -> None:
    folder = EXAMPLES / "recognition"
    ended = piste(
        *("score", "--track", "recognition", "--labels", folder / "labels-v1.jsonl"),
        *("--predictions", folder / "predictions.jsonl"),
    )
    assert (ended.code, ended.out) == (2, "")
    assert "--vocabulary" in ended.err


def test_poses_without_references_are_refused(piste: Piste) -> None:
    folder = EXAMPLES / "translation"
    ended = piste(
        *("score", "--track", "translation", "--labels", folder / "labels-v1.jsonl"),
        *("--predictions", folder / "predictions.jsonl", "--pose", folder / "pose"),
    )
    assert (ended.code, ended.out) == (2, "")
    assert "--reference-pose" in ended.err


def test_two_sources_of_bleurt_are_refused(piste: Piste, tmp_path: Path) -> None:
    ended = piste(*words("translation", "--bleurt-checkpoint", tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert "not both" in ended.err


@pytest.mark.parametrize("track", TRACKS)
def test_labels_of_another_track_are_refused_with_file_and_line(piste: Piste, track: str) -> None:
    other = "translation" if track != "translation" else "recognition"
    ended = piste(*words(track, labels=EXAMPLES / other / "labels-v1.jsonl"))
    assert (ended.code, ended.out) == (2, "")
    assert "labels-v1.jsonl" in ended.err
    assert "labels-v1.jsonl:1" in ended.err


def test_consumer_answers_that_do_not_fit_the_predicted_segments_are_refused(
    piste: Piste, tmp_path: Path
) -> None:
    lines = (EXAMPLES / "segmentation/baseline.consumer.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["signs"] += ["WHO"] * 3
    consumer = tmp_path / "consumer.jsonl"
    consumer.write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    found = words("segmentation")
    found[found.index("--consumer") + 1] = consumer
    ended = piste(*found)
    assert (ended.code, ended.out) == (2, "")
    assert "consumer.jsonl:1" in ended.err
    assert first["clip_id"] in ended.err


def test_bleurt_scores_that_lack_a_clip_are_refused(piste: Piste, tmp_path: Path) -> None:
    lines = (EXAMPLES / "translation/bleurt-scores.jsonl").read_bytes().splitlines(keepends=True)
    scores = tmp_path / "scores.jsonl"
    scores.write_bytes(b"".join(lines[:-1]))
    found = words("translation")
    found[found.index("--bleurt-scores") + 1] = scores
    ended = piste(*found)
    assert (ended.code, ended.out) == (2, "")
    assert json.loads(lines[-1])["clip_id"] in ended.err


def test_a_pose_that_is_no_pose_is_refused_by_its_file(piste: Piste, tmp_path: Path) -> None:
    folder = tmp_path / "pose"
    folder.mkdir()
    for path in (EXAMPLES / "translation/pose").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    broken = folder / "clip_0005.npy"
    broken.write_bytes(broken.read_bytes()[:-4])
    found = words("translation")
    found[found.index("--pose") + 1] = folder
    ended = piste(*found)
    assert (ended.code, ended.out) == (2, "")
    assert "clip_0005.npy" in ended.err


def test_a_pose_of_an_unknown_clip_is_refused(piste: Piste, tmp_path: Path) -> None:
    folder = tmp_path / "pose"
    folder.mkdir()
    some = (EXAMPLES / "translation/pose/clip_0005.npy").read_bytes()
    (folder / "clip_9999.npy").write_bytes(some)
    found = words("translation")
    found[found.index("--pose") + 1] = folder
    ended = piste(*found)
    assert (ended.code, ended.out) == (2, "")
    assert "clip_9999" in ended.err


@pytest.mark.parametrize("option", ["--labels", "--predictions"])
def test_a_file_that_is_not_there_is_named(piste: Piste, tmp_path: Path, option: str) -> None:
    found = words("recognition", "--json")
    found[found.index(option) + 1] = tmp_path / "absent.jsonl"
    ended = piste(*found)
    assert ended.code == 2
    assert "absent.jsonl" in ended.document["error"]["message"]
    assert ended.document["exit_code"] == 2


def test_revealed_labels_with_their_salt_give_the_same_figures(
    piste: Piste, tmp_path: Path
) -> None:
    plain = (EXAMPLES / "recognition/labels-v1.jsonl").read_bytes()
    salted = tmp_path / "labels-v1.jsonl"
    salted.write_bytes(b'{"salt":"' + b"ab" * 32 + b'"}\n' + plain)
    first = piste(*words("recognition", "--json")).document
    second = piste(*words("recognition", "--json", labels=salted)).document
    assert second["public"] == first["public"]
    assert second["provenance"]["labels_sha256"] != first["provenance"]["labels_sha256"]
