"""A starter kit is whole, works as it is, and never touches what is there already."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from manifests.annotations import EntrantAnnotation
from manifests.editions import Track
from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.exam import parse_exam
from manifests.predictions.lines import ClipExpectation
from orchestrator.editions.epee.epee_folder import EpeeFolder
from orchestrator.editions.open_clips import read_open_clips
from orchestrator.samples.new_kit import kit_files, new_kit
from orchestrator.scoring.rules.assessment import assess_predictions
from orchestrator.support.files.new_folder import create_folder

TRACKS: tuple[Track, ...] = get_args(Track)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def expected(clip: EntrantAnnotation) -> ClipExpectation:
    return ClipExpectation(n_segments=len(clip.segments), n_frames=clip.n_frames)


@pytest.mark.parametrize("track", TRACKS)
def test_a_kit_has_every_file_and_no_mark_left_in_them(tmp_path: Path, track: Track) -> None:
    made = new_kit(tmp_path, "my-entry", track, create=create_folder)
    found = {
        path.relative_to(made.folder).as_posix()
        for path in made.folder.rglob("*")
        if path.is_file()
    }
    assert found == set(made.files)
    assert {"Dockerfile", "Makefile", "README.md", "app/main.py", "test_main.py"} <= found
    texts = {name: (made.folder / name).read_text() for name in found}
    assert not [name for name, text in texts.items() if "@NAME@" in text or "@TRACK@" in text]
    assert "my-entry" in texts["README.md"]
    assert f"--track {track}" in texts["Makefile"]
    assert names_in(tmp_path) == ["my-entry"]


@pytest.mark.parametrize("track", TRACKS)
def test_the_kit_s_readme_is_one_page(track: Track) -> None:
    lines = kit_files("a", track)["README.md"].decode().splitlines()
    assert len(lines) <= 66
    assert max(map(len, lines)) <= 100


PYTEST = ("pytest", "-q", "-p", "no:cacheprovider", ".")
UNITTEST = ("unittest", "test_main")


@pytest.mark.parametrize(
    ("track", "runner"),
    [*((track, UNITTEST) for track in TRACKS), ("recognition", PYTEST)],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_the_kit_s_own_test_passes(tmp_path: Path, track: Track, runner: tuple[str, ...]) -> None:
    folder = new_kit(tmp_path, "entry", track, create=create_folder).folder
    command = [sys.executable, "-W", "error", "-m", *runner]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("track", TRACKS)
def test_the_kit_s_test_fails_when_its_program_is_broken(tmp_path: Path, track: Track) -> None:
    folder = new_kit(tmp_path, "entry", track, create=create_folder).folder
    program = folder / "app" / "main.py"
    program.write_text(program.read_text().replace('exam["clips"]', 'exam["clips"][1:]'))
    command = [sys.executable, "-m", "unittest", "test_main"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 1


@pytest.mark.parametrize("track", TRACKS)
def test_the_kit_s_predictions_for_the_sample_are_valid_and_complete(
    tmp_path: Path, sample_root: Path, track: Track
) -> None:
    """The kit's program on exactly the files that a container would find below /input."""
    folder = new_kit(tmp_path, "entry", track, create=create_folder).folder
    exam = read_open_clips(EpeeFolder(sample_root), track=track)
    seen: list[EntrantAnnotation] = []
    inputs, outputs = tmp_path / "input", tmp_path / "output"
    for file in exam.files(seen.append):
        (inputs / file.name).parent.mkdir(parents=True, exist_ok=True)
        (inputs / file.name).write_bytes(file.data)
    outputs.mkdir()
    assert parse_exam((inputs / "exam.json").read_bytes(), source="exam.json").track == track
    runpy.run_path(str(folder / "app" / "main.py"))["main"](inputs, outputs)
    data = (outputs / "predictions.jsonl").read_bytes()
    assessment = assess_predictions(
        track, data, clips={each.clip_id: expected(each) for each in seen}
    )
    assert assessment.problems == ()
    assert assessment.complete
    assert len({line.partition(",")[2] for line in data.decode().splitlines()}) > 1


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../up", "a/b", "-x", "x-", "Has-Capitals", "ünder", "a" * 64, "a\n"]
)
def test_a_name_that_cannot_name_folder_and_image_is_malformed(tmp_path: Path, name: str) -> None:
    with pytest.raises(MalformedDocument, match="as my-entry"):
        new_kit(tmp_path, name, "recognition", create=create_folder)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_filled_and_a_full_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "entry").mkdir()
    new_kit(tmp_path, "entry", "recognition", create=create_folder)
    before = names_in(tmp_path / "entry")
    with pytest.raises(RefusedByPolicy, match="not empty"):
        new_kit(tmp_path, "entry", "translation", create=create_folder)
    assert names_in(tmp_path / "entry") == before


def test_a_file_or_a_link_of_that_name_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("file", "link"):
        with pytest.raises(RefusedByPolicy, match="choose another name"):
            new_kit(tmp_path, name, "recognition", create=create_folder)
    assert (tmp_path / "file").read_text() == "mine"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_nothing_half_done_stays_when_the_disk_fills_up(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(504 * 1024))
    with pytest.raises(PlatformFault, match="the disk is full"):
        new_kit(small_disk, "entry", "recognition", create=create_folder)
    assert names_in(small_disk) == ["filler"]


def test_the_lock_of_numpy_in_the_kit_admits_the_numpy_that_builds_it_offline() -> None:
    stated = kit_files("a", "recognition")["requirements.txt"].decode().strip()
    assert stated == "numpy>=2.0,<3"
    assert np.__version__.startswith("2.")


def test_json_examples_in_the_readmes_are_valid_predictions_lines() -> None:
    for track in TRACKS:
        text = kit_files("a", track)["README.md"].decode()
        line = next(line for line in text.splitlines() if line.startswith('`{"clip_id"'))
        document = line.strip("`").encode()
        assert json.loads(document)["clip_id"] == "0001"
        clips = {"0001": ClipExpectation(n_segments=2, n_frames=100)}
        assert assess_predictions(track, document + b"\n", clips=clips).problems == ()
