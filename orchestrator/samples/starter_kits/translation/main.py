"""Translation: write what is signed in a clip as an English sentence.

Reads `/input`, writes `/output/predictions.jsonl`. This baseline knows three sentences and chooses
by how long a hand is up. Replace `translate`; the rest keeps the contract.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

LEFT_SHOULDER, RIGHT_SHOULDER, LEFT_WRIST, RIGHT_WRIST = 42, 43, 46, 47
SENTENCES = (
    (1.0, "Hello."),
    (3.0, "How are you?"),
    (float("inf"), "Where do you live, and what is your name?"),
)
"""Up to how many seconds of signing, and what is then said."""


def signing_seconds(frames: np.ndarray, fps: float) -> float:
    """Return for how long a wrist is less than a shoulder's breadth below the shoulders.

    `frames` is (frames, 128, 3); y grows downwards. A point at (0, 0, 0) was not detected.
    """
    shoulders = frames[:, [LEFT_SHOULDER, RIGHT_SHOULDER]]
    breadth = np.abs(shoulders[:, 0, 0] - shoulders[:, 1, 0])
    wrists = frames[:, [LEFT_WRIST, RIGHT_WRIST]]
    seen = wrists.any(axis=2)
    below = wrists[:, :, 1] - shoulders[:, :, 1].mean(axis=1, keepdims=True)
    up = (seen & (below < breadth[:, None])).any(axis=1)
    return float(up.sum() / fps)


def translate(frames: np.ndarray, fps: float) -> str:
    """Return the sentence for one clip."""
    seconds = signing_seconds(frames, fps)
    return next(text for limit, text in SENTENCES if seconds <= limit)


def main(inputs: Path, outputs: Path) -> None:
    """Translate every clip of the exam, one line each."""
    exam = json.loads((inputs / "exam.json").read_text("utf-8"))
    with (outputs / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for clip_id in exam["clips"]:
            clip = json.loads((inputs / "annotations" / f"{clip_id}.json").read_text("utf-8"))
            frames = np.load(inputs / "keypoints" / f"{clip_id}.npy")
            entry = {"clip_id": clip_id, "text": translate(frames, clip["fps"])}
            file.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    main(Path("/input"), Path("/output"))
