"""The baseline recognizer: names each given segment after the nearest centroid of hand paths.

Reads `/input`, writes `/output/predictions.jsonl`. Its knowledge is `centroids.json` beside it.
Needs nothing but Python's standard library.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from pathlib import Path

POINTS, COORDINATES = 128, 3
FRAME_VALUES = POINTS * COORDINATES
LEFT_SHOULDER, RIGHT_SHOULDER = 42, 43
HANDS = (0, 21)
FINGER_TIPS = (4, 8, 12, 16, 20)
MOMENTS = 5
"""Into how many parts of equal length a segment is divided."""
CANDIDATES = 3

Path2D = list[float | None]


def read_keypoints(path: Path) -> array[float]:
    """Return the float32 values of an .npy file of version 1, without numpy."""
    data = path.read_bytes()
    start = 10 + int.from_bytes(data[8:10], "little")
    values = array("f")
    values.frombytes(data[start:])
    if sys.byteorder == "big":
        values.byteswap()
    return values


def features(values: array[float], start: int, end: int) -> Path2D:
    """Return what a segment looks like: where each hand was, and how far open, moment by moment.

    Positions are relative to the shoulders and in units of their distance; None where the hand was
    lost in the whole moment.
    """
    found: Path2D = []
    for moment in range(MOMENTS):
        first = start + (end - start) * moment // MOMENTS
        last = max(first + 1, start + (end - start) * (moment + 1) // MOMENTS)
        for hand in HANDS:
            found.extend(_hand(values, hand, first, last))
    return found


def _hand(values: array[float], hand: int, first: int, last: int) -> Path2D:
    total, frames = [0.0] * (2 + len(FINGER_TIPS)), 0
    for frame in range(first, last):
        base = frame * FRAME_VALUES
        wrist = base + hand * COORDINATES
        if values[wrist] == 0 and values[wrist + 1] == 0:
            continue
        frames += 1
        for index, value in enumerate(_pose(values, base, wrist)):
            total[index] += value
    return [value / frames for value in total] if frames else [None] * len(total)


def _pose(values: array[float], base: int, wrist: int) -> list[float]:
    left, right = base + LEFT_SHOULDER * COORDINATES, base + RIGHT_SHOULDER * COORDINATES
    unit = abs(values[left] - values[right]) or 1.0
    x = (values[wrist] - (values[left] + values[right]) / 2) / unit
    y = (values[wrist + 1] - (values[left + 1] + values[right + 1]) / 2) / unit
    pose = [x, y]
    for tip in FINGER_TIPS:
        point = wrist + tip * COORDINATES
        reach = math.hypot(values[point] - values[wrist], values[point + 1] - values[wrist + 1])
        pose.append(reach / unit)
    return pose


def distance(seen: Path2D, centroid: Path2D) -> float:
    """Return the mean squared difference over what both know; infinite where that is nothing."""
    total, known = 0.0, 0
    for one, other in zip(seen, centroid, strict=True):
        if one is not None and other is not None:
            total += (one - other) ** 2
            known += 1
    return total / known if known else math.inf


def answer(seen: Path2D, centroids: dict[str, Path2D], far: float) -> dict[str, object]:
    """Return the ranked candidates, UNKNOWN where even the nearest is too far away."""
    ranked = sorted((distance(seen, path), gloss) for gloss, path in centroids.items())
    nearest, second = ranked[0][0], ranked[1][0]
    if not nearest < far:
        return {"candidates": ["UNKNOWN"], "confidence": 0.0}
    confidence = round(1 - nearest / second, 4) if 0 < second < math.inf else 0.0
    return {"candidates": [gloss for _, gloss in ranked[:CANDIDATES]], "confidence": confidence}


def main(inputs: Path, outputs: Path, learned: Path) -> None:
    """Answer every clip of the exam."""
    exam = json.loads((inputs / "exam.json").read_text("utf-8"))
    knowledge = json.loads(learned.read_text("utf-8"))
    with (outputs / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for clip_id in exam["clips"]:
            annotation = json.loads((inputs / "annotations" / f"{clip_id}.json").read_text("utf-8"))
            values = read_keypoints(inputs / "keypoints" / f"{clip_id}.npy")
            fps = annotation["fps"]
            signs = []
            for segment in annotation["segments"]:
                seen = features(values, int(segment["start"] * fps), int(segment["end"] * fps))
                signs.append(answer(seen, knowledge["centroids"], knowledge["far"]))
            file.write(json.dumps({"clip_id": clip_id, "signs": signs}) + "\n")


if __name__ == "__main__":
    main(Path("/input"), Path("/output"), Path(__file__).with_name("centroids.json"))
