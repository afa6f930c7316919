"""What the baseline entrants know: learned from clips that no sample edition holds."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from manifests.editions import Track
from manifests.encoding import readable_json
from orchestrator.samples.baselines import recognize, segment
from orchestrator.samples.rules.sample_bodies import SIGNERS
from orchestrator.samples.rules.sample_clips import SampleClip, draw_clips
from orchestrator.samples.rules.sample_signs import SCORED_GLOSSES
from orchestrator.samples.sample_edition import HELD_OUT_SIGNER

TRAINING_SEED = 7
TRAINING_CLIPS = 400
PROGRAM_OF_TRACK: dict[Track, tuple[str, str]] = {
    "recognition": ("recognize.py", "centroids.json"),
    "translation": ("translate.py", "sentences.json"),
    "segmentation": ("segment.py", "height.json"),
}
"""The baseline's program in `samples.baselines`, and the file of its knowledge beside it."""

_FAR_QUANTILE = 0.98
_Path = list[float | None]


def train_baseline(track: Track, *, clips: int = TRAINING_CLIPS) -> bytes:
    """Return the knowledge file of the track's baseline; the same at each call."""
    drawn = training_clips(clips)
    match track:
        case "recognition":
            return readable_json(_centroids(drawn))
        case "translation":
            known = sorted((len(c.keypoints) / c.fps, c.text_en) for c in drawn)
            return readable_json({"sentences": [[round(s, 3), text] for s, text in known]})
        case "segmentation":
            return readable_json({"height": _height(drawn)})


def training_clips(clips: int) -> Iterator[SampleClip]:
    """Yield the clips to learn from: another draw, without the signer who is held out."""
    signers = [signer for signer in SIGNERS if signer != HELD_OUT_SIGNER]
    return draw_clips(clips, seed=TRAINING_SEED, prefix="training", signers=signers)


def _values(clip: SampleClip) -> array[float]:
    values = array("f")
    values.frombytes(clip.keypoints.tobytes())
    return values


def _centroids(clips: Iterable[SampleClip]) -> dict[str, object]:
    seen: dict[str, list[_Path]] = defaultdict(list)
    for clip in clips:
        values = _values(clip)
        for sign in clip.segments:
            if sign.gloss in SCORED_GLOSSES:
                path = recognize.features(values, sign.start_frame, sign.end_frame)
                seen[sign.gloss].append(path)
    centroids = {gloss: _mean(paths) for gloss, paths in sorted(seen.items())}
    distances = sorted(
        recognize.distance(path, centroids[gloss])
        for gloss, paths in seen.items()
        for path in paths
    )
    far = distances[int(_FAR_QUANTILE * (len(distances) - 1))]
    return {"centroids": centroids, "far": round(far, 6)}


def _mean(paths: Sequence[_Path]) -> _Path:
    columns = (
        [value for value in column if value is not None] for column in zip(*paths, strict=True)
    )
    return [round(sum(known) / len(known), 5) if known else None for known in columns]


def _height(clips: Iterable[SampleClip]) -> float:
    """Return the height that tells most frames inside signs from those outside."""
    inside: list[float] = []
    outside: list[float] = []
    for clip in clips:
        below = segment.heights(_values(clip))
        signing: set[int] = set()
        for sign in clip.segments:
            signing.update(range(sign.start_frame, sign.end_frame))
        for frame, height in enumerate(below):
            (inside if frame in signing else outside).append(height)
    limits = sorted(inside)[:: max(1, len(inside) // 200)]
    scored = [(_told_apart(limit, inside, outside), limit) for limit in limits]
    return round(max(scored)[1], 4)


def _told_apart(limit: float, inside: Sequence[float], outside: Sequence[float]) -> float:
    below = sum(height < limit for height in inside) / len(inside)
    return below + sum(height >= limit for height in outside) / len(outside)
