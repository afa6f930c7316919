"""Recognition: name each given segment.

Reads `/input`, writes `/output/predictions.jsonl`. This baseline knows no sign: where a hand is
seen it guesses from the vocabulary and says how unsure it is, elsewhere it answers UNKNOWN.
Replace `recognize`; the rest keeps the contract.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

LEFT_HAND, RIGHT_HAND = slice(0, 21), slice(21, 42)
LEFT_SHOULDER, RIGHT_SHOULDER = 42, 43


def normalize(frames: np.ndarray) -> np.ndarray:
    """Put the middle of the shoulders at (0, 0) and make their distance 1; x and y only.

    `frames` is (frames, 128, 3); a point at (0, 0, 0) was not detected and becomes NaN.
    """
    points = np.where(frames.any(axis=2, keepdims=True), frames, np.nan)[:, :, :2]
    shoulders = points[:, [LEFT_SHOULDER, RIGHT_SHOULDER]]
    distance = np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=1)[:, None, None]
    centred = points - shoulders.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.where(distance > 0, distance, 1))


def recognize(sign: np.ndarray, vocabulary: list[str]) -> dict[str, object]:
    """Answer one segment: one to three candidates, the best first, and a confidence in [0, 1].

    `sign` is the normalized segment, (frames, 128, 2).
    """
    hands = np.concatenate([sign[:, LEFT_HAND], sign[:, RIGHT_HAND]], axis=1)
    if not vocabulary or np.isnan(hands).all():
        return {"candidates": ["UNKNOWN"], "confidence": 0.0}
    return {"candidates": vocabulary[:3], "confidence": round(1 / len(vocabulary), 4)}


def main(inputs: Path, outputs: Path) -> None:
    """Answer every clip of the exam, one line each."""
    exam = json.loads((inputs / "exam.json").read_text("utf-8"))
    vocabulary = (inputs / exam["vocabulary"]).read_text("utf-8").split()
    with (outputs / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for clip_id in exam["clips"]:
            clip = json.loads((inputs / "annotations" / f"{clip_id}.json").read_text("utf-8"))
            frames = normalize(np.load(inputs / "keypoints" / f"{clip_id}.npy"))
            fps = clip["fps"]
            signs = [
                recognize(frames[int(each["start"] * fps) : int(each["end"] * fps)], vocabulary)
                for each in clip["segments"]
            ]
            file.write(json.dumps({"clip_id": clip_id, "signs": signs}) + "\n")


if __name__ == "__main__":
    main(Path("/input"), Path("/output"))
