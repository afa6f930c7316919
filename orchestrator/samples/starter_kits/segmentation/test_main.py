"""Run the program on a small invented input, as the container would: `make test`."""

from __future__ import annotations

import json
import runpy
import tempfile
import unittest
from pathlib import Path

import numpy as np

PROGRAM = Path(__file__).parent / "app" / "main.py"
CLIPS = ("0001", "0002")
FRAMES, FPS = 60, 25.0


def invent_clip(seed: int) -> np.ndarray:
    """Return a body that stands still and raises its hands in the middle of the clip."""
    still = np.random.default_rng(seed).uniform(0.4, 0.6, size=(1, 128, 3))
    frames = np.repeat(still, FRAMES, axis=0)
    frames[:, [42, 43, 46, 47], 1] = (0.3, 0.3, 0.9, 0.9)
    frames[20:40, [46, 47], 1] = 0.35
    return frames.astype(np.float32)


def invent_input(folder: Path) -> None:
    """Write `/input` as the container contract has it, one clip without any detection."""
    for name in ("keypoints", "annotations"):
        (folder / name).mkdir(parents=True)
    exam = {"contract": 1, "edition": "test", "track": "segmentation", "layout": "clerc-128"}
    exam |= {"clips": list(CLIPS), "vocabulary": None}
    (folder / "exam.json").write_text(json.dumps(exam), "utf-8")
    for seed, clip_id in enumerate(CLIPS):
        frames = np.zeros((FRAMES, 128, 3), np.float32) if seed else invent_clip(seed)
        np.save(folder / "keypoints" / f"{clip_id}.npy", frames)
        clip = {"clip_id": clip_id, "fps": FPS, "n_frames": FRAMES, "segments": []}
        (folder / "annotations" / f"{clip_id}.json").write_text(json.dumps(clip), "utf-8")


class PredictionsTest(unittest.TestCase):
    """What the program writes is what the contract asks for."""

    def setUp(self) -> None:
        """Run the program once."""
        with tempfile.TemporaryDirectory() as name:
            inputs, outputs = Path(name) / "input", Path(name) / "output"
            invent_input(inputs)
            outputs.mkdir()
            runpy.run_path(str(PROGRAM))["main"](inputs, outputs)
            text = (outputs / "predictions.jsonl").read_text("utf-8")
        self.entries = [json.loads(line) for line in text.splitlines()]

    def test_every_clip_has_one_line(self) -> None:
        """No clip is missing and none stands twice."""
        assert sorted(entry["clip_id"] for entry in self.entries) == list(CLIPS)

    def test_segments_lie_within_the_clip_and_do_not_overlap(self) -> None:
        """Half-open, ordered, whole frames."""
        for entry in self.entries:
            last = 0
            for segment in entry["segments"]:
                assert last <= segment["start_frame"] < segment["end_frame"] <= FRAMES
                last = segment["end_frame"]

    def test_raised_hands_are_one_sign_and_no_hands_are_none(self) -> None:
        """The invented clip raises its hands from frame 20 to 40."""
        found = {entry["clip_id"]: entry["segments"] for entry in self.entries}
        assert len(found["0001"]) == 1
        assert abs(found["0001"][0]["start_frame"] - 20) <= 3
        assert abs(found["0001"][0]["end_frame"] - 40) <= 3
        assert found["0002"] == []


if __name__ == "__main__":
    unittest.main()
