"""Published keys folded over the log: which key may sign what, and from when on."""

from __future__ import annotations

import pytest

from manifests.encoding import canonical_json
from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.statements import KeyRotated, LabelsAdded, PublicKey, Statement, WorkspaceCreated
from orchestrator.keys.pem.signing_keys import (
    FileSigner,
    generate_signer,
    generate_signing_keys,
)
from orchestrator.ledger.rules.keyset import Keyset, begin_keyset, fold_keyset
from orchestrator.ledger.rules.leaves import open_leaf, parse_statement, seal_statement
from tests.support.synthetic_ledger import (
    EDITION,
    LABELS,
    NOW,
    edition_sealed,
    run_scored,
    team_registered,
    workspace_created,
)

KEYS = generate_signing_keys()
CREATED = workspace_created(KEYS).model_copy(update={"sequence": 0})
RUN, SCORER, LOG = KEYS.held()
NEW = generate_signer("run")


def rotation(old: PublicKey, new: PublicKey, sequence: int = 5) -> KeyRotated:
    return KeyRotated(at=NOW, old_key_id=old.key_id, new_key=new, reason="x", sequence=sequence)


def at(statement: Statement, sequence: int) -> Statement:
    return statement.model_copy(update={"sequence": sequence})


@pytest.fixture
def rotated() -> Keyset:
    return fold_keyset([CREATED, at(edition_sealed(), 1), rotation(RUN, NEW.public_key)])


def test_scores_labels_and_reveals_need_the_scorer_and_all_else_the_run_key() -> None:
    keyset = begin_keyset(CREATED)
    assert keyset.signer_at(run_scored("00000000000000aa"), 9) == SCORER
    assert keyset.signer_at(LabelsAdded(at=NOW, edition=EDITION, labels=LABELS), 9) == SCORER
    assert keyset.signer_at(team_registered(), 9) == RUN
    assert keyset.signer_at(rotation(LOG, LOG), 9) == LOG
    assert keyset.current("log") == LOG


def test_the_old_key_signs_its_rotation_and_the_new_one_everything_after(rotated: Keyset) -> None:
    assert rotated.signer_at(rotation(RUN, NEW.public_key), 5) == RUN
    assert rotated.signer_at(team_registered(), 4) == RUN
    assert rotated.signer_at(team_registered(), 6) == NEW.public_key
    assert rotated.signer_at(run_scored("00000000000000aa"), 6) == SCORER
    assert rotated.current("run") == NEW.public_key
    assert rotated.published() == (RUN, SCORER, LOG, NEW.public_key)


@pytest.mark.parametrize(
    ("statement", "fact"),
    [
        (rotation(RUN, generate_signer("run").public_key, 9), "not in force"),
        (rotation(NEW.public_key, RUN, 9), "published before"),
        (rotation(NEW.public_key, generate_signer("scorer").public_key, 9), "expected ecdsa-p256"),
        (rotation(LOG, generate_signer("run").public_key, 9), "expected ed25519 log"),
        (rotation(generate_signer("run").public_key, RUN, 9), "never published"),
    ],
)
def test_a_rotation_that_makes_no_sense_is_refused(
    rotated: Keyset, statement: KeyRotated, fact: str
) -> None:
    with pytest.raises(ClaimDoesNotHold, match=fact):
        rotated.rotated(statement, 9)


def with_keys(*keys: PublicKey) -> WorkspaceCreated:
    return CREATED.model_copy(update={"keys": keys})


@pytest.mark.parametrize(
    ("created", "fact"),
    [
        (with_keys(RUN, SCORER), "one log key"),
        (with_keys(RUN, SCORER, LOG, LOG), "one log key"),
        (with_keys(RUN, RUN.model_copy(update={"role": "scorer"}), LOG), "apart"),
        (
            with_keys(
                RUN, LOG.model_copy(update={"role": "scorer"}), generate_signer("log").public_key
            ),
            "expected ecdsa-p256",
        ),
    ],
)
def test_a_log_begins_with_one_key_of_each_role(created: WorkspaceCreated, fact: str) -> None:
    with pytest.raises(ClaimDoesNotHold, match=fact):
        begin_keyset(created)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"key_id": "0" * 64}, "not the SHA-256 of this key"),
        ({"algorithm": "ed25519"}, "not the ed25519 key"),
        ({"pem": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}, "not a PEM"),
        ({"pem": ""}, "not a PEM"),
    ],
)
def test_a_published_key_whose_fields_disagree_is_refused(
    change: dict[str, str], fact: str
) -> None:
    with pytest.raises(MalformedDocument, match=fact):
        begin_keyset(with_keys(RUN.model_copy(update=change), SCORER, LOG))


def test_a_log_that_does_not_begin_is_no_log() -> None:
    for statements in ([], [team_registered()]):
        with pytest.raises(ClaimDoesNotHold, match="does not begin"):
            fold_keyset(statements)


def leaf(statement: Statement, signer: FileSigner) -> bytes:
    return seal_statement(statement, key_id=signer.public_key.key_id, sign=signer.sign)


def test_a_leaf_is_accepted_at_its_position_under_its_key_alone(rotated: Keyset) -> None:
    statement = at(team_registered(), 6)
    good = leaf(statement, NEW)
    assert open_leaf(good, sequence=6, keyset=rotated).statement == statement
    with pytest.raises(ClaimDoesNotHold, match="it says that it is statement 6"):
        open_leaf(good, sequence=7, keyset=rotated)
    assert isinstance(KEYS.run, FileSigner)
    with pytest.raises(ClaimDoesNotHold, match="must be signed by the run key"):
        open_leaf(leaf(statement, KEYS.run), sequence=6, keyset=rotated)
    assert isinstance(KEYS.scorer, FileSigner)
    with pytest.raises(ClaimDoesNotHold, match="and is by scorer key"):
        open_leaf(leaf(statement, KEYS.scorer), sequence=6, keyset=rotated)


def registered(**change: object) -> bytes:
    return canonical_json(at(team_registered(), 1).model_dump(mode="json") | change)


@pytest.mark.parametrize(
    ("payload", "fact"),
    [
        (b"{}", "kind"),
        (b'{"kind":"no-such-kind"}', "kind"),
        (b" " + registered(), "canonical form"),
        (registered(at="2026-12-01T12:00:00.500000Z"), "whole seconds"),
        (registered(at="2026-12-01T12:00:00+01:00"), "UTC"),
        (registered(at="2026-12-01T12:00:00"), "UTC"),
        (registered(organizer="no"), "organizer"),
        (registered(team="../nova"), "team"),
        (registered(extra=1), "extra"),
        (registered(sequence="1"), "sequence"),
    ],
)
def test_a_statement_out_of_form_is_refused_with_its_field(payload: bytes, fact: str) -> None:
    with pytest.raises(MalformedDocument, match=fact):
        parse_statement(payload, source="statement 1")
