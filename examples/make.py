"""Make the example files of the three exams; the same bytes at each call.

    python -m examples.make FOLDER

The clips are invented by the sample generator. The shipped baselines answer them, as they would in
a container: each program reads an `/input` folder and writes `predictions.jsonl`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from manifests.annotations import parse_entrant_annotation, render_entrant_annotation
from manifests.clips import parse_keypoints
from manifests.digests import sha256_hex
from manifests.editions import Track
from manifests.encoding import Json, canonical_json, parse_json_object, readable_json
from manifests.labels import parse_labels
from manifests.predictions.lines import ClipExpectation
from manifests.predictions.segmentation import read_segmentation
from manifests.vocabulary import render_vocabulary
from orchestrator.runs.consumer_exam import consumer_annotation
from orchestrator.samples.baselines import recognize, segment
from orchestrator.samples.rules.sample_clips import SampleClip, draw_clips, sentence
from orchestrator.samples.rules.sample_signs import SCORED_GLOSSES
from orchestrator.samples.sample_edition import annotation, label, npy_file
from orchestrator.samples.train_baselines import train_baseline
from orchestrator.scoring.rules.scoring import ScoringTask, default_parameters, translation_labels
from scorers.translation.bleurt_scores import SegmentScores, render_segment_scores
from scorers.translation.derangement import derange_main_slices
from scorers.translation.exam import arrange

SEED = 200
CLIPS: dict[Track, int] = {"recognition": 24, "translation": 16, "segmentation": 24}
POSE_STEP = 6
"""Poses keep every sixth frame: small files."""
POSED_CLIPS = 3
POSE_GRID = 1024
"""Poses are rounded to 1/1024 of the image, so that every machine writes the same floats."""
LIMITS = {"eager": 0.4, "sluggish": -0.25}
"""Two more segmenters: the baseline with its height moved, in shoulder widths."""
STAND_IN = "stands in for BLEURT: difflib.SequenceMatcher.ratio"

Files = dict[str, bytes]


def example_files() -> Files:
    """Return every example file by its path below `examples/`."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        parts = {
            "recognition": _recognition(folder / "recognition"),
            "translation": _translation(folder / "translation"),
            "segmentation": _segmentation(folder / "segmentation"),
        }
    return {
        f"{track}/{name}": data for track, files in parts.items() for name, data in files.items()
    }


@cache
def _knowledge(track: Track) -> bytes:
    return train_baseline(track)


def _clips(track: Track, prefix: str = "clip", seed: int = SEED) -> list[SampleClip]:
    return list(draw_clips(CLIPS[track], seed=seed, prefix=prefix))


def _lines(rows: Iterator[Mapping[str, object]]) -> bytes:
    return b"".join(canonical_json(row) + b"\n" for row in rows)


def _labels(clips: Sequence[SampleClip], track: Track) -> bytes:
    return _lines(label(clip, track) for clip in clips)


def _entrant_view(clip: SampleClip) -> bytes:
    """Return the annotation that a recognizer sees: intervals without glosses."""
    known = annotation(clip)
    segments = known["segments"]
    assert isinstance(segments, list)
    spans = [{"start": each["start"], "end": each["end"]} for each in segments]
    kept = {key: known[key] for key in ("clip_id", "fps", "n_frames")}
    return readable_json({**kept, "segments": spans})


def _write_input(folder: Path, clips: Sequence[SampleClip], views: Mapping[str, bytes]) -> None:
    for part in ("input/keypoints", "input/annotations", "output"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for clip in clips:
        (folder / f"input/keypoints/{clip.clip_id}.npy").write_bytes(npy_file(clip))
        (folder / f"input/annotations/{clip.clip_id}.json").write_bytes(views[clip.clip_id])
    exam = {"clips": [clip.clip_id for clip in clips]}
    (folder / "input/exam.json").write_bytes(readable_json(exam))


def _recognize(folder: Path, clips: Sequence[SampleClip], views: Mapping[str, bytes]) -> bytes:
    """Let the baseline recognizer answer; return its predictions.jsonl."""
    _write_input(folder, clips, views)
    learned = folder / "centroids.json"
    learned.write_bytes(_knowledge("recognition"))
    recognize.main(folder / "input", folder / "output", learned)
    return (folder / "output/predictions.jsonl").read_bytes()


def _recognition(folder: Path) -> Files:
    clips = _clips("recognition")
    views = {clip.clip_id: _entrant_view(clip) for clip in clips}
    return {
        "labels-v1.jsonl": _labels(clips, "recognition"),
        "vocabulary.txt": render_vocabulary(SCORED_GLOSSES),
        "predictions.jsonl": _recognize(folder, clips, views),
    }


def _translation(folder: Path) -> Files:
    """Translate with the recognizer: the sentence of what it saw."""
    clips = _clips("translation")
    views = {clip.clip_id: _entrant_view(clip) for clip in clips}
    answers = _recognize(folder, clips, views).splitlines()
    texts = {}
    for line in answers:
        row = parse_json_object(line, source="the recognizer's answers")
        signs = row["signs"]
        assert isinstance(signs, list)
        texts[str(row["clip_id"])] = sentence([_first(sign) for sign in signs])
    labels = _labels(clips, "translation")
    return {
        "labels-v1.jsonl": labels,
        "predictions.jsonl": _lines({"clip_id": c, "text": text} for c, text in texts.items()),
        "bleurt-scores.jsonl": _stand_in_scores(labels, texts),
        **_poses(clips),
    }


def _first(sign: Json) -> str:
    assert isinstance(sign, dict)
    candidates = sign["candidates"]
    assert isinstance(candidates, list)
    return str(candidates[0])


def _stand_in_scores(labels: bytes, texts: Mapping[str, str]) -> bytes:
    """Score with the standard library in BLEURT's place; the file says so by its checkpoint."""
    task = ScoringTask(
        labels=parse_labels(labels, track="translation", source="labels"),
        parameters=default_parameters("translation"),
        predictions=b"",
    )
    corpus = arrange(translation_labels(task), texts)
    faced = derange_main_slices(corpus, "")
    rows = range(len(corpus.clip_ids))

    def likeness(row: int, reference: int) -> float:
        pair = (corpus.references[reference], corpus.hypotheses[row])
        return round(SequenceMatcher(None, *pair, autojunk=False).ratio(), 4)

    scores = SegmentScores(
        STAND_IN,
        sha256_hex(STAND_IN.encode()),
        {corpus.clip_ids[row]: likeness(row, row) for row in rows},
        {corpus.clip_ids[r]: likeness(r, int(faced[r])) for r in rows if corpus.is_main()[r]},
    )
    return render_segment_scores(scores)


def _poses(clips: Sequence[SampleClip]) -> Files:
    """Return reference poses, and predicted ones: the same phrase by another signer."""
    short = sorted(clips, key=lambda clip: len(clip.keypoints))
    main = [clip for clip in short if clip.part < 3][:POSED_CLIPS]
    files = {}
    for clip in main:
        others = (c for c in clips if c.phrase_id == clip.phrase_id and c.part == 3)
        files[f"reference-pose/{clip.clip_id}.npy"] = _pose_file(clip)
        files[f"pose/{clip.clip_id}.npy"] = _pose_file(next(others))
    return files


def _pose_file(clip: SampleClip) -> bytes:
    frames = clip.keypoints[::POSE_STEP].astype(np.float64)
    rounded = (np.rint(frames * POSE_GRID) / POSE_GRID).astype(np.float32)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, rounded, version=(1, 0), allow_pickle=False)
    data = buffer.getvalue()
    parse_keypoints(data, source=clip.clip_id)
    return data


def _segmentation(folder: Path) -> Files:
    files = {"vocabulary.txt": render_vocabulary(SCORED_GLOSSES)}
    test = _clips("segmentation")
    files |= _segmenters(folder / "test", test, names={"baseline": 0.0, **LIMITS})
    validation = _clips("segmentation", prefix="validation", seed=SEED + 1)
    seen = _segmenters(folder / "val", validation, names={"baseline": 0.0, **LIMITS})
    return files | {f"validation/{name}": data for name, data in seen.items()}


def _segmenters(folder: Path, clips: Sequence[SampleClip], *, names: Mapping[str, float]) -> Files:
    """Return labels, and each segmenter's predictions with the frozen consumer's answers."""
    files = {"labels-v1.jsonl": _labels(clips, "segmentation")}
    for name, moved in names.items():
        predictions = _segment(folder / name, clips, moved)
        views = _predicted_views(clips, predictions)
        files[f"{name}.predictions.jsonl"] = predictions
        files[f"{name}.consumer.jsonl"] = _recognize(folder / f"{name}-consumer", clips, views)
    return files


def _segment(folder: Path, clips: Sequence[SampleClip], moved: float) -> bytes:
    _write_input(folder, clips, {clip.clip_id: _entrant_view(clip) for clip in clips})
    height = parse_json_object(_knowledge("segmentation"), source="height.json")["height"]
    assert isinstance(height, float)
    learned = folder / "height.json"
    learned.write_bytes(readable_json({"height": round(height + moved, 4)}))
    segment.main(folder / "input", folder / "output", learned)
    return (folder / "output/predictions.jsonl").read_bytes()


def _predicted_views(clips: Sequence[SampleClip], predictions: bytes) -> dict[str, bytes]:
    """Hand predicted intervals over as `certify` hands them to the frozen consumer."""
    expected = {c.clip_id: ClipExpectation(n_frames=len(c.keypoints)) for c in clips}
    reading = read_segmentation(predictions, source="predictions.jsonl", clips=expected)
    spans = {entry.clip_id: entry.segments for entry in reading.valid_entries()}
    views = {}
    for clip in clips:
        seen = parse_entrant_annotation(_entrant_view(clip), source=clip.clip_id)
        views[clip.clip_id] = render_entrant_annotation(
            consumer_annotation(seen, spans[clip.clip_id])
        )
    return views


def main(folder: Path) -> None:
    """Write every example file below `folder`."""
    for name, data in example_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
