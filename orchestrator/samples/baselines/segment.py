"""The baseline segmenter: a sign is where a hand is up.

Reads `/input`, writes `/output/predictions.jsonl`. Its knowledge is `height.json` beside it: how
far below the shoulders a signing hand still is, in units of their distance.
"""

from __future__ import annotations

import json
import sys
from array import array
from pathlib import Path

FRAME_VALUES = 128 * 3
LEFT_SHOULDER, RIGHT_SHOULDER, LEFT_WRIST, RIGHT_WRIST = 42 * 3, 43 * 3, 46 * 3, 47 * 3
SHORTEST_FRAMES = 5


def read_keypoints(path: Path) -> array[float]:
    """Return the float32 values of an .npy file of version 1, without numpy."""
    data = path.read_bytes()
    start = 10 + int.from_bytes(data[8:10], "little")
    values = array("f")
    values.frombytes(data[start:])
    if sys.byteorder == "big":
        values.byteswap()
    return values


def heights(values: array[float]) -> list[float]:
    """Return per frame how far the higher wrist is below the shoulders, in their distance."""
    found = []
    for base in range(0, len(values), FRAME_VALUES):
        unit = abs(values[base + LEFT_SHOULDER] - values[base + RIGHT_SHOULDER]) or 1.0
        top = (values[base + LEFT_SHOULDER + 1] + values[base + RIGHT_SHOULDER + 1]) / 2
        wrists = (values[base + LEFT_WRIST + 1], values[base + RIGHT_WRIST + 1])
        found.append((min(wrists) - top) / unit)
    return found


def segments(below: list[float], limit: float) -> list[dict[str, int]]:
    """Return the stretches of frames in which a hand is above `limit`."""
    found, start = [], None
    for frame, height in enumerate([*below, float("inf")]):
        if height < limit and start is None:
            start = frame
        elif height >= limit and start is not None:
            if frame - start >= SHORTEST_FRAMES:
                found.append({"start_frame": start, "end_frame": frame})
            start = None
    return found


def main(inputs: Path, outputs: Path, learned: Path) -> None:
    """Segment every clip of the exam."""
    exam = json.loads((inputs / "exam.json").read_text("utf-8"))
    limit = json.loads(learned.read_text("utf-8"))["height"]
    with (outputs / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for clip_id in exam["clips"]:
            values = read_keypoints(inputs / "keypoints" / f"{clip_id}.npy")
            entry = {"clip_id": clip_id, "segments": segments(heights(values), limit)}
            file.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    main(Path("/input"), Path("/output"), Path(__file__).with_name("height.json"))
