"""Check 26: labels against their commitment, then the kept predictions scored anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from manifests.digests import sha256_hex
from manifests.editions import Edition
from manifests.encoding import canonical_json
from manifests.errors import RefusedByPolicy
from manifests.labels import Labels, parse_salted_labels
from manifests.statements import LabelsCommitment
from manifests.vocabulary import parse_vocabulary
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_cards import ScoredCard
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.runs.rules.run_files import PREDICTIONS
from orchestrator.scoring.rules.scoring import ScoringTask, edition_parameters, score
from scorers.cards import ScoreCard

CONSUMER = "consumer.jsonl"
_COMPARED = ("track", "scorer", "labels", "complete", "public")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """An edition and the labels of it that are at hand, by version."""

    edition: Edition
    vocabulary: tuple[str, ...] | None
    labels: Mapping[str, Labels]


def read_labels(
    findings: Findings,
    data: bytes,
    *,
    source: str,
    edition: Edition,
    commitments: Mapping[str, LabelsCommitment],
) -> dict[str, Labels]:
    """Return the labels by version after holding their bytes against the commitments.

    Nothing of a file that was not committed to is parsed.
    """
    digest = sha256_hex(data)
    for version, commitment in commitments.items():
        if commitment.sha256 == digest:
            findings.compared(Check.RESCORE)
            with findings.judging(Check.RESCORE):
                return {version: parse_salted_labels(data, track=edition.track, source=source)}
    return {}


def read_vocabulary(findings: Findings, folder: Folder, *, name: str) -> tuple[str, ...] | None:
    """Return the edition's vocabulary, or None where it has none."""
    if name not in folder.contents:
        return None
    with findings.judging(Check.RESCORE):
        return parse_vocabulary(folder.read(name), source=f"{folder.place}/{name}")
    return None


def check_rescoring(findings: Findings, run: Folder, card: ScoredCard, exam: Exam) -> None:
    """Score the kept predictions anew and compare every figure, to the last digit."""
    labels = exam.labels.get(card.row.labels.version)
    if labels is None:
        findings.note(
            Check.RESCORE, f"labels {card.row.labels.version} are not here; give them: --labels"
        )
        return
    if exam.edition.track == "translation":
        findings.note(
            Check.RESCORE,
            "a translation card needs the clips' own keypoints, which stay sealed: piste rescore",
        )
        return
    with findings.judging(Check.RESCORE):
        scored = _score(findings, run, labels, card, exam)
        if scored is not None:
            findings.compared(Check.RESCORE)
            _compare(findings, scored, card)


def _score(
    findings: Findings, run: Folder, labels: Labels, card: ScoredCard, exam: Exam
) -> ScoreCard | None:
    try:
        parameters = edition_parameters(exam.edition, card.row.labels.version)
    except RefusedByPolicy as refusal:
        findings.note(Check.RESCORE, f"not scored anew: {refusal}")
        return None
    consumer = CONSUMER in run.digests
    return score(
        ScoringTask(
            labels=labels,
            parameters=parameters,
            predictions=run.read(PREDICTIONS),
            source=f"{run.place}/{PREDICTIONS}",
            vocabulary=exam.vocabulary,
            gloss_map=exam.edition.gloss_map,
            consumer=run.read(CONSUMER) if consumer else None,
            consumer_source=f"{run.place}/{CONSUMER}",
        )
    )


def _compare(findings: Findings, scored: ScoreCard, card: ScoredCard) -> None:
    if scored.scorer_string != card.row.scorer_string:
        findings.fault(
            Check.RESCORE,
            f"{card.place}: another scorer: the card is by {card.row.scorer_string}, here is "
            f"{scored.scorer_string}; verify with the release and libraries that the card names",
        )
        return
    anew = scored.public_document()
    differing = [
        name
        for name in _COMPARED
        if canonical_json(anew.get(name)) != canonical_json(card.document.get(name))
    ]
    if differing:
        findings.fault(
            Check.RESCORE,
            f"{card.place}: scoring anew gives another {', '.join(differing)}"
            + _first_difference(anew["public"], card.document.get("public")),
        )


def _first_difference(anew: object, recorded: object) -> str:
    if not isinstance(anew, dict) or not isinstance(recorded, dict):
        return ""
    for name in sorted(anew.keys() | recorded.keys()):
        if canonical_json(anew.get(name)) != canonical_json(recorded.get(name)):
            return f": {name} is {str(anew.get(name))[:60]}, not {str(recorded.get(name))[:60]}"
    return ""
