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
    exam = {"contract": 1, "edition": "test", "track": "translation", "layout": "clerc-128"}
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

    def test_every_text_is_one_line(self) -> None:
        """A sentence of at most 2000 characters."""
        for entry in self.entries:
            assert entry["text"]
            assert len(entry["text"]) <= 2000
            assert entry["text"].isprintable()

    def test_longer_signing_gives_a_longer_sentence(self) -> None:
        """The choice depends on the clip."""
        translate = runpy.run_path(str(PROGRAM))["translate"]
        short, long = invent_clip(0), np.repeat(invent_clip(0), 10, axis=0)
        assert len(translate(short, FPS)) < len(translate(long, FPS))


if __name__ == "__main__":
    unittest.main()
