"""Put two segmenters side by side on the same clips, signers resampled together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from scorers.segmentation.corpus import build_corpus, missing_clips
from scorers.segmentation.counts import Counts
from scorers.segmentation.documents import SegmentationLabel, SystemOutput
from scorers.segmentation.figures import NEEDS_CONSUMER, Figure, figure_values
from scorers.segmentation.intervals import compare_signers
from scorers.segmentation.measurement import clip_counts, signer_counts
from scorers.segmentation.parameters import SegmentationParameters
from scorers.statistics.paired import PairedComparison


def compare(
    labels: Sequence[SegmentationLabel],
    first: SystemOutput,
    second: SystemOutput,
    vocabulary: Collection[str],
    parameters: SegmentationParameters,
    *,
    figure: Figure = Figure.MF1S,
) -> PairedComparison:
    """Compare one figure of two complete runs; ``units`` is the number of signers.

    ``delta`` is first - second; the p-value is for the first being better, which for WER means
    lower. Raise ``MalformedDocument`` for an incomplete run, a missing consumer or a figure
    that these labels leave undefined.
    """
    rows = [_signer_rows(labels, s, vocabulary, parameters, figure) for s in (first, second)]
    return compare_signers(figure, rows[0], rows[1], parameters)


def _signer_rows(
    labels: Sequence[SegmentationLabel],
    system: SystemOutput,
    vocabulary: Collection[str],
    parameters: SegmentationParameters,
    figure: Figure,
) -> Counts:
    place = f"system {escape_untrusted(system.name)}"
    absent = missing_clips(labels, system.predictions)
    if absent:
        shown = escape_untrusted(absent[0])
        raise MalformedDocument(
            f"{place}: no predictions for clip {shown}; incomplete runs never rank"
        )
    if figure in NEEDS_CONSUMER and system.consumer is None:
        raise MalformedDocument(f"{place}: {figure.value} needs a consumer's answers")
    corpus = build_corpus(labels, system.predictions, vocabulary, system.consumer)
    counts = clip_counts(corpus, parameters)
    if np.isnan(figure_values(figure, counts.total(), parameters)).any():
        raise MalformedDocument(f"{place}: {figure.value} is undefined here; nothing to compare")
    return signer_counts(counts, corpus)
