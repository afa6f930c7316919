"""The ledger's statements: what may be said, and by which key.

A statement is the payload of one DSSE envelope; the envelope's bytes are one leaf of the log.
Everything here is public: no labels, no log text, no private figures.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from manifests.digests import OciDigest, Sha256Hex
from manifests.images import ImageIdentity
from manifests.names import EditionName, LabelsVersion, RunId, TeamName
from manifests.outcomes import Diagnostic, Outcome

PAYLOAD_TYPE = "application/vnd.piste.statement+json"

KeyRole = Literal["run", "scorer", "log"]
KeyAlgorithm = Literal["ecdsa-p256", "ed25519"]


def _whole_utc_second(moment: datetime) -> datetime:
    if moment.utcoffset() != timedelta(0) or moment.microsecond:
        raise ValueError("expected a moment in UTC with whole seconds")
    return moment


UtcSecond = Annotated[datetime, AfterValidator(_whole_utc_second)]
"""A moment in UTC, in whole seconds."""


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class PublicKey(_Document):
    """A published key: its role, its id (SHA-256 of the SPKI DER) and the PEM itself."""

    role: KeyRole
    algorithm: KeyAlgorithm
    key_id: Sha256Hex
    pem: str


class _Statement(_Document):
    sequence: int = Field(default=-1, ge=-1)
    """Position in the log, from 0; set by the ledger when it appends."""
    at: UtcSecond


class WorkspaceCreated(_Statement):
    """The log begins: its origin and the keys that sign."""

    kind: Literal["workspace-created"] = "workspace-created"
    origin: str
    keys: tuple[PublicKey, ...]


class KeyRotated(_Statement):
    """A key gives way to another; the old key signs this."""

    kind: Literal["key-rotated"] = "key-rotated"
    old_key_id: Sha256Hex
    new_key: PublicKey
    reason: str


class QuotaRule(_Document):
    """At most `certified_runs` that count, at most `attempts` in all, per team and edition."""

    certified_runs: int = Field(default=3, ge=1, le=100)
    attempts: int = Field(default=10, ge=1, le=1000)


class SubmissionRule(_Document):
    """Rolling windows of a qualifier round, in UTC."""

    per_hour: int = Field(default=5, ge=1, le=10_000)
    per_day: int = Field(default=20, ge=1, le=100_000)


class LabelsCommitment(_Document):
    """The published digest of a label version: SHA-256 of the salted file."""

    version: LabelsVersion
    sha256: Sha256Hex
    note: str = ""


class EditionSealed(_Statement):
    """An edition's clips and labels are sealed; from here on nothing of it changes."""

    kind: Literal["edition-sealed"] = "edition-sealed"
    edition: EditionName
    title: str
    track: Literal["recognition", "translation", "segmentation"]
    round: Literal["qualifier", "final"]
    edition_sha256: Sha256Hex
    seal_sha256: Sha256Hex
    """SHA-256 of seal.json."""
    clip_set_sha256: Sha256Hex
    """SHA-256 of the unpublished clips.sha256: the seal."""
    sealed_sums_sha256: Sha256Hex
    """SHA-256 of sealed.sha256, which lists the ciphertexts."""
    clips: int
    labels: LabelsCommitment
    profile: str
    profile_sha256: Sha256Hex
    gpu: Literal["required", "optional", "forbidden"]
    quota: QuotaRule
    submissions: SubmissionRule
    scorer: str
    """The scorer's name and version, as `epee200 2.1`."""
    opens: UtcSecond
    closes: UtcSecond
    consumer: str | None = None


class TeamRegistered(_Statement):
    """A team may enter. An organizer's team is never certified on the board."""

    kind: Literal["team-registered"] = "team-registered"
    team: TeamName
    organizer: bool = False
    data_track: Literal["open-data", "private-data"] = "open-data"


class RunReserved(_Statement):
    """A run is set aside under the quota; nothing is spent yet."""

    kind: Literal["run-reserved"] = "run-reserved"
    run_id: RunId
    edition: EditionName
    team: TeamName
    attempt: int
    """The attempt's number of this team in this edition, from 1, refunded ones included."""
    host: str
    image: ImageIdentity
    consumer: ImageIdentity | None = None
    profile_sha256: Sha256Hex
    clip_set_sha256: Sha256Hex
    deadline_s: int
    repeat: int = 1


class RunStarted(_Statement):
    """The entrant's container was checked and is about to start: the run counts."""

    kind: Literal["run-started"] = "run-started"
    run_id: RunId
    edition: EditionName
    team: TeamName
    container_id: str
    effective_sha256: Sha256Hex
    """SHA-256 of the canonical effective configuration read back from the engine."""
    environment: dict[str, object]


class RunFinished(_Statement):
    """The run ended and its predictions are kept."""

    kind: Literal["run-finished"] = "run-finished"
    run_id: RunId
    edition: EditionName
    team: TeamName
    outcome: Outcome
    diagnostics: tuple[Diagnostic, ...]
    predictions_sha256: Sha256Hex | None
    files: dict[str, Sha256Hex]
    """Every kept file of the run folder by name: predictions, stages, the encrypted log."""
    elapsed_s: float
    """Rounded to whole seconds: finer times could carry bits of a clip."""
    repeats_agree: bool | None = None
    gpu: dict[str, object] | None = None
    """GPU facts before and after, or null."""


class RunVoided(_Statement):
    """The run does not count, for a public reason."""

    kind: Literal["run-voided"] = "run-voided"
    run_id: RunId
    edition: EditionName
    team: TeamName
    reason: str
    by: Literal["tool", "organizer"]
    diagnostics: tuple[Diagnostic, ...] = ()


class ImageRemoved(_Statement):
    """The entrant's image was removed by id and looked for afterwards."""

    kind: Literal["image-removed"] = "image-removed"
    run_id: RunId
    edition: EditionName
    team: TeamName
    config_digest: OciDigest
    engine_image_id: str
    gone: bool
    images_before: int
    images_after: int
    detail: str = ""


class RunScored(_Statement):
    """Retained predictions were scored on one label version; the scorer's key signs this."""

    kind: Literal["run-scored"] = "run-scored"
    run_id: RunId
    edition: EditionName
    team: TeamName
    labels: LabelsCommitment
    scorer_string: str
    predictions_sha256: Sha256Hex
    public_sha256: Sha256Hex
    """SHA-256 of the public card's file."""
    private_sha256: Sha256Hex
    complete: bool
    figures: dict[str, float | None]
    """The track's figures for the board: fractions, or null where they cannot be computed."""


class LabelsAdded(_Statement):
    """A new label version exists; rows on it are new rows."""

    kind: Literal["labels-added"] = "labels-added"
    edition: EditionName
    labels: LabelsCommitment


class EditionRevealed(_Statement):
    """The edition is closed; clips' sums, labels and salts are published."""

    kind: Literal["edition-revealed"] = "edition-revealed"
    edition: EditionName
    files: dict[str, Sha256Hex]


class SubmissionRecorded(_Statement):
    """A self-reported predictions file of a qualifier round."""

    kind: Literal["submission-recorded"] = "submission-recorded"
    run_id: RunId
    edition: EditionName
    team: TeamName
    predictions_sha256: Sha256Hex
    training_data: Literal["open-data", "private-data"]
    training_note: str = ""


class SubmissionReviewed(_Statement):
    """The organizer's decision on a self-reported row."""

    kind: Literal["submission-reviewed"] = "submission-reviewed"
    run_id: RunId
    edition: EditionName
    team: TeamName
    decision: Literal["accept", "decline", "ask-final"]
    reason: str


Statement = Annotated[
    WorkspaceCreated
    | KeyRotated
    | EditionSealed
    | TeamRegistered
    | RunReserved
    | RunStarted
    | RunFinished
    | RunVoided
    | ImageRemoved
    | RunScored
    | LabelsAdded
    | EditionRevealed
    | SubmissionRecorded
    | SubmissionReviewed,
    Field(discriminator="kind"),
]
"""Any statement; `kind` tells which."""

STATEMENT: TypeAdapter[Statement] = TypeAdapter(Statement)
"""Validates and dumps any statement."""

SCORER_KINDS = frozenset({"run-scored", "labels-added", "edition-revealed"})
"""Kinds that the scorer's key signs; the run key signs all others (a rotation: the old key)."""
