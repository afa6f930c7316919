"""Frame figures: begin, inside and outside frames, and the foreground's overlap.

The 3 x 3 confusion follows from the overlapping pairs alone, in time linear in the segments.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scorers.segmentation.corpus import Corpus
from scorers.segmentation.counts import Counts, counts_of
from scorers.segmentation.matching import Pairs
from scorers.statistics.f1 import f1_array

BEGIN, INSIDE, OUTSIDE = 0, 1, 2


def frame_counts(corpus: Corpus, pairs: Pairs) -> Counts:
    """Count the BIO confusion per clip, and each clip's own frame figures.

    ``frame_confusion`` is row-major (reference, prediction) over B, I, O. The first frame of a
    segment is B, the rest of it I, every other frame O. ``video_*`` are the clip's own values,
    for the per-video options: their sum over ``videos`` is the mean.
    """
    confusion = _confusion(corpus, pairs)
    video_f1 = _macro_over_seen(confusion)
    foreground = confusion[:, :2, :2].sum(axis=(1, 2))
    union = corpus.n_frames - confusion[:, OUTSIDE, OUTSIDE]
    video_iou = np.divide(foreground, union, out=np.ones_like(foreground), where=union > 0)
    return counts_of(
        frame_confusion=confusion,
        video_frame_f1=video_f1,
        video_iou=video_iou,
        videos=np.ones(corpus.clips),
    )


def _confusion(corpus: Corpus, pairs: Pairs) -> NDArray[np.float64]:
    reference_start = corpus.references.start[pairs.reference]
    start = corpus.predictions.start[pairs.prediction]
    clip = corpus.references.clip[pairs.reference]
    reference_b, predicted_b = reference_start >= start, start >= reference_start
    table = np.zeros((corpus.clips, 3, 3))
    table[:, BEGIN, BEGIN] = corpus.per_clip(clip, reference_b & predicted_b)
    table[:, BEGIN, INSIDE] = corpus.per_clip(clip, reference_b & ~predicted_b)
    table[:, INSIDE, BEGIN] = corpus.per_clip(clip, predicted_b & ~reference_b)
    shared = corpus.per_clip(clip, pairs.intersection)
    table[:, INSIDE, INSIDE] = shared - table[:, :2, :2].sum(axis=(1, 2))
    for axis, spans in ((1, corpus.references), (2, corpus.predictions)):
        begins = corpus.per_clip(spans.clip)
        insides = corpus.per_clip(spans.clip, spans.length) - begins
        outside = table[:, :2, OUTSIDE] if axis == 1 else table[:, OUTSIDE, :2]
        outside[:] = np.stack([begins, insides], axis=1) - table[:, :2, :2].sum(axis=3 - axis)
    table[:, OUTSIDE, OUTSIDE] = corpus.n_frames - table.sum(axis=(1, 2))
    return table


def class_f1(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the F1 of each class of confusions (..., classes, classes); 0/0 is 0."""
    hits = np.diagonal(confusion, axis1=-2, axis2=-1)
    return f1_array(hits, confusion.sum(axis=-2), confusion.sum(axis=-1))


def _macro_over_seen(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
    seen = (confusion.sum(axis=-1) + confusion.sum(axis=-2)) > 0
    return np.asarray(class_f1(confusion).sum(axis=-1) / seen.sum(axis=-1), np.float64)
