"""Two real clips, sealed with made-up labels, certified and scored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from manifests.outcomes import Outcome
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.python.python_image import BuiltImage
from orchestrator.support.reporter import SilentReporter
from orchestrator.wiring import workspaces as wiring
from tests.support.certify_fixtures import EDITION, Organizer, clip_mark, write_edition

pytestmark = pytest.mark.docker

REAL_CLIPS = Path(__file__).parents[3] / "shared" / "data" / "real-clips"
FRAME_RATES = {"holistic_a": 30.0, "holistic_b": 25.0}


def write_real_edition(folder: Path) -> Path:
    """Put the two real clips in the place of a sample's; their labels are invented."""
    file = write_edition(folder, clips=2)
    vocabulary = (folder / "vocabulary.txt").read_text().splitlines()
    for path in [*(folder / "keypoints").iterdir(), *(folder / "annotations").iterdir()]:
        path.unlink()
    labels = []
    for name, fps in FRAME_RATES.items():
        data = (REAL_CLIPS / f"{name}.npy").read_bytes()
        (folder / "keypoints" / f"{name}.npy").write_bytes(data)
        frames = len(np.load(REAL_CLIPS / f"{name}.npy"))
        glosses = vocabulary[:3]
        segments = [
            {"gloss": gloss, "start": number + 0.1, "end": number + 0.9}
            for number, gloss in enumerate(glosses)
        ]
        annotation = {
            "clip_id": name,
            "signer_id": "ALFA",
            "phrase_id": "P001",
            "text_en": "Made up.",
            "fps": fps,
            "n_frames": frames,
            "segments": segments,
        }
        (folder / "annotations" / f"{name}.json").write_text(json.dumps(annotation))
        labels.append({"clip_id": name, "signer_id": "ALFA", "glosses": glosses})
    (folder / "labels-v1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    kept = [line for line in file.read_text().splitlines() if "held_out_signer" not in line]
    file.write_text("\n".join(kept) + "\n")
    return file


@pytest.mark.skipif(not REAL_CLIPS.is_dir(), reason=f"needs the real clips in {REAL_CLIPS}")
def test_two_real_clips_are_sealed_certified_and_scored(
    warm_engine: DockerEngine, honest_archive: BuiltImage, tmp_path: Path
) -> None:
    file = write_real_edition(tmp_path / "real")
    workspace = tmp_path / "workspace"
    wiring.create_workspace(workspace, origin="example.org/piste")
    wiring.seal(wiring.open_workspace(workspace), file, SilentReporter())
    mark = clip_mark(tmp_path / "real")
    organizer = Organizer(root=workspace, engine=warm_engine, mark=mark)
    team = organizer.new_team()
    run = organizer.certify(honest_archive.path, team=team, edition=EDITION)
    assert run.record.outcome is Outcome.COMPLETED
    assert run.card is not None
    public = run.card.public_document()
    figures = public["public"]
    assert isinstance(figures, dict)
    assert figures["counts"]["clips"] == 2
    assert figures["counts"]["positions"] == 6
    assert figures["top1"] == pytest.approx(1 / 3)
    assert organizer.leftovers(team, honest_archive.image_id) == []
