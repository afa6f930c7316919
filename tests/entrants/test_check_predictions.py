"""`check` judges a predictions file as a run does, and tells every reason."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from manifests.editions import Track
from manifests.errors import MalformedDocument
from manifests.outcomes import Diagnostic
from manifests.predictions.problems import ProblemKind
from orchestrator.cli.views import check_view as check_view_module
from orchestrator.cli.views.check_view import check_document, check_view
from orchestrator.editions.epee.epee_folder import EpeeFolder
from orchestrator.entrants.check_predictions import (
    MAX_PROBLEMS,
    PredictionsReport,
    check_predictions,
)

Check = Callable[..., PredictionsReport]


@pytest.fixture
def clips(sample_root: Path) -> EpeeFolder:
    return EpeeFolder(sample_root)


def lines(*entries: object) -> bytes:
    return "".join(json.dumps(entry) + "\n" for entry in entries).encode()


def check(
    clips: EpeeFolder,
    data: bytes,
    track: Track = "recognition",
    poses: tuple[tuple[str, bytes], ...] = (),
) -> PredictionsReport:
    return check_predictions(data, clips, track=track, source="predictions.jsonl", poses=poses)


def annotation(clips: EpeeFolder, clip_id: str) -> dict[str, object]:
    return dict(json.loads(clips.annotation(clip_id)))


def answers(clips: EpeeFolder) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for clip_id in clips.clip_ids():
        segments = annotation(clips, clip_id)["segments"]
        assert isinstance(segments, list)
        found.append({"clip_id": clip_id, "signs": [each["gloss"] for each in segments]})
    return found


def shown(report: PredictionsReport) -> str:
    output = io.StringIO()
    Console(file=output, width=200, highlight=False).print(
        check_view(report, Path("predictions.jsonl"))
    )
    return output.getvalue()


def test_a_complete_file_holds_and_has_the_digest_of_its_canonical_form(clips: EpeeFolder) -> None:
    entries = answers(clips)
    report = check(clips, lines(*entries))
    assert report.holds
    assert (report.problems, report.missing, report.notes) == ((), (), ())
    assert report.clips == 8
    shuffled = check(clips, lines(*reversed(entries)))
    assert shuffled.predictions_sha256 == report.predictions_sha256
    assert "valid and complete, 8 clips of recognition" in shown(report)


def test_every_problem_is_listed_with_clip_and_line(clips: EpeeFolder) -> None:
    entries = answers(clips)
    first, second = str(entries[0]["clip_id"]), str(entries[1]["clip_id"])
    entries[0] |= {"signs": ["A B"]}
    entries[1] |= {"extra": 1}
    data = lines(*entries) + lines({"clip_id": "stranger", "signs": []}) + b"{\n"
    report = check(clips, data)
    assert [(each.line, each.clip_id, each.kind) for each in report.problems] == [
        (1, first, ProblemKind.BAD_GLOSS),
        (2, second, ProblemKind.UNKNOWN_FIELD),
        (9, "stranger", ProblemKind.UNKNOWN_CLIP),
        (10, None, ProblemKind.NOT_JSON),
    ]
    assert not report.holds
    assert report.diagnostic is Diagnostic.PREDICTIONS_FORMAT
    assert report.predictions_sha256 is None
    text = shown(report)
    assert "4 problems; a run would end as invalid-predictions (predictions-format)" in text
    assert "predictions.jsonl:1" not in text


def test_more_problems_than_a_dry_run_shows_are_listed(clips: EpeeFolder) -> None:
    report = check(clips, b"\n" * 200)
    assert [each.line for each in report.problems[:200]] == list(range(1, 201))


def test_a_hostile_file_of_endless_problems_is_bounded(
    clips: EpeeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = check(clips, b"\n" * (MAX_PROBLEMS + 5))
    assert len(report.problems) == MAX_PROBLEMS
    monkeypatch.setattr(check_view_module, "MAX_PROBLEMS", 50)  # a table of all takes seconds
    at_the_bound = replace(report, problems=report.problems[:50])
    assert "50 problems at least" in shown(at_the_bound)
    below = replace(report, problems=report.problems[:49])
    assert "at least" not in shown(below)


def test_all_missing_clips_are_named(clips: EpeeFolder) -> None:
    entries = answers(clips)
    report = check(clips, lines(*entries[2:]))
    assert report.missing == tuple(str(each["clip_id"]) for each in entries[:2])
    assert report.diagnostic is Diagnostic.PREDICTIONS_INCOMPLETE
    assert report.predictions_sha256 is not None
    assert ", ".join(report.missing) in shown(report)
    assert check(clips, b"").missing == clips.clip_ids()


def test_fewer_signs_than_segments_hold_with_a_note(clips: EpeeFolder) -> None:
    entries = answers(clips)
    entries[3] |= {"signs": []}
    report = check(clips, lines(*entries))
    assert report.holds
    assert len(report.notes) == 1
    assert f"fewer signs than segments, the first is {entries[3]['clip_id']}" in report.notes[0]


def test_segments_are_held_against_the_clip_s_own_frames(clips: EpeeFolder) -> None:
    entries = []
    for clip_id in clips.clip_ids():
        n_frames = annotation(clips, clip_id)["n_frames"]
        segment = {"start_frame": 0, "end_frame": n_frames}
        entries.append({"clip_id": clip_id, "segments": [segment]})
    assert check(clips, lines(*entries), "segmentation").holds
    outside = entries[0]["segments"]
    assert isinstance(outside, list)
    outside[0]["end_frame"] += 1
    report = check(clips, lines(*entries), "segmentation")
    assert [each.kind for each in report.problems] == [ProblemKind.SEGMENT_OUTSIDE]
    empty = [entry | {"segments": []} for entry in entries]
    assert "8 of 8 answered clips" in check(clips, lines(*empty), "segmentation").notes[0]


def test_translation_checks_texts_and_poses(clips: EpeeFolder) -> None:
    ids = clips.clip_ids()
    data = lines(*({"clip_id": clip_id, "text": "Hello."} for clip_id in ids))
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((3, 128, 3), np.float32))
    good = (f"{ids[0]}.npy", buffer.getvalue())
    assert check(clips, data, "translation", (good,)).holds
    for bad in ((f"{ids[1]}.npy", b"not numpy"), ("stranger.npy", good[1])):
        report = check(clips, data, "translation", (good, bad))
        assert [each.kind for each in report.problems] == [ProblemKind.BAD_POSE]
        assert report.diagnostic is Diagnostic.PREDICTIONS_FORMAT
    silent = lines(*({"clip_id": clip_id, "text": " "} for clip_id in ids))
    assert "has an empty text" in check(clips, silent, "translation").notes[0]


def test_a_folder_that_is_no_clip_folder_is_malformed(clips: EpeeFolder, tmp_path: Path) -> None:
    with pytest.raises(MalformedDocument, match="Épée layout"):
        check(EpeeFolder(tmp_path), b"")
    clip_id = clips.clip_ids()[0]
    path = Path(clips.place) / "annotations" / f"{clip_id}.json"
    document = annotation(clips, clip_id)
    path.write_text(json.dumps(document | {"segments": []}))
    with pytest.raises(MalformedDocument, match="recognition needs one sign at least"):
        check(clips, b"")
    path.write_text(json.dumps(document | {"clip_id": "other"}))
    with pytest.raises(MalformedDocument, match="says clip_id other"):
        check(clips, b"")


def test_what_an_entrant_wrote_reaches_the_terminal_escaped(clips: EpeeFolder) -> None:
    report = check(clips, lines({"clip_id": "\x1b[31m[bold]x", "signs": []}))
    text = shown(report)
    assert "\x1b" not in text
    assert "\\x1b[31m[bold]x" in text


def test_the_document_says_all_that_the_table_says(clips: EpeeFolder) -> None:
    report = check(clips, lines(*answers(clips)[1:]) + b"{}\n")
    document = check_document(report, Path("p.jsonl"))
    assert document["holds"] is False
    problems = document["problems"]
    assert isinstance(problems, list)
    assert len(problems) == 2
    assert isinstance(problems[0], dict)
    assert problems[0]["kind"] == "missing-field"
    assert problems[0]["line"] == 8
    assert json.loads(json.dumps(document)) == document
