"""One judgement of predictions for certify, dry-run, submit and check."""

from __future__ import annotations

import pytest

from manifests.editions import Track
from manifests.outcomes import Diagnostic
from manifests.predictions.lines import ClipExpectation, PredictionLimits
from manifests.predictions.problems import ProblemKind
from orchestrator.scoring.rules.assessment import assess_predictions

CLIPS = {
    "0001": ClipExpectation(n_segments=1, n_frames=9),
    "0002": ClipExpectation(n_segments=1, n_frames=9),
}

ENTRY: dict[Track, tuple[str, str]] = {
    "recognition": (
        '"signs": [{"confidence":0.12341, "candidates":["A"]}]',
        '"signs":[{"candidates":["A"],"confidence":0.1234}]',
    ),
    "translation": ('"text": "a  b"', '"text":"a b"'),
    "segmentation": (
        '"segments": [{"start_frame": 1, "end_frame": 2}]',
        '"segments":[{"end_frame":2,"start_frame":1}]',
    ),
}
TRACKS: list[Track] = ["recognition", "translation", "segmentation"]


def spoken(track: Track, *clips: str) -> bytes:
    return "".join(f'{{"clip_id": "{clip}", {ENTRY[track][0]}}}\n' for clip in clips).encode()


def canonical(track: Track, *clips: str) -> bytes:
    return "".join(f'{{"clip_id":"{clip}",{ENTRY[track][1]}}}\n' for clip in clips).encode()


@pytest.mark.parametrize("track", TRACKS)
def test_a_complete_file_has_canonical_bytes_and_no_code(track: Track) -> None:
    judged = assess_predictions(track, spoken(track, "0002", "0001"), clips=CLIPS)
    assert judged.complete
    assert judged.problems == ()
    assert judged.diagnostic is None
    assert judged.canonical == canonical(track, "0001", "0002")


@pytest.mark.parametrize("track", TRACKS)
def test_an_incomplete_file_is_kept_but_not_complete(track: Track) -> None:
    judged = assess_predictions(track, spoken(track, "0002"), clips=CLIPS)
    assert not judged.complete
    assert judged.canonical == canonical(track, "0002")
    assert judged.diagnostic is Diagnostic.PREDICTIONS_INCOMPLETE


@pytest.mark.parametrize("track", TRACKS)
def test_an_invalid_file_has_no_canonical_bytes(track: Track) -> None:
    judged = assess_predictions(track, spoken(track, "0002", "0003"), clips=CLIPS)
    assert not judged.complete
    assert judged.canonical is None
    assert judged.diagnostic is Diagnostic.PREDICTIONS_FORMAT
    assert judged.problems[0].kind is ProblemKind.UNKNOWN_CLIP
    assert judged.problems[0].message.startswith("predictions.jsonl:2")


@pytest.mark.parametrize("track", TRACKS)
def test_judging_canonical_bytes_again_changes_nothing(track: Track) -> None:
    first = assess_predictions(track, spoken(track, "0001", "0002"), clips=CLIPS).canonical
    assert first is not None
    assert assess_predictions(track, first, clips=CLIPS).canonical == first


def test_limits_apply_to_every_track() -> None:
    for track in TRACKS:
        data = spoken(track, "0001", "0002")
        judged = assess_predictions(
            track, data, clips=CLIPS, limits=PredictionLimits(max_bytes=len(data) - 1)
        )
        assert judged.problems[0].kind is ProblemKind.FILE_TOO_LARGE
