"""From what was collected to how the run ends."""

from __future__ import annotations

import io

import numpy as np
import pytest

from manifests.editions import Track
from manifests.outcomes import Diagnostic, Outcome
from manifests.predictions.lines import ClipExpectation
from orchestrator.runs.rules.verdict import Verdict, judge_output

CLIPS = {
    "0001": ClipExpectation(n_segments=2, n_frames=20),
    "0002": ClipExpectation(n_segments=1, n_frames=20),
}
GOOD: dict[Track, bytes] = {
    "recognition": b'{"clip_id":"0002","signs":["NOW"]}\n{"signs":["A","B"],"clip_id":"0001"}\n',
    "translation": b'{"clip_id":"0001","text":"Now."}\n{"clip_id":"0002","text":""}\n',
    "segmentation": b'{"clip_id":"0001","segments":[]}\n{"clip_id":"0002","segments":[]}\n',
}


def pose(frames: int = 20) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.full((frames, 128, 3), 0.5, np.float32))
    return buffer.getvalue()


def judged(
    files: dict[str, bytes],
    track: Track = "recognition",
    *,
    outcome: Outcome = Outcome.COMPLETED,
    diagnostics: tuple[Diagnostic, ...] = (),
) -> Verdict:
    return judge_output(track, outcome=outcome, diagnostics=diagnostics, files=files, clips=CLIPS)


@pytest.mark.parametrize("track", GOOD)
def test_good_predictions_are_kept_in_canonical_form_and_raw(track: Track) -> None:
    found = judged({"predictions.jsonl": GOOD[track]}, track)
    assert (found.outcome, found.diagnostics, found.problems) == (Outcome.COMPLETED, (), ())
    assert found.raw == GOOD[track]
    assert found.canonical is not None
    again = judged({"predictions.jsonl": found.canonical}, track)
    assert again.canonical == found.canonical


def test_the_order_of_lines_and_fields_leaves_the_canonical_file_as_it_is() -> None:
    lines = GOOD["recognition"].splitlines(keepends=True)
    turned = judged({"predictions.jsonl": b"".join(reversed(lines))})
    assert turned.canonical == judged({"predictions.jsonl": GOOD["recognition"]}).canonical


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", Diagnostic.PREDICTIONS_INCOMPLETE),
        (b'{"clip_id":"0001","signs":["A","B"]}\n', Diagnostic.PREDICTIONS_INCOMPLETE),
        (b"nonsense\n", Diagnostic.PREDICTIONS_FORMAT),
    ],
)
def test_a_completed_run_with_bad_predictions_becomes_invalid(
    data: bytes, code: Diagnostic
) -> None:
    found = judged({"predictions.jsonl": data})
    assert found.outcome is Outcome.INVALID_PREDICTIONS
    assert code in found.diagnostics
    assert found.problems


@pytest.mark.parametrize(
    "outcome", [Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY, Outcome.NONZERO_EXIT]
)
def test_another_outcome_stays_what_it_was_whatever_the_predictions_are(outcome: Outcome) -> None:
    for data in (GOOD["recognition"], b"nonsense\n"):
        found = judged({"predictions.jsonl": data}, outcome=outcome)
        assert (found.outcome, found.diagnostics) == (outcome, ())
        assert found.raw == data


def test_without_a_file_there_is_nothing_to_judge() -> None:
    codes = (Diagnostic.PREDICTIONS_MISSING,)
    found = judged({}, outcome=Outcome.NO_PREDICTIONS, diagnostics=codes)
    assert found == Verdict(outcome=Outcome.NO_PREDICTIONS, diagnostics=codes)


def test_good_poses_are_kept_with_the_sentences() -> None:
    files = {"predictions.jsonl": GOOD["translation"], "pose/0001.npy": pose()}
    found = judged(files, "translation")
    assert found.outcome is Outcome.COMPLETED
    assert found.poses == {"pose/0001.npy": pose()}


@pytest.mark.parametrize("data", [b"no pose", pose()[:-4], b""])
def test_one_broken_pose_makes_the_output_invalid_and_is_not_kept(data: bytes) -> None:
    files = {
        "predictions.jsonl": GOOD["translation"],
        "pose/0001.npy": data,
        "pose/0002.npy": pose(),
    }
    found = judged(files, "translation")
    assert found.outcome is Outcome.INVALID_PREDICTIONS
    assert Diagnostic.PREDICTIONS_FORMAT in found.diagnostics
    assert set(found.poses or {}) == {"pose/0002.npy"}
    assert [problem.clip_id for problem in found.problems] == ["0001"]


def test_a_pose_of_an_unknown_clip_is_invalid() -> None:
    files = {"predictions.jsonl": GOOD["translation"], "pose/9999.npy": pose()}
    found = judged(files, "translation")
    assert found.outcome is Outcome.INVALID_PREDICTIONS
    assert "9999" in found.problems[0].message


def test_poses_are_no_matter_of_the_other_tracks() -> None:
    files = {"predictions.jsonl": GOOD["segmentation"], "pose/0001.npy": b"no pose"}
    found = judged(files, "segmentation")
    assert (found.outcome, found.poses) == (Outcome.COMPLETED, {})
