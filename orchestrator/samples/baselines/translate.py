"""The baseline translator: writes the known sentence whose clip took most nearly as long.

Reads `/input`, writes `/output/predictions.jsonl`. Its knowledge is `sentences.json` beside it.
"""

from __future__ import annotations

import json
from pathlib import Path


def main(inputs: Path, outputs: Path, learned: Path) -> None:
    """Translate every clip of the exam."""
    exam = json.loads((inputs / "exam.json").read_text("utf-8"))
    known: list[tuple[float, str]] = json.loads(learned.read_text("utf-8"))["sentences"]
    with (outputs / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for clip_id in exam["clips"]:
            annotation = json.loads((inputs / "annotations" / f"{clip_id}.json").read_text("utf-8"))
            seconds = annotation["n_frames"] / annotation["fps"]
            _, text = min(known, key=lambda pair: abs(pair[0] - seconds))
            file.write(json.dumps({"clip_id": clip_id, "text": text}) + "\n")


if __name__ == "__main__":
    main(Path("/input"), Path("/output"), Path(__file__).with_name("sentences.json"))
