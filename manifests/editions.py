"""The edition: what an organizer asks for, in one file that a person writes (design, section 6)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from manifests.digests import Sha256Hex
from manifests.glosses import label_gloss_fault
from manifests.names import EditionName, LabelsVersion
from manifests.statements import QuotaRule, SubmissionRule
from manifests.strict_yaml import Path, parse_yaml
from manifests.validation import StrictDocument, cross_field_error, validate_document

Track = Literal["recognition", "translation", "segmentation"]
ScorerName = Literal["epee200", "signet", "consumer-aware"]

SCORER_OF_TRACK: dict[Track, ScorerName] = {
    "recognition": "epee200",
    "translation": "signet",
    "segmentation": "consumer-aware",
}
"""Each track has one scorer."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_VERSION = r"^[0-9]{1,6}(\.[0-9]{1,6}){0,3}$"
_REFERENCE = r"^[a-z0-9][a-zA-Z0-9._/:-]{0,254}@sha256:[0-9a-f]{64}$"


def _one_line(text: str) -> str:
    if not text.strip() or _CONTROL.search(text):
        raise ValueError("text should be one line without control characters, and not blank")
    return text


def _utc_second(moment: datetime) -> datetime:
    if moment.utcoffset() != timedelta(0) or moment.microsecond:
        raise ValueError("time should be in UTC, in whole seconds")
    return moment.replace(tzinfo=UTC)


Line = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]
FilePath = Annotated[str, Field(max_length=1000), AfterValidator(_one_line)]
"""A path as the organizer writes it, relative to the edition's file."""
UtcSecond = Annotated[datetime, AfterValidator(_utc_second)]
Version = Annotated[str, Field(pattern=_VERSION)]


class LabelsRule(StrictDocument):
    """The label version that a sealed edition begins with."""

    version: LabelsVersion = Field(description="a name, as labels-v1")
    path: FilePath = Field(description="the path of a JSONL file")
    note: str = Field(default="", max_length=1000, description="a remark, at most 1000 characters")


class ScorerRule(StrictDocument):
    """The scorer, pinned by name and version, and the parameters an edition may choose.

    `resamples` None means the scorer's own default (scoring notes, section 0).
    """

    name: ScorerName = Field(description="epee200, signet or consumer-aware")
    version: Version = Field(description='a version in quotes, as "2.1"')
    resamples: int | None = Field(
        default=None, ge=100, le=100_000, description="a number from 100 to 100000, as 1000"
    )
    seed: int = Field(default=200, ge=0, lt=2**63, description="a number from 0, as 200")
    gate_threshold: float | None = Field(
        default=None, gt=0, le=1000, description="signet: the grounding gate, above 0, or null"
    )
    derangement_key: str = Field(
        default="", max_length=200, description="signet: a text of at most 200 characters"
    )


class BleurtRule(StrictDocument):
    """The BLEURT checkpoint of a translation exam: a local folder, pinned by its digest."""

    checkpoint: FilePath = Field(description="the path of a checkpoint's folder")
    sha256: Sha256Hex | None = Field(
        default=None, description="the checkpoint's digest as a card prints it, 64 hex digits"
    )


class OrganizerRule(StrictDocument):
    """Who answers for the edition."""

    name: Line = Field(description="a name of one line")
    contact: Line = Field(description="an address of one line, as organizers@example.org")


class EngineMinimum(StrictDocument):
    """The oldest engine and runtime that may run this edition (sandbox notes, 1.10)."""

    docker: Version | None = Field(default=None, description='a version in quotes, as "25.0"')
    runc: Version | None = Field(default=None, description='a version in quotes, as "1.2.8"')


def _checked_gloss_map(mapping: dict[str, str]) -> dict[str, str]:
    for gloss in (*mapping, *mapping.values()):
        fault = label_gloss_fault(gloss)
        if fault:
            raise ValueError(fault)
    chained = sorted(set(mapping.values()) & set(mapping))
    if chained:
        raise ValueError(f"{chained[0]} stands on both sides; map each variant to its final gloss")
    return mapping


class Edition(StrictDocument):
    """One exam in one round: its clips, labels, limits, scorer and dates."""

    edition: EditionName = Field(
        description="a name of 3 to 64 characters a-z, 0-9 and -, as epee200-final-2026"
    )
    title: Line = Field(description="a title of one line")
    track: Track = Field(description="recognition, translation or segmentation")
    round: Literal["qualifier", "final"] = Field(description="qualifier or final")
    exam_version: Version = Field(description='a version in quotes, as "1.0"')
    layout: Literal["clerc-128"] = Field(description="clerc-128")
    source: FilePath = Field(description="the path of a folder in the Épée layout, as clips/")
    expected_clips: int = Field(ge=1, le=100_000, description="the number of clips, as 200")
    vocabulary: FilePath | None = Field(
        default=None, description="the path of a text file with one gloss per line"
    )
    labels: LabelsRule = Field(description="version, path and note of the labels")
    profile: FilePath = Field(
        default="certified", description="a shipped profile, as certified, or a path"
    )
    gpu: Literal["required", "optional", "forbidden"] = Field(
        default="optional", description="required, optional or forbidden"
    )
    quota: QuotaRule = Field(
        default=QuotaRule(), description="certified_runs from 1 to 100, attempts from 1 to 1000"
    )
    submissions: SubmissionRule = Field(
        default=SubmissionRule(), description="per_hour and per_day, each at least 1"
    )
    scorer: ScorerRule = Field(description="name and version of the scorer")
    held_out_signer: Line | None = Field(
        default=None, description="recognition: a signer_id of the labels, or null"
    )
    opens: UtcSecond = Field(description="a time in UTC, as 2026-12-01T00:00:00Z")
    closes: UtcSecond = Field(description="a time in UTC, as 2027-03-01T00:00:00Z")
    organizer: OrganizerRule = Field(description="name and contact")
    consumer: Annotated[str, Field(pattern=_REFERENCE)] | None = Field(
        default=None, description="segmentation: the frozen recognizer as repo@sha256:…"
    )
    bleurt: BleurtRule | None = Field(
        default=None, description="translation: the checkpoint's folder and digest, or null"
    )
    gloss_map: Annotated[dict[str, str], AfterValidator(_checked_gloss_map)] = Field(
        default={}, description="gloss variants and the gloss that each counts as"
    )
    engine_minimum: EngineMinimum = Field(
        default=EngineMinimum(), description="versions of docker and runc"
    )

    @model_validator(mode="after")
    def _check_between_fields(self) -> Edition:
        for field, fact in _contradictions(self):
            raise cross_field_error(field, fact)
        return self

    def mapped_gloss(self, gloss: str) -> str:
        """Return the gloss as which `gloss` counts in this edition."""
        return self.gloss_map.get(gloss, gloss)


def _contradictions(edition: Edition) -> list[tuple[str, str]]:
    """Return the fields that contradict others, and the facts."""
    return _of_dates_and_quota(edition) + _of_track(edition)


def _of_dates_and_quota(edition: Edition) -> list[tuple[str, str]]:
    found = []
    if edition.closes <= edition.opens:
        found.append(("closes", f"is not after opens, {edition.opens:%Y-%m-%dT%H:%M:%SZ}"))
    runs, attempts = edition.quota.certified_runs, edition.quota.attempts
    if attempts < runs:
        fact = f"{attempts} attempts cannot hold {runs} certified runs; allow at least as many"
        found.append(("quota.attempts", fact))
    if edition.submissions.per_day < edition.submissions.per_hour:
        found.append(("submissions.per_day", "is below per_hour; allow at least as many"))
    return found


def _of_track(edition: Edition) -> list[tuple[str, str]]:
    track = edition.track
    scorer = SCORER_OF_TRACK[track]
    signet_only = edition.scorer.gate_threshold is not None or edition.scorer.derangement_key
    rules = [
        (edition.scorer.name != scorer, "scorer.name", f"the scorer of {track} is {scorer}"),
        (track != "translation" and not edition.vocabulary, "vocabulary", f"{track} needs one"),
        (
            track == "translation" and edition.vocabulary is not None,
            "vocabulary",
            "translation has none; leave it out",
        ),
        (track == "segmentation" and not edition.consumer, "consumer", "segmentation needs one"),
        (
            track != "segmentation" and edition.consumer is not None,
            "consumer",
            f"only segmentation has one, not {track}",
        ),
        (
            track != "recognition" and edition.held_out_signer is not None,
            "held_out_signer",
            f"only recognition has one, not {track}",
        ),
        (
            track != "translation" and edition.bleurt is not None,
            "bleurt",
            f"only translation has one, not {track}",
        ),
        (
            track == "translation" and bool(edition.gloss_map),
            "gloss_map",
            "translation has no glosses; leave it out",
        ),
        (
            track != "translation" and bool(signet_only),
            "scorer",
            "gate_threshold and derangement_key belong to signet alone; leave them out",
        ),
    ]
    return [(field, fact) for broken, field, fact in rules if broken]


def parse_edition(data: bytes, *, source: str) -> Edition:
    """Parse the bytes of an `edition.yaml`.

    Raises:
        MalformedDocument: `source:line: field name: fact; next step`, one line for each fault.

    """
    document = parse_yaml(data, source=source)

    def prefix(path: Path) -> str:
        return f"{source}:{document.line_of(path)}"

    return validate_document(Edition, document.values, prefix=prefix)
