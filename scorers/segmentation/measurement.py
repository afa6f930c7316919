"""Turn one system's output into additive counts, per clip and per signer."""

from __future__ import annotations

from scorers.segmentation.boundaries import boundary_counts
from scorers.segmentation.corpus import Corpus
from scorers.segmentation.counts import Counts
from scorers.segmentation.frames import frame_counts
from scorers.segmentation.matching import overlapping_pairs
from scorers.segmentation.parameters import SegmentationParameters
from scorers.segmentation.recovery import recovery_counts, segment_counts
from scorers.segmentation.sequence import sequence_counts


def clip_counts(corpus: Corpus, parameters: SegmentationParameters) -> Counts:
    """Count everything that the figures need, one row a clip.

    Localisation uses the full annotation; recovery uses the in-vocabulary references. Without a
    consumer the recognition and sequence counts are absent.
    """
    pairs = overlapping_pairs(corpus.references, corpus.predictions, corpus.n_frames)
    return (
        boundary_counts(corpus, parameters)
        | segment_counts(corpus, pairs, parameters)
        | frame_counts(corpus, pairs)
        | recovery_counts(corpus, parameters)
        | sequence_counts(corpus, pairs)
    )


def consumer_counts(corpus: Corpus, parameters: SegmentationParameters) -> Counts:
    """Count only what a changed stream of answers changes: recovery and sequence."""
    pairs = overlapping_pairs(corpus.references, corpus.predictions, corpus.n_frames)
    return (
        segment_counts(corpus, pairs, parameters)
        | recovery_counts(corpus, parameters)
        | sequence_counts(corpus, pairs)
    )


def signer_counts(counts: Counts, corpus: Corpus) -> Counts:
    """Sum the clips of each signer; rows in the order of ``corpus.signers``."""
    return counts.grouped(corpus.signer_of, len(corpus.signers))
