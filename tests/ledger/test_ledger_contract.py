"""The ledger's contract, held by the SQL adapter and by the simulator alike."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy import create_engine

from manifests.errors import ClaimDoesNotHold, MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.statements import (
    KeyRotated,
    LabelsAdded,
    QuotaRule,
    RunReserved,
    Statement,
    SubmissionRecorded,
)
from orchestrator.keys.pem.signing_keys import generate_signer, generate_signing_keys
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.ports import Entry, Ledger
from orchestrator.ledger.rules.checkpoint import verify_checkpoint
from orchestrator.ledger.rules.log_audit import audit_log
from orchestrator.ledger.rules.merkle import leaf_hash, verify_consistency, verify_inclusion
from orchestrator.ledger.rules.quota import decide_reservation
from orchestrator.ledger.sql.sql_store import create_sql_ledger
from orchestrator.ledger.stored_ledger import StoredLedger
from tests.support.ledger_memory import create_memory_ledger
from tests.support.synthetic_ledger import (
    EDITION,
    LABELS,
    NOW,
    TEAM,
    edition_sealed,
    image_removed,
    run_finished,
    run_reserved,
    run_scored,
    run_started,
    run_voided,
    team_registered,
    whole_run,
    workspace_created,
)

RUN = "00000000000000aa"
OTHER = "00000000000000bb"
Create = Callable[[SigningKeys], StoredLedger]


POSTGRES = os.environ.get("PISTE_TEST_POSTGRES", "")
"""A SQLAlchemy URL of a scratch database; each test works in a schema of its own."""


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def create(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Create]:
    def create_ledger(keys: SigningKeys) -> StoredLedger:
        created = workspace_created(all_keys if keys.run is None else keys)
        if request.param == "memory":
            return create_memory_ledger(created, keys=keys)
        return create_sql_ledger(where, created, keys=keys)

    all_keys = generate_signing_keys()
    where: Path | str = tmp_path / "ledger.sqlite"
    if request.param != "postgres":
        yield create_ledger
        return
    if not POSTGRES:
        pytest.skip("PISTE_TEST_POSTGRES is not set: no PostgreSQL to test against")
    schema = f"piste_{uuid.uuid4().hex}"
    where = f"{POSTGRES}?options=-csearch_path%3D{schema}"
    engine = create_engine(POSTGRES)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
    yield create_ledger
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
    engine.dispose()


@pytest.fixture
def keys() -> SigningKeys:
    return generate_signing_keys()


@pytest.fixture
def ledger(create: Create, keys: SigningKeys) -> Ledger:
    ledger = create(keys)
    ledger.append(edition_sealed())
    ledger.append(team_registered())
    return ledger


def reserve(ledger: Ledger, run_id: str, *, quota: QuotaRule | None = None) -> RunReserved:
    entry = ledger.decide(
        lambda history: decide_reservation(
            history,
            quota=quota or QuotaRule(),
            edition=EDITION,
            team=TEAM,
            make=lambda attempt: run_reserved(run_id, attempt),
        ),
        edition=EDITION,
        team=TEAM,
    )
    assert isinstance(entry.statement, RunReserved)
    return entry.statement


def assert_sound(ledger: Ledger) -> None:
    audit = audit_log(ledger.stored_leaves(), checkpoint=ledger.checkpoint())
    assert audit.faults == []


def test_an_appended_statement_reads_back_with_its_position_and_its_exact_bytes(
    ledger: Ledger,
) -> None:
    entry = ledger.append(team_registered("lyra"))
    assert entry.sequence == entry.statement.sequence == 3
    assert list(ledger.entries())[-1] == entry
    assert ledger.size() == 4
    assert_sound(ledger)


@pytest.mark.parametrize(
    ("scope", "kinds"),
    [
        ({"edition": EDITION, "team": TEAM}, ["run-reserved", "run-started"]),
        ({"run_id": RUN}, ["run-reserved", "run-started"]),
        ({"kind": "team-registered"}, ["team-registered"]),
        ({"team": TEAM}, ["team-registered", "run-reserved", "run-started"]),
        ({"edition": EDITION, "kind": "run-started"}, ["run-started"]),
        ({"team": "nobody"}, []),
    ],
)
def test_a_scope_selects_the_entries_that_match_all_of_it(
    ledger: Ledger, scope: dict[str, str], kinds: list[str]
) -> None:
    reserve(ledger, RUN)
    ledger.append(run_started(RUN))
    assert [entry.statement.kind for entry in ledger.entries(**scope)] == kinds


def test_a_decision_sees_its_scope_and_an_exception_leaves_the_ledger_as_it_was(
    ledger: Ledger,
) -> None:
    reserve(ledger, RUN)
    before = (ledger.size(), ledger.checkpoint())
    seen: list[Entry] = []

    def refuse(history: Sequence[Entry]) -> NoReturn:
        seen.extend(history)
        raise RefusedByPolicy("not today")

    with pytest.raises(RefusedByPolicy, match="not today"):
        ledger.decide(refuse, run_id=RUN)
    assert [entry.statement.kind for entry in seen] == ["run-reserved"]
    assert (ledger.size(), ledger.checkpoint()) == before


def test_a_whole_run_is_recorded_and_a_second_of_anything_is_refused(ledger: Ledger) -> None:
    for statement in whole_run(RUN):
        ledger.append(statement)
    for again in (*whole_run(RUN), edition_sealed(), team_registered()):
        with pytest.raises(RefusedByPolicy):
            ledger.append(again)
    assert ledger.size() == 8
    assert_sound(ledger)


def test_the_fourth_run_is_refused_even_by_a_caller_that_does_not_ask(ledger: Ledger) -> None:
    for number in range(3):
        run_id = f"{number:016x}"
        reserve(ledger, run_id)
        ledger.append(run_started(run_id))
    message = f"team {TEAM} has used 3 of 3 runs in {EDITION}; none was voided"
    with pytest.raises(RefusedByPolicy) as refusal:
        reserve(ledger, RUN)
    assert str(refusal.value) == message
    with pytest.raises(RefusedByPolicy) as refusal:
        ledger.append(run_reserved(RUN, 4))
    assert str(refusal.value) == message


def test_a_voided_run_is_given_back_and_the_attempt_is_not(ledger: Ledger) -> None:
    quota = QuotaRule()
    reserve(ledger, RUN, quota=quota)
    ledger.append(run_started(RUN))
    ledger.append(run_voided(RUN))
    assert reserve(ledger, OTHER, quota=quota).attempt == 2


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (run_reserved(RUN, edition="unsealed-2026"), "unsealed-2026 is not sealed"),
        (run_reserved(RUN, team="ghost"), "piste team add ghost"),
        (run_reserved(RUN, 2), "claims attempt 2"),
        (run_started(RUN), "not in the ledger"),
        (run_scored(RUN), "not in the ledger"),
        (LabelsAdded(at=NOW, edition=EDITION, labels=LABELS), "exist already"),
    ],
)
def test_a_statement_that_the_log_does_not_allow_is_refused_with_the_reason(
    ledger: Ledger, statement: Statement, message: str
) -> None:
    with pytest.raises(RefusedByPolicy, match=message):
        ledger.append(statement)
    assert ledger.size() == 3


def test_a_score_on_labels_that_were_never_committed_is_refused(ledger: Ledger) -> None:
    reserve(ledger, RUN)
    ledger.append(run_started(RUN))
    ledger.append(run_finished(RUN))
    foreign = LABELS.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(RefusedByPolicy, match="never committed"):
        ledger.append(run_scored(RUN).model_copy(update={"labels": foreign}))
    ledger.append(run_scored(RUN))


def test_a_run_that_did_not_complete_is_never_scored(ledger: Ledger) -> None:
    reserve(ledger, RUN)
    ledger.append(run_started(RUN))
    ledger.append(run_finished(RUN, Outcome.TIMED_OUT))
    with pytest.raises(RefusedByPolicy, match="ended as timed-out"):
        ledger.append(run_scored(RUN))


def test_a_submission_is_scored_and_never_uses_the_quota(ledger: Ledger) -> None:
    for number in range(5):
        submission = SubmissionRecorded(
            at=NOW,
            run_id=f"{number:016x}",
            edition=EDITION,
            team=TEAM,
            predictions_sha256="0" * 64,
            training_data="open-data",
        )
        ledger.append(submission)
    assert reserve(ledger, RUN).attempt == 1
    assert_sound(ledger)


def test_every_leaf_is_included_and_every_older_tree_is_a_prefix(
    ledger: Ledger, keys: SigningKeys
) -> None:
    log_key = ledger.keyset().current("log")
    notes = [ledger.checkpoint()]
    for number in range(8):
        ledger.append(team_registered(f"team-{number}"))
        notes.append(ledger.checkpoint())
    trees = [verify_checkpoint(note, key=log_key, source="note") for note in notes]
    newest = trees[-1]
    assert newest.size == ledger.size()
    for entry in ledger.entries():
        verify_inclusion(
            leaf_hash(entry.envelope),
            index=entry.sequence,
            size=newest.size,
            proof=ledger.inclusion_proof(entry.sequence),
            root=newest.root,
        )
    for older in trees:
        verify_consistency(
            older=older.size,
            newer=newest.size,
            older_root=older.root,
            newer_root=newest.root,
            proof=ledger.consistency_proof(older.size),
        )


def test_a_proof_outside_the_log_is_refused_with_its_size(ledger: Ledger) -> None:
    with pytest.raises(ClaimDoesNotHold, match="not among the first 3"):
        ledger.inclusion_proof(3)
    with pytest.raises(ClaimDoesNotHold, match="has 3 statements"):
        ledger.consistency_proof(4)
    with pytest.raises(ClaimDoesNotHold, match="has 3 statements, not 9"):
        ledger.inclusion_proof(0, 9)


def test_a_host_without_the_scorer_key_runs_but_does_not_score(
    create: Create, keys: SigningKeys
) -> None:
    ledger = create(keys)
    ledger.append(edition_sealed())
    ledger.append(team_registered())
    run_host = StoredLedger(ledger._store, keys=SigningKeys(run=keys.run, log=keys.log))
    for statement in (run_reserved(RUN), run_started(RUN), run_finished(RUN), image_removed(RUN)):
        run_host.append(statement)
    with pytest.raises(RefusedByPolicy, match=r"no scorer key.*keys/scorer\.pem"):
        run_host.append(run_scored(RUN))
    ledger.append(run_scored(RUN))
    assert_sound(ledger)


@pytest.mark.parametrize("role", ["run", "scorer", "log"])
def test_after_a_rotation_the_new_key_signs_and_the_old_one_is_refused(
    create: Create, keys: SigningKeys, role: str
) -> None:
    old_ledger = create(keys)
    old_ledger.append(edition_sealed())
    new = {"run": keys.run, "scorer": keys.scorer, "log": keys.log}
    old_signer = new[role]
    assert old_signer is not None
    new_signer = generate_signer(old_signer.public_key.role)
    new[role] = new_signer
    rotation = KeyRotated(
        at=NOW,
        old_key_id=old_signer.public_key.key_id,
        new_key=new_signer.public_key,
        reason="yearly",
    )
    old_ledger.append(rotation)
    labels = LABELS.model_copy(update={"version": "labels-v2"})
    by_role: Statement = (
        LabelsAdded(at=NOW, edition=EDITION, labels=labels)
        if role == "scorer"
        else team_registered()
    )
    with pytest.raises(PlatformFault, match="put the rotated key"):
        old_ledger.append(by_role)
    new_ledger = StoredLedger(old_ledger._store, keys=SigningKeys(**new))
    new_ledger.append(by_role)
    with pytest.raises(ClaimDoesNotHold, match="not in force"):
        new_ledger.append(rotation)
    assert new_ledger.size() == 4
    assert len(list(new_ledger.entries())) == 4
    assert_sound(new_ledger)


def test_a_statement_that_json_cannot_hold_is_refused_before_it_is_signed(ledger: Ledger) -> None:
    reserve(ledger, RUN)
    odd = run_started(RUN).model_copy(update={"environment": {"load": float("nan")}})
    with pytest.raises(MalformedDocument, match="cannot be logged"):
        ledger.append(odd)
    huge = run_started(RUN).model_copy(update={"environment": {"text": "x" * 60_000}})
    with pytest.raises(MalformedDocument, match="at most 65535"):
        ledger.append(huge)
    assert ledger.size() == 4


def test_a_new_ledger_publishes_exactly_the_keys_that_sign_it(
    create: Create, keys: SigningKeys
) -> None:
    with pytest.raises(PlatformFault, match="exactly the keys"):
        create(SigningKeys(log=keys.log, scorer=keys.scorer))
