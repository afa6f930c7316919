"""Score on test what was selected on validation, and nothing else.

The manifest names the segmenters and holds the thresholds; no figure of a test clip chooses
anything here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.text import escape_untrusted
from scorers.cards import ScoreCard
from scorers.segmentation.card import score
from scorers.segmentation.comparison import compare
from scorers.segmentation.documents import SegmentationLabel, SystemOutput
from scorers.segmentation.figures import Figure
from scorers.segmentation.parameters import SegmentationParameters
from scorers.segmentation.rejection import RejectionLevel, without_rejected
from scorers.segmentation.selection import Objective, SelectionManifest, vocabulary_digest
from scorers.statistics.paired import PairedComparison

CHANGES = (Figure.COVERAGE, Figure.ALL_REFERENCE_ACCURACY, Figure.AUC_RU, Figure.WER_ALL)
"""The figures whose change a selector contrast reports (seed paper, Table IV)."""


@dataclass(frozen=True, slots=True)
class HeldOutReport:
    """What the selected segmenters reach on test.

    ``cards`` has one card an objective; ``changes`` compares each other objective's choice with
    the mF1S choice, figure by figure; ``joint`` is the card of the joint diagnostic's choice,
    its rejected clips not emitted.
    """

    cards: Mapping[Objective, ScoreCard]
    changes: Mapping[Objective, Mapping[Figure, PairedComparison]]
    joint: ScoreCard | None


def score_selected(
    manifest: SelectionManifest,
    labels: Sequence[SegmentationLabel],
    outputs: Mapping[str, SystemOutput],
    vocabulary: Collection[str],
    parameters: SegmentationParameters,
) -> HeldOutReport:
    """Score on test the segmenters that the manifest names, with its frozen thresholds.

    ``outputs`` holds the test output of each selected candidate under its name; others are not
    looked at. Raise ``RefusedByPolicy`` when test differs from what was frozen, and
    ``MalformedDocument`` for a selected candidate whose output is missing.
    """
    _refuse_thawed(manifest, labels, vocabulary, parameters)
    chosen = {
        objective: _output(outputs, name)
        for objective in Objective
        if (name := manifest.selected.get(objective.value)) is not None
    }
    levels = [RejectionLevel(**level.model_dump()) for level in manifest.rejection or []]
    cards = {
        objective: _card(labels, output, vocabulary, parameters, levels or None)
        for objective, output in chosen.items()
    }
    joint = manifest.joint
    if joint is None:
        return HeldOutReport(cards, _changes(labels, chosen, vocabulary, parameters), None)
    emitted = without_rejected(_output(outputs, joint.candidate), joint.threshold)
    return HeldOutReport(
        cards,
        _changes(labels, chosen, vocabulary, parameters),
        _card(labels, emitted, vocabulary, parameters, None),
    )


def _refuse_thawed(
    manifest: SelectionManifest,
    labels: Sequence[SegmentationLabel],
    vocabulary: Collection[str],
    parameters: SegmentationParameters,
) -> None:
    seen = sorted({label.clip_id for label in labels} & set(manifest.validation_clips))
    if seen:
        shown = escape_untrusted(seen[0])
        raise RefusedByPolicy(
            f"selection: {len(seen)} test clips, {shown} first, were in validation; test on others"
        )
    if parameters.scorer_string != manifest.scorer:
        raise RefusedByPolicy(
            f"selection: it was made with {escape_untrusted(manifest.scorer, 400)}, "
            f"not with {parameters.scorer_string}; score with the same parameters"
        )
    if vocabulary_digest(vocabulary) != manifest.vocabulary_sha256:
        raise RefusedByPolicy(
            "selection: the consumer's vocabulary is not the one it was made with"
        )


def _output(outputs: Mapping[str, SystemOutput], name: str) -> SystemOutput:
    if name not in outputs:
        raise MalformedDocument(f"selection: no test output of {escape_untrusted(name)} was given")
    return outputs[name]


def _card(
    labels: Sequence[SegmentationLabel],
    output: SystemOutput,
    vocabulary: Collection[str],
    parameters: SegmentationParameters,
    levels: Sequence[RejectionLevel] | None,
) -> ScoreCard:
    return score(
        labels,
        output.predictions,
        vocabulary,
        parameters,
        consumer=output.consumer,
        rejection_thresholds=levels,
    )


def _changes(
    labels: Sequence[SegmentationLabel],
    chosen: Mapping[Objective, SystemOutput],
    vocabulary: Collection[str],
    parameters: SegmentationParameters,
) -> dict[Objective, dict[Figure, PairedComparison]]:
    base = chosen.get(Objective.MF1S)
    if base is None:
        return {}
    return {
        objective: {
            figure: compare(labels, output, base, vocabulary, parameters, figure=figure)
            for figure in CHANGES
        }
        for objective, output in chosen.items()
        if objective is not Objective.MF1S
    }
