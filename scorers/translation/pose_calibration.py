"""Calibrate e_ref: how far apart two unrelated clips of the same slice are.

All human poses look alike, so an unrelated clip scores well while e_ref is 1. The mean error of
reference clips against the ones that the derangement gives them is what ignoring the video costs;
with it as e_ref, S_pose is 0 there (scoring notes, 1.2). The value belongs to one corpus, one key
and one choice of dimensions, and goes into the edition's parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from manifests.errors import MalformedDocument
from scorers.translation.derangement import derange_main_slices
from scorers.translation.exam import TranslationLabel, arrange
from scorers.translation.parameters import TranslationParameters
from scorers.translation.pose import PoseArray, Poses, clip_pose_error


def calibrated_reference_error(
    labels: Sequence[TranslationLabel],
    reference_poses: Mapping[str, PoseArray],
    parameters: TranslationParameters,
    frame_sizes: Mapping[str, tuple[int, int]] | None = None,
) -> float:
    """Return the mean pose error of main reference clips against deranged ones.

    Pairs of which a clip has no pose are left out. Raise ``MalformedDocument`` where no pair is
    left, where a slice cannot be deranged and for malformed labels or poses.
    """
    corpus = arrange(labels, {})
    faced = derange_main_slices(corpus, parameters.derangement_key)
    errors = []
    for row in np.flatnonzero(corpus.is_main()):
        clip_id, other = corpus.clip_ids[row], corpus.clip_ids[faced[row]]
        if other not in reference_poses:
            continue
        pair = Poses(
            hypothesis={clip_id: reference_poses[other]},
            reference=reference_poses,
            frame_sizes=frame_sizes or {},
        )
        error = clip_pose_error(clip_id, pair, parameters.pose.dimensions)
        if error is not None:
            errors.append(error)
    if not errors:
        raise MalformedDocument("no main clip and its deranged clip both have a reference pose")
    return float(np.mean(errors))
