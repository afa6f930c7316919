"""Segmentation: find where the signs of a clip are.

Reads `/input`, writes `/output/predictions.jsonl`. This baseline calls a stretch a sign where the
higher wrist is nearer to its highest than to its lowest point in the clip. Replace `segment`; the
rest keeps the contract.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

LEFT_WRIST, RIGHT_WRIST = 46, 47
SMOOTHED_FRAMES = 5
SHORTEST_FRAMES = 5


def wrist_height(frames: np.ndarray) -> np.ndarray:
    """Return the smoothed height of the higher wrist per frame, NaN where none was detected.

    `frames` is (frames, 128, 3); y grows downwards, and (0, 0, 0) was not detected.
    """
    wrists = frames[:, [LEFT_WRIST, RIGHT_WRIST]]
    height = np.where(wrists.any(axis=2), -wrists[:, :, 1], -np.inf).max(axis=1)
    height = np.where(np.isfinite(height), height, np.nan)
    padded = np.pad(height, SMOOTHED_FRAMES // 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED_FRAMES)
    return np.asarray(windows.mean(axis=1))


def segment(frames: np.ndarray) -> list[dict[str, int]]:
    """Return the signs as half-open, ordered intervals of frames that do not overlap."""
    height = wrist_height(frames)
    if np.isnan(height).all():
        return []
    up = height > (np.nanmin(height) + np.nanmax(height)) / 2
    edges = np.flatnonzero(np.diff(up, prepend=False, append=False))
    return [
        {"start_frame": int(start), "end_frame": int(end)}
        for start, end in edges.reshape(-1, 2)
        if end - start >= SHORTEST_FRAMES
    ]


def main(inputs: Path, outputs: Path) -> None:
    """Segment every clip of the exam, one line each."""
    exam = json.loads((inputs / "exam.json").read_text("utf-8"))
    with (outputs / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for clip_id in exam["clips"]:
            frames = np.load(inputs / "keypoints" / f"{clip_id}.npy")
            entry = {"clip_id": clip_id, "segments": segment(frames)}
            file.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    main(Path("/input"), Path("/output"))
