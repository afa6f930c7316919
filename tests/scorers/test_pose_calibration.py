"""e_ref: what a clip of another sentence costs."""

from __future__ import annotations

import numpy as np
import pytest

from manifests.errors import MalformedDocument
from scorers.translation import (
    PoseParameters,
    Poses,
    Slice,
    TranslationLabel,
    TranslationParameters,
    calibrated_reference_error,
    score,
)
from scorers.translation.derangement import derange
from scorers.translation.pose import PoseArray

LABELS = [TranslationLabel(f"{i}", Slice.STUDIO, f"sentence {i}") for i in range(6)]
PARAMETERS = TranslationParameters()


def reference_poses() -> dict[str, PoseArray]:
    draw = np.random.default_rng(4)
    return {x.clip_id: draw.random((3, 128, 3)).astype(np.float32) for x in LABELS}


def test_with_the_calibrated_error_a_stranger_scores_about_zero_and_the_reference_one() -> None:
    reference = reference_poses()
    error = calibrated_reference_error(LABELS, reference, PARAMETERS)
    parameters = TranslationParameters(pose=PoseParameters(reference_error=error))
    faced = derange([x.clip_id for x in LABELS], [x.reference for x in LABELS])
    strangers = {LABELS[i].clip_id: reference[LABELS[j].clip_id] for i, j in enumerate(faced)}
    texts = {x.clip_id: x.reference for x in LABELS}

    def s_pose(hypothesis: dict[str, PoseArray], by: TranslationParameters) -> float:
        poses = Poses(hypothesis=hypothesis, reference=reference)
        value = score(LABELS, texts, by, poses=poses).public["s_pose"]
        assert isinstance(value, float)
        return value

    assert 0.5 < error < 1.01
    assert s_pose(strangers, PARAMETERS) == pytest.approx(1 - error)
    assert s_pose(strangers, parameters) < 0.05
    assert s_pose(reference, parameters) == pytest.approx(1.0)


def test_pairs_without_a_pose_are_left_out_and_no_pair_at_all_is_refused() -> None:
    reference = reference_poses()
    whole = calibrated_reference_error(LABELS, reference, PARAMETERS)
    del reference["3"]
    assert calibrated_reference_error(LABELS, reference, PARAMETERS) != whole
    with pytest.raises(MalformedDocument, match="no main clip and its deranged clip"):
        calibrated_reference_error(LABELS, {}, PARAMETERS)
