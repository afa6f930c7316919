"""The segmentation card: four views of one segmenter, and what they rest on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from manifests.text import escape_untrusted
from scorers.cards import Figure as CardFigure
from scorers.cards import Json, NotComputed, ScoreCard, section
from scorers.segmentation.corpus import Corpus, build_corpus, missing_clips
from scorers.segmentation.counts import Counts
from scorers.segmentation.documents import (
    ConsumerAnswers,
    Predictions,
    SegmentationLabel,
    labels_by_clip,
    refuse_unknown_clips,
)
from scorers.segmentation.figures import (
    NEEDS_CONSUMER,
    NEEDS_VOCABULARY,
    Figure,
    figure_values,
    reason_undefined,
)
from scorers.segmentation.intervals import signer_intervals, signer_resamples
from scorers.segmentation.measurement import clip_counts, consumer_counts, signer_counts
from scorers.segmentation.parameters import SCORER_NAME, SCORER_VERSION, SegmentationParameters
from scorers.segmentation.rejection import RejectionLevel, above

_OTHER_FIGURES = ("auc_ru_grid", "utility", "rejection", "intervals")
_ERROR_RATES = frozenset({Figure.WER_ALL, Figure.WER_IV})


def score(
    labels: Sequence[SegmentationLabel],
    predictions: Predictions,
    vocabulary: Collection[str] | None,
    parameters: SegmentationParameters,
    *,
    consumer: ConsumerAnswers | None = None,
    rejection_thresholds: Sequence[RejectionLevel] | None = None,
) -> ScoreCard:
    """Score a segmenter, with the answers of a frozen consumer where there are any.

    ``vocabulary`` is the consumer's; None leaves every figure that depends on it null, as no
    ``consumer`` does for recognition and sequence error. ``rejection_thresholds`` come from
    ``fit_rejection`` on validation. A clip without predictions makes the run incomplete: all
    figures are null. Raise ``MalformedDocument`` with clip and segment for anything malformed.
    """
    absent = _absent_clips(labels, predictions, consumer)
    corpus = build_corpus(labels, predictions, vocabulary or (), consumer)
    if absent is not None:
        figures: dict[str, CardFigure] = dict.fromkeys(
            [*(figure.value for figure in Figure), *_OTHER_FIGURES], NotComputed(absent)
        )
        private: dict[str, CardFigure] = {}
    else:
        missing = _missing_inputs(vocabulary, corpus)
        counts = clip_counts(corpus, parameters)
        figures = _public_figures(counts, corpus, missing, parameters)
        figures["rejection"] = _rejection(corpus, rejection_thresholds, missing, parameters)
        private = {"by_signer": _by_signer(counts, corpus, missing, parameters)}
    public = section({**figures, "counts": _sizes(labels, corpus, vocabulary is not None)})
    return _card(parameters, public, section(private), complete=absent is None)


def _card(
    parameters: SegmentationParameters,
    public: Mapping[str, Json],
    private: Mapping[str, Json],
    *,
    complete: bool,
) -> ScoreCard:
    return ScoreCard(
        track="segmentation",
        scorer_name=SCORER_NAME,
        scorer_version=SCORER_VERSION,
        scorer_string=parameters.scorer_string,
        labels_version=parameters.labels_version,
        complete=complete,
        public=public,
        private=private,
    )


def _absent_clips(
    labels: Sequence[SegmentationLabel],
    predictions: Predictions,
    consumer: ConsumerAnswers | None,
) -> str | None:
    known = labels_by_clip(labels)
    refuse_unknown_clips(predictions, known, "predictions")
    absent = missing_clips(known.values(), predictions)
    if absent:
        return _shortage("the predictions lack", absent, len(known))
    if consumer is not None:
        unanswered = [clip for clip in known if predictions[clip] and clip not in consumer]
        if unanswered:
            return _shortage("the consumer does not answer", unanswered, len(known))
    return None


def _shortage(what: str, clips: list[str], of: int) -> str:
    return f"incomplete: {what} {len(clips)} of {of} clips, {escape_untrusted(clips[0])} first"


def _missing_inputs(vocabulary: Collection[str] | None, corpus: Corpus) -> dict[Figure, str]:
    """Say which figures have no inputs, and why."""
    missing: dict[Figure, str] = {}
    if corpus.answer_token is None:
        missing |= dict.fromkeys(NEEDS_CONSUMER, "no consumer answered the predicted clips")
    if vocabulary is None:
        missing |= dict.fromkeys(NEEDS_VOCABULARY, "no consumer vocabulary was given")
    return missing


def _public_figures(
    counts: Counts,
    corpus: Corpus,
    missing: Mapping[Figure, str],
    parameters: SegmentationParameters,
) -> dict[str, CardFigure]:
    figures = _figures(counts.total(), missing, parameters)
    figures["auc_ru_grid"] = [percent / 100 for percent in parameters.utility_percent]
    figures["utility"] = _utility(counts.total(), missing, parameters)
    figures["intervals"] = _intervals(counts, corpus, missing, parameters)
    return figures


def _figures(
    total: Counts, missing: Mapping[Figure, str], parameters: SegmentationParameters
) -> dict[str, CardFigure]:
    """Return every figure of one row of counts, in the order of the card."""
    return {figure.value: _figure(figure, total, missing, parameters) for figure in Figure}


def _figure(
    figure: Figure,
    total: Counts,
    missing: Mapping[Figure, str],
    parameters: SegmentationParameters,
) -> CardFigure:
    if figure in missing:
        return NotComputed(missing[figure])
    value = float(figure_values(figure, total, parameters)[0])
    shown = NotComputed(reason_undefined(figure)) if np.isnan(value) else value
    if figure not in _ERROR_RATES:
        return shown
    numbers = (int(count) for count in total[figure.value][0])
    return {"wer": shown, **dict(zip("sdin", numbers, strict=True))}


def _utility(
    total: Counts, missing: Mapping[Figure, str], parameters: SegmentationParameters
) -> CardFigure:
    """Return K and U at each threshold of the grid (seed paper, III-A)."""
    if Figure.AUC_RU in missing:
        return NotComputed(missing[Figure.AUC_RU])
    references = total.one("iv_references")[0]
    if references == 0:
        return NotComputed(reason_undefined(Figure.AUC_RU))
    hits = zip(parameters.utility_percent, total["utility_hits"][0], strict=True)
    return [{"iou": percent / 100, "k": int(k), "u": k / references} for percent, k in hits]


def _intervals(
    counts: Counts,
    corpus: Corpus,
    missing: Mapping[Figure, str],
    parameters: SegmentationParameters,
) -> CardFigure:
    signers = len(corpus.signers)
    if signers < 2:
        return NotComputed("one signer: nothing to resample")
    resamples = signer_resamples(signers, parameters)
    wanted = [figure for figure in Figure if figure not in missing]
    found = signer_intervals(signer_counts(counts, corpus), resamples, wanted, parameters)
    return {
        "unit": "signer",
        "clusters": signers,
        "method": resamples.method,
        "replicates": int(resamples.weights.shape[0]),
        "level": 0.95,
        "figures": {figure.value: list(bounds) for figure, bounds in found.items()},
    }


def _rejection(
    corpus: Corpus,
    thresholds: Sequence[RejectionLevel] | None,
    missing: Mapping[Figure, str],
    parameters: SegmentationParameters,
) -> CardFigure:
    if Figure.WER_ALL in missing:
        return NotComputed(missing[Figure.WER_ALL])
    if thresholds is None:
        return NotComputed("no thresholds were fixed on validation")
    if corpus.confidence is None or np.isnan(corpus.confidence).any():
        return NotComputed("the consumer gives no confidence for some answers")
    return [_rejected(corpus, level, parameters) for level in thresholds]


def _rejected(
    corpus: Corpus, level: RejectionLevel, parameters: SegmentationParameters
) -> dict[str, CardFigure]:
    """Return what is left when answers below the threshold are not emitted."""
    kept = above(corpus, level.threshold)
    total = consumer_counts(kept, parameters).total()
    emitted = corpus.predictions.clip.size
    share = kept.predictions.clip.size / emitted if emitted else None
    shown = (Figure.WER_ALL, Figure.WER_IV, Figure.COVERAGE, Figure.ALL_REFERENCE_ACCURACY)
    return {
        "retention": level.retention_percent / 100,
        "threshold": level.threshold,
        "retained_on_validation": level.retained,
        "retained": NotComputed(reason_undefined(Figure.OOV_SHARE)) if share is None else share,
        **{figure.value: _figure(figure, total, {}, parameters) for figure in shown},
    }


def _by_signer(
    counts: Counts,
    corpus: Corpus,
    missing: Mapping[Figure, str],
    parameters: SegmentationParameters,
) -> CardFigure:
    rows = signer_counts(counts, corpus)
    return {
        signer: _figures(
            Counts({name: block[place : place + 1] for name, block in rows.columns.items()}),
            missing,
            parameters,
        )
        for place, signer in enumerate(corpus.signers)
    }


def _sizes(
    labels: Sequence[SegmentationLabel], corpus: Corpus, with_vocabulary: bool
) -> dict[str, CardFigure]:
    in_vocabulary = int((corpus.reference_token >= 0).sum())
    return {
        "clips": corpus.clips,
        "signers": len(corpus.signers),
        "frames": int(corpus.n_frames.sum()),
        "fps": sorted({float(label.fps) for label in labels}),
        "references": int(corpus.reference_token.size),
        "references_iv": in_vocabulary if with_vocabulary else None,
        "predictions": int(corpus.predictions.clip.size),
    }
