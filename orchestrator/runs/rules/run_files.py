"""The evidence of a run as bytes: which file is listed where, and the in-toto statement.

A run folder holds public files, listed in `SHA256SUMS`, and private ones (`score.private.json`,
encrypted logs), listed in `private.sha256`. `private.sha256` is itself public and listed, so the
signature reaches the private files too, and the folder still checks when they stay at home.
"""

from __future__ import annotations

from collections.abc import Mapping

from manifests.encoding import readable_json
from manifests.runs import RunRecord

IN_TOTO_PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "urn:piste:certified-run:v1"
BUILD_TYPE = "urn:piste:sandboxed-run:v1"

SUMS = "SHA256SUMS"
SUMS_SIGNATURE = "SHA256SUMS.sig"
PRIVATE_SUMS = "private.sha256"
ENVELOPE = "run.dsse.json"
PUBLIC_KEY = "run.pub"
RECORD = "run.json"
PREDICTIONS = "predictions.jsonl"
RAW_PREDICTIONS = "predictions.raw.age"
"""An invalid predictions file as it came: kept, but encrypted, for nothing of it was checked."""
CONSUMER_ANSWERS = "consumer.jsonl"
"""What the frozen consumer answered on the predicted segments."""
EFFECTIVE = "effective.json"
PUBLIC_CARD = "score.json"
PRIVATE_CARD = "score.private.json"
LOG = "log.age"

SCORES_FOLDER = "scores"
"""Cards of later label versions and scorers, one folder each, signed apart."""

UNLISTED = frozenset({SUMS, SUMS_SIGNATURE, ENVELOPE})
"""Files of a run folder that `SHA256SUMS` cannot list: itself and what signs it."""


POSE_FOLDER = "pose"
_POSE_PREFIX = f"{POSE_FOLDER}/"
_SEALED = ".age"


def run_folder(run_id: str) -> str:
    """Return the folder of a run or submission below the workspace."""
    return f"runs/{run_id}"


def sealed_pose(name: str) -> str:
    """Return the name under which a run keeps `pose/<clip>.npy`: encrypted, as clips are."""
    return f"{name}{_SEALED}"


def pose_clip(name: str) -> str | None:
    """Return the clip of `pose/<clip>.npy`, sealed or as it was written; None for other files."""
    plain = name.removesuffix(_SEALED)
    if not (plain.startswith(_POSE_PREFIX) and plain.endswith(".npy")):
        return None
    return plain.removeprefix(_POSE_PREFIX).removesuffix(".npy")


def is_private(name: str) -> bool:
    """Tell whether a file of a run folder stays with the organizer."""
    return name.endswith((".private.json", ".age"))


def record_bytes(record: RunRecord) -> bytes:
    """Return run.json's bytes."""
    return readable_json(record.model_dump(mode="json"))


def _subjects(digests: Mapping[str, str]) -> list[dict[str, object]]:
    return [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)]


def _dependencies(record: RunRecord) -> list[dict[str, object]]:
    image = record.image
    found: list[dict[str, object]] = [
        {"name": "image", "uri": image.reference, "digest": {"sha256": image.config_digest[7:]}},
        {"name": "clip-set", "digest": {"sha256": record.clip_set_sha256}},
    ]
    if record.consumer is not None:
        digest = {"sha256": record.consumer.config_digest[7:]}
        found.append({"name": "consumer", "uri": record.consumer.reference, "digest": digest})
    return found


def in_toto_statement(
    record: RunRecord, digests: Mapping[str, str], *, builder: str
) -> dict[str, object]:
    """Return an in-toto Statement v1, its predicate shaped like SLSA provenance v1.

    `digests` maps the public files' names, `SHA256SUMS` included, to their SHA-256.
    """
    predicate = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "edition": record.edition,
                "team": record.team,
                "attempt": record.attempt,
            },
            "internalParameters": {
                "profile_sha256": record.profile_sha256,
                "effective_sha256": record.effective_sha256,
                "deadline_s": record.deadline_s,
                "repeat": record.repeat,
            },
            "resolvedDependencies": _dependencies(record),
        },
        "runDetails": {
            "builder": {"id": f"urn:piste:host:{record.host}", "version": {"piste": builder}},
            "metadata": {
                "invocationId": record.run_id,
                "startedOn": record.started_at.isoformat() if record.started_at else None,
                "finishedOn": record.finished_at.isoformat() if record.finished_at else None,
            },
            "byproducts": [
                {"name": "outcome", "annotations": {"outcome": record.outcome.value}},
                {"name": "environment", "annotations": record.environment},
            ],
        },
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": _subjects(digests),
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
