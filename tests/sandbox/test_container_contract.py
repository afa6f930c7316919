"""docs/container-contract.md says what the code does: every figure, variable, format and bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manifests import clips
from manifests.annotations import parse_entrant_annotation
from manifests.editions import Track
from manifests.exam import parse_exam
from manifests.glosses import MAX_GLOSS_CHARACTERS
from manifests.names import ENTRANT_ID
from manifests.outcomes import Outcome
from manifests.predictions.lines import MIB, ClipExpectation, PredictionLimits
from manifests.predictions.recognition import CONFIDENCE_DECIMALS, MAX_CANDIDATES
from manifests.predictions.translation import MAX_POSE_STRETCH, MAX_TEXT_CHARACTERS
from orchestrator.scoring.rules.assessment import PREDICTIONS_FILE, assess_predictions
from sandbox_profiles.profile import load_profile

TEXT = (Path(__file__).parents[2] / "docs" / "container-contract.md").read_text("utf-8")
FLAT = " ".join(TEXT.split())
PROFILE = load_profile("certified")
GIB, MEBI = 2**30, 2**20


def limit(row: str) -> str:
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", TEXT, re.MULTILINE)
    found = [value for name, value in rows if name.startswith(row)]
    assert len(found) == 1, f"{len(found)} rows begin with {row}"
    return str(found[0])


def example(path: str) -> bytes:
    line = next(line for line in TEXT.splitlines() if line.startswith(f"/input/{path}"))
    return line[line.index("{") :].encode()


def test_it_is_one_printed_page() -> None:
    assert len(TEXT.splitlines()) <= 90
    assert sum(-(-max(1, len(line)) // 100) for line in TEXT.splitlines()) <= 95


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("memory", f"{PROFILE.memory_bytes // GIB} GiB"),
        ("processors", f"{PROFILE.cpus}"),
        ("processes", f"{PROFILE.pids}"),
        ("time", f"{PROFILE.deadline_s} s"),
        ("`/tmp`", f"{PROFILE.tmp_bytes // GIB} GiB, {PROFILE.tmp_inodes} files"),
        ("`/dev/shm`", f"{(PROFILE.shm_bytes or 0) // GIB} GiB"),
        ("`/output`", f"{PROFILE.output_bytes // MEBI} MiB, {PROFILE.output_inodes} inodes"),
        (
            "files that are collected",
            f"{PROFILE.output_files} of {PROFILE.output_file_bytes // MEBI} MiB",
        ),
        ("any one file", f"{PROFILE.file_size_bytes // GIB} GiB"),
        ("open files", f"{PROFILE.nofile}"),
        ("log", f"{PROFILE.log_bytes // MEBI} MiB"),
    ],
)
def test_each_limit_is_the_profile_s(row: str, value: str) -> None:
    assert limit(row) == value


def test_no_limit_of_the_profile_is_left_out_of_the_table() -> None:
    told = {"memory_bytes", "cpus", "pids", "deadline_s", "tmp_bytes", "tmp_inodes", "shm_bytes"}
    told |= {"output_bytes", "output_inodes", "output_files", "output_file_bytes"}
    told |= {"file_size_bytes", "nofile", "log_file_bytes", "log_files"}
    numbers = {
        name
        for name, value in PROFILE.model_dump().items()
        if isinstance(value, int) and name != "input_headroom_bytes"
    }
    assert numbers == told


def test_the_environment_is_the_profile_s() -> None:
    block = TEXT.partition("`NVIDIA_VISIBLE_DEVICES=void`):\n\n```\n")[2].partition("```")[0]
    variables = PROFILE.variables()
    kept = [f"{name}={value}" for name, value in variables.items() if value is not None]
    assert block.split() == kept
    removed = FLAT.partition("set over the image's own (")[2].partition(" are taken away")[0]
    taken = [name for name, value in variables.items() if value is None]
    assert sorted(re.findall(r"`(\w+)`", removed)) == sorted(taken)


def test_the_socket_families_are_the_profile_s() -> None:
    told = FLAT.partition("sockets other than ")[2].partition(".")[0]
    assert told.split(", ") == [family.value for family in PROFILE.socket_families]


def test_the_examples_of_the_input_are_valid() -> None:
    exam = parse_exam(example("exam.json"), source="exam.json")
    annotation = parse_entrant_annotation(example("annotations/"), source="annotation")
    assert exam.layout == clips.LAYOUT
    assert annotation.clip_id in exam.clips
    assert len(annotation.segments) == 1


@pytest.mark.parametrize(
    ("track", "field"),
    [("recognition", "signs"), ("translation", "text"), ("segmentation", "segments")],
)
def test_the_examples_of_the_output_are_valid(track: Track, field: str) -> None:
    start = f'{{"clip_id": "0001", "{field}"'
    line = next(line for line in TEXT.splitlines() if line.startswith(start))
    expected = {"0001": ClipExpectation(n_segments=3, n_frames=80)}
    assessment = assess_predictions(track, f"{line}\n".encode(), clips=expected)
    assert assessment.problems == ()
    assert assessment.complete


@pytest.mark.parametrize(
    "bound",
    [
        f"uid and gid {ENTRANT_ID}",
        f"`/output/{PREDICTIONS_FILE}`",
        f"(1 to {MAX_CANDIDATES})",
        f"rounded to {CONFIDENCE_DECIMALS} decimals",
        f"at most {MAX_GLOSS_CHARACTERS} characters",
        f"at most {MAX_TEXT_CHARACTERS} characters",
        f"at most {MAX_POSE_STRETCH} times the clip's frames",
        f"a line above {PredictionLimits().max_line_bytes // MIB} MiB",
        f"a file above {PredictionLimits().max_bytes // MIB} MiB",
        f"nesting deeper than {PredictionLimits().max_depth}",
        f"float32 (frames, {clips.POINTS}, {clips.COORDINATES})",
    ],
)
def test_each_bound_is_the_code_s(bound: str) -> None:
    assert bound in FLAT


@pytest.mark.parametrize(
    ("part", "place"),
    [
        (clips.LEFT_HAND, "left hand"),
        (clips.RIGHT_HAND, "right hand"),
        (clips.UPPER_BODY, "upper body"),
        (clips.LOWER_BODY, "lower body"),
        (clips.EYES_AND_MOUTH, "eyes and mouth"),
        (clips.HEAD_OUTLINE, "head outline"),
    ],
)
def test_the_points_are_the_layout_s(part: slice, place: str) -> None:
    assert f"{part.start}–{part.stop - 1} {place}" in FLAT


def test_the_outcomes_are_all_there_is() -> None:
    told = FLAT.partition("**How a run ends**")[2]
    assert re.findall(r"`([a-z-]+)`", told) == [outcome.value for outcome in Outcome]
