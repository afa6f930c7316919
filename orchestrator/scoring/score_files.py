"""Score files without a workspace and without Docker (`piste score`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manifests.clips import parse_keypoints
from manifests.digests import sha256_hex
from manifests.editions import Track
from manifests.errors import MalformedDocument
from manifests.labels import Labels, parse_labels, parse_salted_labels
from manifests.vocabulary import parse_vocabulary
from orchestrator.scoring.rules.scoring import (
    Parameters,
    ScoreBleurt,
    ScoringTask,
    default_parameters,
    score,
)
from scorers.cards import ScoreCard
from scorers.recognition import RecognitionParameters
from scorers.translation import LazyPoses, Poses, parse_segment_scores

_OPTIONS_OF_TRACK: dict[Track, frozenset[str]] = {
    "recognition": frozenset({"vocabulary", "held_out_signer"}),
    "translation": frozenset({"poses", "reference_poses", "bleurt_scores", "bleurt_checkpoint"}),
    "segmentation": frozenset({"vocabulary", "consumer"}),
}
_OPTION_NAMES = {
    "vocabulary": "--vocabulary",
    "held_out_signer": "--held-out",
    "poses": "--pose",
    "reference_poses": "--reference-pose",
    "bleurt_scores": "--bleurt-scores",
    "bleurt_checkpoint": "--bleurt-checkpoint",
    "consumer": "--consumer",
}


@dataclass(frozen=True, slots=True)
class InputFile:
    """The bytes of a file, and the name by which messages call it."""

    source: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseFiles:
    """The clips that have a pose file, and how to read one of them."""

    clip_ids: tuple[str, ...]
    read: Callable[[str], InputFile]

    def arrays(self) -> LazyPoses:
        """Return the clips as float32 (frames, 128, 3), read one by one when asked for."""

        def load(clip_id: str) -> NDArray[np.float32]:
            file = self.read(clip_id)
            return parse_keypoints(file.data, source=file.source)

        return LazyPoses(self.clip_ids, load)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesToScore:
    """Everything that `piste score` may be given; what the track does not take is refused."""

    track: Track
    labels: InputFile
    predictions: InputFile
    vocabulary: InputFile | None = None
    poses: PoseFiles | None = None
    reference_poses: PoseFiles | None = None
    bleurt_scores: InputFile | None = None
    bleurt_checkpoint: Path | None = None
    consumer: InputFile | None = None
    held_out_signer: str | None = None
    resamples: int | None = None
    seed: int | None = None


def score_files(files: FilesToScore) -> ScoreCard:
    """Score predictions against labels and say in the card which bytes were scored.

    Raises:
        MalformedDocument: with file, clip and line, or for options that do not fit the track.

    """
    _check_options(files)
    card = score(_task(files))
    provenance = {
        "labels_sha256": sha256_hex(files.labels.data),
        "predictions_sha256": sha256_hex(files.predictions.data),
    }
    return replace(card, provenance={**card.provenance, **provenance})


def _check_options(files: FilesToScore) -> None:
    taken = _OPTIONS_OF_TRACK[files.track]
    for name, option in _OPTION_NAMES.items():
        if getattr(files, name) is not None and name not in taken:
            raise MalformedDocument(f"{option} does not belong to the track {files.track}")
    if files.track == "recognition" and files.vocabulary is None:
        raise MalformedDocument("recognition needs --vocabulary FILE: the scored signs")
    if files.bleurt_scores is not None and files.bleurt_checkpoint is not None:
        raise MalformedDocument("give --bleurt-scores or --bleurt-checkpoint, not both")
    if (files.poses is None) != (files.reference_poses is None):
        raise MalformedDocument("--pose and --reference-pose belong together; give both or none")


def _task(files: FilesToScore) -> ScoringTask:
    vocabulary, bleurt, consumer = files.vocabulary, files.bleurt_scores, files.consumer
    return ScoringTask(
        labels=_labels(files),
        parameters=_parameters(files),
        predictions=files.predictions.data,
        source=files.predictions.source,
        vocabulary=None
        if vocabulary is None
        else parse_vocabulary(vocabulary.data, source=vocabulary.source),
        bleurt=None if bleurt is None else parse_segment_scores(bleurt.data, bleurt.source),
        score_bleurt=_score_bleurt(files.bleurt_checkpoint),
        poses=_poses(files),
        consumer=None if consumer is None else consumer.data,
        consumer_source="" if consumer is None else consumer.source,
    )


def _labels(files: FilesToScore) -> Labels:
    """Parse labels as an organizer writes them, or as they are revealed, with a salt in front."""
    salted = files.labels.data.startswith(b'{"salt"')
    parse = parse_salted_labels if salted else parse_labels
    return parse(files.labels.data, track=files.track, source=files.labels.source)


def _parameters(files: FilesToScore) -> Parameters:
    parameters = replace(
        default_parameters(files.track), labels_version=Path(files.labels.source).stem
    )
    if files.resamples is not None:
        parameters = replace(parameters, resamples=files.resamples)
    if files.seed is not None:
        parameters = replace(parameters, seed=files.seed)
    if isinstance(parameters, RecognitionParameters):
        parameters = replace(parameters, held_out_signer=files.held_out_signer)
    return parameters


def _poses(files: FilesToScore) -> Poses | None:
    if files.poses is None or files.reference_poses is None:
        return None
    return Poses(hypothesis=files.poses.arrays(), reference=files.reference_poses.arrays())


def _score_bleurt(folder: Path | None) -> ScoreBleurt | None:
    if folder is None:
        return None
    from scorers.translation import bleurt_model  # noqa: PLC0415 - torch takes seconds to import

    checkpoint = bleurt_model.load_checkpoint(folder)
    return lambda labels, texts, parameters: bleurt_model.segment_scores(
        checkpoint, labels, texts, parameters
    )
