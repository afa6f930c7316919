"""A run's record is a fold of its statements and of nothing else."""

from datetime import UTC, datetime

from manifests.images import ImageIdentity, Transport
from manifests.outcomes import Diagnostic, Outcome
from manifests.statements import (
    ImageRemoved,
    RunFinished,
    RunReserved,
    RunStarted,
    RunVoided,
    Statement,
)
from orchestrator.runs.rules.run_files import in_toto_statement, is_private, record_bytes
from orchestrator.runs.rules.run_record import certified_run_number, run_history, run_record

AT = datetime(2026, 12, 1, tzinfo=UTC)
HEX = "ab" * 32
DIGEST = "sha256:" + "cd" * 32
IMAGE = ImageIdentity(
    reference="registry/nova@" + DIGEST,
    transport=Transport.REGISTRY,
    manifest_digest=DIGEST,
    config_digest=DIGEST,
    diff_ids=(DIGEST,),
    platform="linux/amd64",
    size_bytes=1,
    engine_image_id=DIGEST,
)


def reserved(run_id: str, attempt: int = 1) -> RunReserved:
    return RunReserved(
        sequence=attempt * 10,
        at=AT,
        run_id=run_id,
        edition="epee200",
        team="nova",
        attempt=attempt,
        host="host",
        image=IMAGE,
        profile_sha256=HEX,
        clip_set_sha256=HEX,
        deadline_s=60,
    )


def started(run_id: str) -> RunStarted:
    return RunStarted(
        at=AT,
        run_id=run_id,
        edition="epee200",
        team="nova",
        container_id="c",
        effective_sha256=HEX,
        environment={"docker": "20.10.24"},
    )


def finished(run_id: str) -> RunFinished:
    return RunFinished(
        at=AT,
        run_id=run_id,
        edition="epee200",
        team="nova",
        outcome=Outcome.COMPLETED,
        diagnostics=(),
        predictions_sha256=HEX,
        files={"predictions.jsonl": HEX},
        elapsed_s=12,
    )


def voided(run_id: str) -> RunVoided:
    return RunVoided(
        at=AT,
        run_id=run_id,
        edition="epee200",
        team="nova",
        reason="the orchestrator died",
        by="tool",
        diagnostics=(Diagnostic.ORCHESTRATOR_DIED,),
    )


FIRST, SECOND = "0" * 16, "1" * 16


def test_a_finished_run_shows_its_outcome_and_the_image_that_is_gone() -> None:
    removed = ImageRemoved(
        at=AT,
        run_id=FIRST,
        edition="epee200",
        team="nova",
        config_digest=DIGEST,
        engine_image_id=DIGEST,
        gone=True,
        images_before=3,
        images_after=2,
    )
    statements: list[Statement] = [reserved(FIRST), started(FIRST), finished(FIRST), removed]
    record = run_record(run_history(statements), certified_run=1)
    assert (record.outcome, record.image_removed, record.voided) == (Outcome.COMPLETED, True, None)
    assert record.environment == {"docker": "20.10.24"}
    assert record_bytes(record) == record_bytes(record.model_validate_json(record_bytes(record)))


def test_a_run_that_never_finished_is_a_platform_fault_with_the_voids_reason() -> None:
    record = run_record(run_history([reserved(FIRST), voided(FIRST)]), certified_run=None)
    assert record.outcome is Outcome.PLATFORM_FAULT
    assert record.diagnostics == (Diagnostic.ORCHESTRATOR_DIED,)
    assert record.voided is not None
    assert record.voided.reason == "the orchestrator died"
    assert record.started_at is None


def test_a_voided_run_has_no_number_and_the_next_one_takes_it() -> None:
    history: list[Statement] = [
        reserved(FIRST),
        started(FIRST),
        voided(FIRST),
        reserved(SECOND, attempt=2),
        started(SECOND),
    ]
    assert certified_run_number(history, FIRST) is None
    assert certified_run_number(history, SECOND) == 1


def test_the_in_toto_statement_names_every_subject_and_the_image() -> None:
    record = run_record(
        run_history([reserved(FIRST), started(FIRST), finished(FIRST)]), certified_run=1
    )
    statement = in_toto_statement(record, {"run.json": HEX, "SHA256SUMS": HEX}, builder="0.1.0")
    subject = statement["subject"]
    assert isinstance(subject, list)
    assert [item["name"] for item in subject] == ["SHA256SUMS", "run.json"]
    assert DIGEST[7:] in str(statement["predicate"])


def test_private_files_are_told_by_their_names() -> None:
    assert is_private("score.private.json")
    assert is_private("log.age")
    assert not is_private("score.json")
