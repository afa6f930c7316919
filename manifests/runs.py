"""The run record (run.json): what was asked, what ran, how it ended."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from manifests.digests import Sha256Hex
from manifests.images import ImageIdentity
from manifests.names import EditionName, RunId, TeamName
from manifests.outcomes import Diagnostic, Outcome


class Void(BaseModel):
    """Why a run does not count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str
    by: Literal["tool", "organizer"]


class RunRecord(BaseModel):
    """One run as its statements in the ledger tell it; nothing here is known from elsewhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: Literal["piste-run/1"] = "piste-run/1"
    run_id: RunId
    edition: EditionName
    team: TeamName
    attempt: int
    certified_run: int | None
    """This is run k of the edition's quota: k, or null where the run does not count."""
    outcome: Outcome
    diagnostics: tuple[Diagnostic, ...]
    voided: Void | None
    image: ImageIdentity
    consumer: ImageIdentity | None
    image_removed: bool | None
    """True once the image was looked for and not found; null while nobody looked."""
    host: str
    environment: dict[str, object]
    gpu: dict[str, object] | None
    profile_sha256: Sha256Hex
    effective_sha256: Sha256Hex | None
    clip_set_sha256: Sha256Hex
    predictions_sha256: Sha256Hex | None
    files: dict[str, Sha256Hex]
    deadline_s: int
    elapsed_s: float | None
    repeat: int
    repeats_agree: bool | None
    reserved_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    statements: tuple[int, ...]
    """The run's statements by their position in the log, up to the image's removal."""
