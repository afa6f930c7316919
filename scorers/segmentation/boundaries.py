"""mF1B: whether predicted boundaries fall within a few frames of annotated ones."""

from __future__ import annotations

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from scorers.segmentation.corpus import Corpus, Spans
from scorers.segmentation.counts import Counts, counts_of
from scorers.segmentation.matching import expand_ranges, take_greedily
from scorers.segmentation.parameters import Boundaries, Matcher, SegmentationParameters


def boundary_counts(corpus: Corpus, parameters: SegmentationParameters) -> Counts:
    """Count boundaries, and pairs within each tolerance, per clip.

    Pairs are taken by rising distance, each boundary used once; on ties the lower reference
    goes first, then the lower prediction (with the ``renz`` matcher the other way round).
    Tolerances are whole frames, positions half frames.
    """
    reach = 2 * max(parameters.tolerances_frames)
    lengths = 2 * corpus.n_frames + reach + 1
    offset = np.cumsum(lengths) - lengths
    clip, references = _positions(corpus.references, corpus.n_frames, offset, parameters.boundaries)
    of_prediction, predictions = _positions(
        corpus.predictions, corpus.n_frames, offset, parameters.boundaries
    )
    prediction, reference = expand_ranges(
        np.searchsorted(references, predictions - reach, side="left"),
        np.searchsorted(references, predictions + reach, side="right"),
    )
    distance = np.abs(references[reference] - predictions[prediction])
    ties = (prediction, reference)
    if parameters.matcher is Matcher.RENZ:
        ties = (reference, prediction)
    taken = take_greedily(np.lexsort((*ties, distance)), reference, prediction)
    hits = distance[taken, None] <= 2 * np.array(parameters.tolerances_frames)
    clip_of_hit = clip[reference[taken]]
    return counts_of(
        boundary_hits=np.stack([corpus.per_clip(clip_of_hit, column) for column in hits.T], axis=1),
        boundary_references=corpus.per_clip(clip),
        boundary_predictions=corpus.per_clip(of_prediction),
    )


def _positions(
    spans: Spans, n_frames: NDArray[np.int64], offset: NDArray[np.int64], boundaries: Boundaries
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the clip and the position of each boundary, sorted, in half frames on one axis."""
    match boundaries:
        case Boundaries.ENDPOINTS:
            clip = np.concatenate([spans.clip, spans.clip])
            doubled = 2 * np.concatenate([spans.start, spans.end])
        case Boundaries.RENZ:
            clip, doubled = _midpoints(spans, n_frames)
        case _:
            assert_never(boundaries)
    positions, first = np.unique(doubled + offset[clip], return_index=True)
    return clip[first], positions


def _midpoints(
    spans: Spans, n_frames: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the doubled midpoints of the runs of frames outside signs.

    The runs before the first and after the last sign count, as in the published code. Between
    two adjacent signs the common edge counts: annotations of Renz et al. put a frame there.
    """
    clips = np.arange(n_frames.size, dtype=np.int64)
    clip = np.concatenate([clips, spans.clip, clips])
    start = np.concatenate([np.zeros_like(clips), spans.start, n_frames])
    end = np.concatenate([np.zeros_like(clips), spans.end, n_frames])
    part = np.repeat([0, 1, 2], [clips.size, spans.clip.size, clips.size])
    order = np.lexsort((start, part, clip))
    clip, start, end, part = clip[order], start[order], end[order], part[order]
    between_signs = (part[:-1] == 1) & (part[1:] == 1)
    is_run = (clip[:-1] == clip[1:]) & (between_signs | (start[1:] > end[:-1]))
    return clip[:-1][is_run], (end[:-1] + start[1:])[is_run]
