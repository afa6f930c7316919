"""The sample edition: exact layout, seeded, hands lost as trackers lose them, neither easy nor hopeless."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from manifests.clips import LEFT_HAND, RIGHT_HAND
from manifests.editions import Track
from manifests.errors import MalformedDocument, PlatformFault
from manifests.predictions.lines import ClipExpectation
from manifests.predictions.recognition import read_recognition
from manifests.predictions.segmentation import read_segmentation
from manifests.predictions.translation import read_translation
from orchestrator.editions.epee.epee_folder import EditionFile, EpeeFolder
from orchestrator.editions.open_clips import read_open_clips
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.samples.baselines import recognize, segment, translate
from orchestrator.samples.files.sample_folder import SampleFolder
from orchestrator.samples.rules.sample_clips import draw_clips
from orchestrator.samples.rules.sample_signs import GLOSSES, SCORED_GLOSSES
from orchestrator.samples.sample_edition import (
    HELD_OUT_SIGNER,
    SampleRequest,
    make_sample_edition,
)
from orchestrator.samples.train_baselines import (
    PROGRAM_OF_TRACK,
    TRAINING_CLIPS,
    train_baseline,
    training_clips,
)

REQUEST = SampleRequest(
    edition="sample-2026",
    opens=datetime(2026, 1, 1, tzinfo=UTC),
    closes=datetime(2026, 7, 1, tzinfo=UTC),
)
CONSUMER = "example.org/recognizer@sha256:" + "0" * 64
TRACKS: tuple[Track, ...] = ("recognition", "translation", "segmentation")


def request_for(track: Track, clips: int) -> SampleRequest:
    consumer = CONSUMER if track == "segmentation" else None
    return replace(REQUEST, track=track, clips=clips, consumer=consumer)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("full") / "sample"
    make_sample_edition(SampleFolder(root), REQUEST)
    return root


def corpus_of(root: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted((root / "annotations").iterdir())]


def test_a_full_sample_has_200_clips_of_1_to_9_signs_by_six_signers(full: Path) -> None:
    found = corpus_of(full)
    assert len(found) == 200
    lengths = {len(one["segments"]) for one in found if isinstance(one["segments"], list)}
    assert lengths == set(range(1, 10))
    assert len({one["signer_id"] for one in found}) == 6
    assert set(found[0]) == {
        "clip_id", "signer_id", "phrase_id", "parallel", "text_en", "fps", "n_frames", "segments",
    }  # fmt: skip


def test_71_of_90_glosses_are_scored_and_each_of_them_occurs(full: Path) -> None:
    vocabulary = (full / "vocabulary.txt").read_text().split()
    assert (len(vocabulary), len(set(GLOSSES))) == (71, 90)
    lines = (full / "labels-v1.jsonl").read_text().splitlines()
    used = {gloss for line in lines for gloss in json.loads(line)["glosses"]}
    assert set(vocabulary) < used <= set(GLOSSES)


def test_one_hand_at_least_is_lost_in_about_60_percent_of_the_frames(full: Path) -> None:
    clips = [np.load(path) for path in (full / "keypoints").iterdir()]
    keypoints = np.concatenate(clips)
    assert keypoints.dtype == np.float32
    lost = [~keypoints[:, hand].any(axis=(1, 2)) for hand in (LEFT_HAND, RIGHT_HAND)]
    assert 0.55 < float((lost[0] | lost[1]).mean()) < 0.65
    partly = [(keypoints[:, hand] == 0).all(axis=2).any(axis=1) for hand in (LEFT_HAND, RIGHT_HAND)]
    assert all((one == other).all() for one, other in zip(lost, partly, strict=True))
    assert np.isfinite(keypoints).all()
    assert float(keypoints[..., 1].max()) > 1  # extrapolated legs leave the image, as trackers do


def test_the_metadata_lists_every_clip(full: Path) -> None:
    with (full / "metadata.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["clip_id"] for row in rows] == [one["clip_id"] for one in corpus_of(full)]
    assert {row["fps"] for row in rows} == {"25.0", "30.0"}


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(tmp_path: Path) -> None:
    def made(name: str, seed: int) -> dict[str, bytes]:
        make_sample_edition(SampleFolder(tmp_path / name), replace(REQUEST, clips=4, seed=seed))
        root = tmp_path / name
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }

    first = made("first", 1)
    assert first == made("second", 1)
    assert first["keypoints/sample_0001.npy"] != made("third", 2)["keypoints/sample_0001.npy"]


def test_the_baselines_learn_from_other_clips_without_the_held_out_signer() -> None:
    learned = list(training_clips(TRAINING_CLIPS))
    tested = list(draw_clips(200, seed=200))
    assert HELD_OUT_SIGNER not in {clip.signer_id for clip in learned}
    assert HELD_OUT_SIGNER in {clip.signer_id for clip in tested}
    shown = {clip.keypoints.tobytes() for clip in learned}
    assert shown.isdisjoint(clip.keypoints.tobytes() for clip in tested)


@pytest.mark.parametrize("track", TRACKS)
def test_a_sample_of_each_track_can_be_sealed(
    sealing: SealingTools, tmp_path: Path, track: Track
) -> None:
    make_sample_edition(SampleFolder(tmp_path / "one"), request_for(track, 6))
    seal = seal_edition(EditionFile(tmp_path / "one/edition.yaml"), sealing)
    assert seal.clips == 6


@pytest.mark.parametrize("clips", [1, 2, 5])
def test_a_tiny_sample_is_an_edition_too(tmp_path: Path, clips: int) -> None:
    edition = make_sample_edition(SampleFolder(tmp_path / "one"), replace(REQUEST, clips=clips))
    assert edition.expected_clips == clips


def test_no_references_of_one_slice_are_equal(tmp_path: Path) -> None:
    """A derangement of the references within a slice would not exist otherwise."""
    make_sample_edition(SampleFolder(tmp_path / "one"), request_for("translation", 40))
    lines = (tmp_path / "one/labels-v1.jsonl").read_text().splitlines()
    labels = [json.loads(line) for line in lines]
    pairs = {(label["slice"], label["reference"]) for label in labels}
    assert len(pairs) == 40
    assert {label["slice"] for label in labels} == {
        "studio",
        "broadcast",
        "conversational",
        "canary",
    }


def test_a_sample_of_no_clips_or_onto_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedDocument, match="ask for one at least"):
        make_sample_edition(SampleFolder(tmp_path), replace(REQUEST, clips=0))
    make_sample_edition(SampleFolder(tmp_path), replace(REQUEST, clips=1))
    with pytest.raises(PlatformFault, match="never overwritten"):
        make_sample_edition(SampleFolder(tmp_path), replace(REQUEST, clips=1))


def run_baseline(
    root: Path, track: Track, work: Path, main: Callable[[Path, Path, Path], None]
) -> bytes:
    """Fill an input folder as a container sees it, run the program, return its predictions."""
    vocabulary = (root / "vocabulary.txt").read_bytes() if track == "recognition" else None
    exam_input = read_open_clips(EpeeFolder(root), track=track, vocabulary=vocabulary)
    inputs, outputs = work / "input", work / "output"
    for folder in (inputs / "keypoints", inputs / "annotations", outputs):
        folder.mkdir(parents=True)
    for file in exam_input.files():
        (inputs / file.name).write_bytes(file.data)
    learned = work / PROGRAM_OF_TRACK[track][1]
    learned.write_bytes(train_baseline(track))
    main(inputs, outputs, learned)
    return (outputs / "predictions.jsonl").read_bytes()


def expectations(root: Path) -> dict[str, ClipExpectation]:
    return {
        str(one["clip_id"]): ClipExpectation(
            n_frames=int(str(one["n_frames"])),
            n_segments=len(one["segments"]) if isinstance(one["segments"], list) else 0,
        )
        for one in corpus_of(root)
    }


def test_the_baseline_recognizer_scores_between_chance_and_perfect(
    full: Path, tmp_path: Path
) -> None:
    data = run_baseline(full, "recognition", tmp_path, recognize.main)
    reading = read_recognition(data, source="predictions.jsonl", clips=expectations(full))
    assert not reading.problems
    answers = {entry.clip_id: entry.signs for entry in reading.entries}
    truth: list[str] = []
    said: list[str] = []
    for line in (full / "labels-v1.jsonl").read_text().splitlines():
        label = json.loads(line)
        truth.extend(label["glosses"])
        said.extend(sign.candidates[0] for sign in answers[label["clip_id"]])
    scored = list(SCORED_GLOSSES)
    macro_f1 = f1_score(truth, said, labels=scored, average="macro", zero_division=0)
    assert 0.3 < float(macro_f1) < 0.8
    assert "UNKNOWN" in said


def test_the_baseline_translator_keeps_the_contract(tmp_path: Path) -> None:
    root = tmp_path / "sample"
    make_sample_edition(SampleFolder(root), request_for("translation", 12))
    data = run_baseline(root, "translation", tmp_path, translate.main)
    reading = read_translation(data, source="predictions.jsonl", clips=expectations(root))
    assert not reading.problems
    assert all(entry.text.endswith((".", "?")) for entry in reading.entries)


def test_the_baseline_segmenter_finds_most_signs(tmp_path: Path) -> None:
    root = tmp_path / "sample"
    make_sample_edition(SampleFolder(root), request_for("segmentation", 24))
    data = run_baseline(root, "segmentation", tmp_path, segment.main)
    reading = read_segmentation(data, source="predictions.jsonl", clips=expectations(root))
    assert not reading.problems
    found = sum(len(entry.segments) for entry in reading.entries)
    annotated = sum(clip.n_segments or 0 for clip in expectations(root).values())
    assert 0.5 < found / annotated < 1.5


@pytest.mark.parametrize("track", TRACKS)
def test_a_baseline_needs_nothing_but_python(track: Track) -> None:
    """Isolated, without site packages: what the image of the bare interpreter offers."""
    program = Path(recognize.__file__).with_name(PROGRAM_OF_TRACK[track][0])
    script = f"import runpy; runpy.run_path({str(program)!r}, run_name='entrant')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], check=False)
    assert done.returncode == 0
