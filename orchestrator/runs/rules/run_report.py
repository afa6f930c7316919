"""The document that `certify --json` prints (design, section 7)."""

from __future__ import annotations

from collections.abc import Mapping

from manifests.runs import RunRecord
from orchestrator.ledger.rules.quota import QuotaState

_IMAGE_FIELDS = (
    "reference",
    "index_digest",
    "manifest_digest",
    "config_digest",
    "diff_ids",
    "platform",
)


def quota_document(quota: QuotaState) -> dict[str, int]:
    """Return both caps, what was used and voided, and what is left."""
    return {
        "certified_runs": quota.certified_runs,
        "used": quota.used,
        "pending": quota.pending,
        "voided": quota.voided,
        "left": quota.left,
        "attempts": quota.attempts,
        "attempts_used": quota.attempts_used,
        "attempts_left": quota.attempts_left,
    }


def run_document(
    record: RunRecord,
    quota: QuotaState,
    *,
    run_folder: str,
    card: Mapping[str, object] | None,
) -> dict[str, object]:
    """Return a certified run as one JSON document; `card` is the public card or None."""
    image = record.image.model_dump(mode="json")
    return {
        "run_id": record.run_id,
        "edition": record.edition,
        "team": record.team,
        "attempt": record.attempt,
        "certified_run": record.certified_run,
        "outcome": record.outcome.value,
        "diagnostics": [code.value for code in record.diagnostics],
        "voided": None if record.voided is None else record.voided.model_dump(mode="json"),
        "image": {name: image[name] for name in _IMAGE_FIELDS},
        "environment": record.environment,
        "quota": quota_document(quota),
        "predictions_sha256": record.predictions_sha256,
        "repeats_agree": record.repeats_agree,
        "image_removed": record.image_removed,
        "run_folder": run_folder,
        "score": None if card is None else dict(card),
    }
