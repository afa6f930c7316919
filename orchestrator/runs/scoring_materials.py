"""Open once what every run of an edition is scored with: labels, parameters, references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manifests.clips import parse_keypoints
from manifests.digests import sha256_hex
from manifests.editions import BleurtRule
from manifests.errors import RefusedByPolicy
from manifests.labels import Labels
from manifests.statements import LabelsCommitment
from manifests.vocabulary import parse_vocabulary
from orchestrator.editions.open_labels import find_commitment, open_labels
from orchestrator.editions.rules.clip_archives import unpack_clip
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.keys.sealing_port import Purpose, SealedFileChanged, Unsealer
from orchestrator.runs.retained_runs import RetainedRun, read_retained
from orchestrator.runs.rules.run_files import CONSUMER_ANSWERS, PREDICTIONS, pose_clip
from orchestrator.scoring.rules.scoring import (
    Parameters,
    ScoreBleurt,
    ScoringTask,
    edition_parameters,
)
from orchestrator.workspace.ports import WorkspaceStore
from orchestrator.workspace.workspace import Workspace
from scorers.translation import LazyPoses, Poses


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringMaterials:
    """What the runs of one edition are scored with, on one label version."""

    sealed: SealedEdition
    commitment: LabelsCommitment
    labels: Labels
    parameters: Parameters
    vocabulary: tuple[str, ...] | None
    score_bleurt: ScoreBleurt | None
    reference_poses: Mapping[str, NDArray[np.float32]] | None
    """Translation: the sealed clips' own keypoints, opened one by one when asked for."""
    open_pose: Callable[[bytes, str], bytes] | None
    """Translation: opens a pose that a run kept; takes its bytes and its name."""


def open_materials(
    workspace: Workspace, edition: str, labels_version: str | None = None
) -> ScoringMaterials:
    """Open the labels of an edition; without a version, those that it was sealed with.

    A translation exam also needs the identity for clips: a clip's own keypoints are what a
    predicted pose is compared with, and a pose that is missing scores 0 (scoring notes, 0).

    Raises:
        IdentityMissing: this host holds no identity for the labels (or for the clips).
        RefusedByPolicy: no such edition or version, another scorer version, no checkpoint.
        ClaimDoesNotHold: a file is not what was committed.

    """
    sealed = load_sealed_edition(edition, store=workspace.store, ledger=workspace.ledger)
    version = labels_version or sealed.statement.labels.version
    commitment = find_commitment(edition, version, workspace.ledger)
    parameters = edition_parameters(sealed.edition, version)
    unsealer = workspace.keyring.unsealer(Purpose.LABELS)
    labels = open_labels(sealed, commitment, store=workspace.store, unsealer=unsealer)
    translation = sealed.edition.track == "translation"
    vocabulary = sealed.vocabulary
    return ScoringMaterials(
        sealed=sealed,
        commitment=commitment,
        labels=labels,
        parameters=parameters,
        vocabulary=None
        if vocabulary is None
        else parse_vocabulary(vocabulary, source=f"{sealed.folder}/vocabulary.txt"),
        score_bleurt=_bleurt(sealed.edition.bleurt, workspace.store.root),
        reference_poses=_reference_poses(sealed, workspace) if translation else None,
        open_pose=pose_opener(sealed, workspace) if translation else None,
    )


def scoring_task(
    materials: ScoringMaterials, retained: RetainedRun, *, store: WorkspaceStore
) -> ScoringTask:
    """Return what a retained run is scored as; every kept file is checked when it is read."""
    with_consumer = CONSUMER_ANSWERS in retained.files
    return ScoringTask(
        labels=materials.labels,
        parameters=materials.parameters,
        predictions=read_retained(retained, PREDICTIONS, store=store),
        source=f"{retained.folder}/{PREDICTIONS}",
        vocabulary=materials.vocabulary,
        gloss_map=materials.sealed.edition.gloss_map,
        score_bleurt=materials.score_bleurt,
        poses=_poses(materials, retained, store),
        consumer=read_retained(retained, CONSUMER_ANSWERS, store=store) if with_consumer else None,
        consumer_source=f"{retained.folder}/{CONSUMER_ANSWERS}",
    )


def _poses(
    materials: ScoringMaterials, retained: RetainedRun, store: WorkspaceStore
) -> Poses | None:
    if materials.open_pose is None or materials.reference_poses is None:
        return None
    open_pose = materials.open_pose
    names = {clip: name for name in retained.files if (clip := pose_clip(name)) is not None}

    def load(clip_id: str) -> NDArray[np.float32]:
        name = names[clip_id]
        source = f"{retained.folder}/{name}"
        return parse_keypoints(
            open_pose(read_retained(retained, name, store=store), source), source=source
        )

    return Poses(hypothesis=LazyPoses(tuple(names), load), reference=materials.reference_poses)


def pose_opener(sealed: SealedEdition, workspace: Workspace) -> Callable[[bytes, str], bytes]:
    """Return what opens a run's kept poses, which are sealed as the edition's clips are."""
    unsealer = workspace.keyring.unsealer(Purpose.CLIPS)
    layers = len(sealed.seal.recipients.clips.layers)
    return lambda data, source: unsealer.open_sealed(data, layers=layers, source=source)


def _reference_poses(sealed: SealedEdition, workspace: Workspace) -> LazyPoses:
    unsealer = workspace.keyring.unsealer(Purpose.CLIPS)
    clips = [_clip_of(name) for name in sealed.cipher_sums]
    return LazyPoses(clips, lambda clip_id: _open_clip(clip_id, sealed, workspace.store, unsealer))


def _clip_of(name: str) -> str:
    return name.removeprefix("sealed/").removesuffix(".age")


def _open_clip(
    clip_id: str, sealed: SealedEdition, store: WorkspaceStore, unsealer: Unsealer
) -> NDArray[np.float32]:
    """Open one sealed clip's keypoints in memory, held against `sealed.sha256`."""
    name = f"sealed/{clip_id}.age"
    source = f"{store.root}/{sealed.folder}/{name}"
    cipher = store.read(f"{sealed.folder}/{name}")
    if sha256_hex(cipher) != sealed.cipher_sums[name]:
        raise SealedFileChanged(
            f"{source}: not the file that sealed.sha256 lists; restore it from a backup"
        )
    layers = len(sealed.seal.recipients.clips.layers)
    archive = unsealer.open_sealed(cipher, layers=layers, source=source)
    keypoints, _ = unpack_clip(archive, clip_id=clip_id, source=source)
    return parse_keypoints(keypoints.data, source=source)


def _bleurt(rule: BleurtRule | None, root: Path) -> ScoreBleurt | None:
    """Load the edition's checkpoint; a relative path begins at the workspace."""
    if rule is None:
        return None
    from scorers.translation import bleurt_model  # noqa: PLC0415 - torch takes seconds to import

    folder = root / rule.checkpoint
    if not folder.is_dir():
        raise RefusedByPolicy(
            f"{folder}: the edition scores with the BLEURT checkpoint that belongs there; copy "
            "its folder there, then score with: piste rescore"
        )
    checkpoint = bleurt_model.load_checkpoint(folder)
    if rule.sha256 is not None and checkpoint.sha256 != rule.sha256:
        raise RefusedByPolicy(
            f"{folder}: the checkpoint's digest is {checkpoint.sha256[:16]}…, but the edition "
            f"pins {rule.sha256[:16]}…; put the pinned checkpoint there"
        )
    return lambda labels, texts, parameters: bleurt_model.segment_scores(
        checkpoint, labels, texts, parameters
    )
