"""All clips of an exam as flat arrays, so that every count is one vectorised step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from manifests.text import escape_untrusted
from scorers.segmentation.documents import (
    UNKNOWN,
    ConsumerAnswers,
    FrameSpan,
    Predictions,
    SegmentationLabel,
    check_spans,
    checked_answers,
    labels_by_clip,
    reference_spans,
    refuse_unknown_clips,
)

OUT_OF_VOCABULARY = -1
"""The token of a reference outside the consumer's vocabulary."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals of frames of many clips, by clip, then in time; three int64 arrays (n,)."""

    clip: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    @property
    def length(self) -> NDArray[np.int64]:
        """Return the frames in each interval."""
        return self.end - self.start

    def chosen(self, mask: NDArray[np.bool_]) -> Spans:
        """Return the intervals that the mask keeps."""
        return Spans(self.clip[mask], self.start[mask], self.end[mask])


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One system's output beside the labels, clips in the order of their ids.

    ``reference_token`` holds the place of each reference's gloss in the sorted vocabulary, or
    ``OUT_OF_VOCABULARY``. ``answer_token`` does the same for the consumer's answers, where any
    answer that can never equal a reference is ``len(vocabulary)``; it is None without a consumer.
    ``confidence`` is NaN where the consumer gives none.
    """

    signers: tuple[str, ...]
    signer_of: NDArray[np.int64]
    n_frames: NDArray[np.int64]
    references: Spans
    reference_token: NDArray[np.int64]
    predictions: Spans
    answer_token: NDArray[np.int64] | None
    confidence: NDArray[np.float64] | None

    @property
    def clips(self) -> int:
        """Return the number of clips."""
        return int(self.n_frames.size)

    def per_clip(
        self, clip: NDArray[np.int64], weights: NDArray[np.generic] | None = None
    ) -> NDArray[np.float64]:
        """Sum ``weights`` (default: ones) over the items of each clip; float64 (clips,)."""
        return np.bincount(clip, weights=weights, minlength=self.clips).astype(np.float64)

    def kept(self, mask: NDArray[np.bool_]) -> Corpus:
        """Return the corpus with only the predictions that the mask keeps."""
        return replace(
            self,
            predictions=self.predictions.chosen(mask),
            answer_token=None if self.answer_token is None else self.answer_token[mask],
            confidence=None if self.confidence is None else self.confidence[mask],
        )


def missing_clips(labels: Iterable[SegmentationLabel], predictions: Predictions) -> list[str]:
    """Return the clips of the exam for which the system says nothing."""
    return [label.clip_id for label in labels if label.clip_id not in predictions]


def build_corpus(
    labels: Iterable[SegmentationLabel],
    predictions: Predictions,
    vocabulary: Collection[str],
    consumer: ConsumerAnswers | None = None,
) -> Corpus:
    """Check one system's output against the labels and lay it out as arrays.

    A clip that ``predictions`` lack counts as one without predictions: the caller says whether
    an incomplete run is scored. Raise ``MalformedDocument`` with clip and segment.
    """
    by_clip = labels_by_clip(labels)
    refuse_unknown_clips(predictions, by_clip, "predictions")
    signers = tuple(sorted({label.signer_id for label in by_clip.values()}))
    places = {signer: place for place, signer in enumerate(signers)}
    token_of = {gloss: token for token, gloss in enumerate(sorted(set(vocabulary)))}
    spans = [_predicted(label, predictions) for label in by_clip.values()]
    answers = None if consumer is None else _answers(by_clip, spans, consumer)
    return Corpus(
        signers=signers,
        signer_of=np.array([places[label.signer_id] for label in by_clip.values()], np.int64),
        n_frames=np.array([label.n_frames for label in by_clip.values()], np.int64),
        references=_flat([reference_spans(label) for label in by_clip.values()]),
        reference_token=_reference_tokens(by_clip.values(), token_of),
        predictions=_flat(spans),
        answer_token=None if answers is None else _answer_tokens(answers, token_of),
        confidence=None if answers is None else _confidences(answers),
    )


def _predicted(label: SegmentationLabel, predictions: Predictions) -> list[FrameSpan]:
    spans = [(start, end) for start, end in predictions.get(label.clip_id, ())]
    place = f"predictions, clip {escape_untrusted(label.clip_id)}"
    check_spans(spans, label.n_frames, place)
    return spans


def _flat(spans: list[list[FrameSpan]]) -> Spans:
    clip = np.repeat(np.arange(len(spans)), [len(of_clip) for of_clip in spans])
    edges = np.array([span for of_clip in spans for span in of_clip], np.int64).reshape(-1, 2)
    return Spans(clip.astype(np.int64), edges[:, 0].copy(), edges[:, 1].copy())


def _reference_tokens(
    labels: Iterable[SegmentationLabel], token_of: Mapping[str, int]
) -> NDArray[np.int64]:
    glosses = [segment.gloss for label in labels for segment in label.segments]
    return np.array([token_of.get(gloss, OUT_OF_VOCABULARY) for gloss in glosses], np.int64)


def _answers(
    labels: Mapping[str, SegmentationLabel],
    spans: list[list[FrameSpan]],
    consumer: ConsumerAnswers,
) -> list[tuple[str, float | None]]:
    refuse_unknown_clips(consumer, labels, "consumer")
    return [
        answer
        for clip_id, of_clip in zip(labels, spans, strict=True)
        for answer in checked_answers(consumer.get(clip_id, ()), len(of_clip), clip_id)
    ]


def _answer_tokens(
    answers: list[tuple[str, float | None]], token_of: Mapping[str, int]
) -> NDArray[np.int64]:
    never = len(token_of)
    tokens = [never if gloss == UNKNOWN else token_of.get(gloss, never) for gloss, _ in answers]
    return np.array(tokens, np.int64)


def _confidences(answers: list[tuple[str, float | None]]) -> NDArray[np.float64]:
    given = [np.nan if confidence is None else confidence for _, confidence in answers]
    return np.array(given, np.float64)
