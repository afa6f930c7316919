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
SEGMENTS = [{"start": 0.2, "end": 0.8}, {"start": 0.8, "end": 1.6}]


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
    exam = {"contract": 1, "edition": "test", "track": "recognition", "layout": "clerc-128"}
    exam |= {"clips": list(CLIPS), "vocabulary": "vocabulary.txt"}
    (folder / "exam.json").write_text(json.dumps(exam), "utf-8")
    (folder / "vocabulary.txt").write_text("YOU\nOLD\nAGE\nWHO\n", "utf-8")
    for seed, clip_id in enumerate(CLIPS):
        frames = np.zeros((FRAMES, 128, 3), np.float32) if seed else invent_clip(seed)
        np.save(folder / "keypoints" / f"{clip_id}.npy", frames)
        clip = {"clip_id": clip_id, "fps": FPS, "n_frames": FRAMES, "segments": SEGMENTS}
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

    def test_every_segment_has_ranked_candidates(self) -> None:
        """One to three distinct glosses, and a confidence between 0 and 1."""
        for entry in self.entries:
            assert len(entry["signs"]) == len(SEGMENTS)
            for sign in entry["signs"]:
                assert 1 <= len(set(sign["candidates"])) == len(sign["candidates"]) <= 3
                assert 0 <= sign["confidence"] <= 1

    def test_a_clip_without_hands_is_unknown(self) -> None:
        """Nothing is claimed where nothing was seen."""
        answers = {entry["clip_id"]: entry["signs"] for entry in self.entries}
        assert all(sign["candidates"] == ["UNKNOWN"] for sign in answers["0002"])
        assert all(sign["candidates"] != ["UNKNOWN"] for sign in answers["0001"])


if __name__ == "__main__":
    unittest.main()
