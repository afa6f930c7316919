"""The audit of a log: an honest one passes, and each kind of forgery is named by its check."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from manifests.statements import SCORER_KINDS, Statement
from orchestrator.keys.pem.signing_keys import generate_signing_keys
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.append import seal_entry, sign_checkpoint
from orchestrator.ledger.rules.log_audit import MAX_FAULTS, LogAudit, LogCheck
from orchestrator.ledger.rules.merkle import CompactRange, leaf_hash
from tests.support.synthetic_ledger import (
    TEAM,
    edition_sealed,
    run_reserved,
    run_started,
    run_voided,
    synthetic_statements,
    team_registered,
    workspace_created,
)

KEYS = generate_signing_keys()


def sealed(statements: Sequence[Statement], keys: SigningKeys = KEYS) -> list[bytes]:
    """Sign statements as a log without asking any rule, as a dishonest operator could."""
    return [
        seal_entry(
            statement.model_copy(update={"sequence": sequence}),
            keys.signer("scorer" if statement.kind in SCORER_KINDS else "run"),
        )[0].envelope
        for sequence, statement in enumerate([workspace_created(keys), *statements])
    ]


def note_over(leaves: Sequence[bytes], keys: SigningKeys = KEYS) -> bytes:
    tree = CompactRange()
    for leaf in leaves:
        tree, _ = tree.append(leaf_hash(leaf))
    return sign_checkpoint("example.org/piste", tree, keys.signer("log"))


def audit_of(
    leaves: Sequence[bytes], *, note: bytes | None = None, older: tuple[int, bytes] | None = None
) -> LogAudit:
    audit = LogAudit(older_size=older[0] if older else None)
    for leaf in leaves:
        audit.add_envelope(leaf)
    audit.compare_checkpoint(note_over(leaves) if note is None else note)
    if older:
        audit.compare_older(older[1])
    return audit


def checks_of(audit: LogAudit) -> set[LogCheck]:
    return {fault.check for fault in audit.faults}


HONEST = sealed(list(synthetic_statements(4)))


def test_an_honest_log_passes_and_gives_back_its_runs() -> None:
    audit = audit_of(HONEST, older=(9, note_over(HONEST[:9])))
    assert audit.faults == []
    assert len(audit.state.runs) == 4
    assert audit.tree.size == len(HONEST)


def four_runs(*more: Statement) -> list[Statement]:
    statements: list[Statement] = [edition_sealed(), team_registered()]
    for number in range(1, 5):
        statements.append(run_reserved(f"{number:016x}", number))
        statements.append(run_started(f"{number:016x}"))
        statements += [step for step in more if getattr(step, "run_id", "") == f"{number:016x}"]
    return statements


def test_a_fourth_run_cannot_hide_though_every_signature_is_good() -> None:
    audit = audit_of(sealed(four_runs()))
    (fault,) = audit.faults
    assert fault.check is LogCheck.RULES
    assert fault.sequence == 9
    assert f"team {TEAM} has used 3 of 3 runs" in fault.text


def test_with_a_void_on_record_the_fourth_attempt_is_the_third_run() -> None:
    assert audit_of(sealed(four_runs(run_voided(f"{2:016x}")))).faults == []


def swap(leaves: list[bytes]) -> list[bytes]:
    return [*leaves[:4], leaves[5], leaves[4], *leaves[6:]]


@pytest.mark.parametrize(
    ("forge", "check"),
    [
        (lambda leaves: leaves[:-1], LogCheck.TREE),
        (lambda leaves: [*leaves, leaves[-1]], LogCheck.SIGNATURE),
        (lambda leaves: [*leaves[:4], *leaves[5:]], LogCheck.SIGNATURE),
        (swap, LogCheck.SIGNATURE),
        (lambda leaves: leaves[1:], LogCheck.SIGNATURE),
        (lambda leaves: [], LogCheck.TREE),
        (
            lambda leaves: [*leaves[:4], leaves[4].replace(b"A", b"B", 1), *leaves[5:]],
            LogCheck.SIGNATURE,
        ),
        (lambda leaves: [*leaves[:4], b"{}", *leaves[5:]], LogCheck.SIGNATURE),
        (
            lambda leaves: sealed(list(synthetic_statements(4)), generate_signing_keys()),
            LogCheck.TREE,
        ),
    ],
)
def test_a_forged_log_under_the_old_checkpoint_is_found(
    forge: Callable[[list[bytes]], list[bytes]], check: LogCheck
) -> None:
    audit = audit_of(forge(list(HONEST)), note=note_over(HONEST))
    assert check in checks_of(audit)
    assert LogCheck.TREE in checks_of(audit)


@pytest.mark.parametrize("note", [b"", b"x\n\n", note_over(HONEST, generate_signing_keys())])
def test_a_checkpoint_that_is_none_or_anothers_is_named(note: bytes) -> None:
    assert checks_of(audit_of(HONEST, note=note)) == {LogCheck.TREE}


def test_a_rewritten_log_does_not_extend_the_checkpoint_that_was_kept() -> None:
    kept = (9, note_over(HONEST[:9]))
    rewritten = sealed([edition_sealed(), *[team_registered(f"t-{n}") for n in range(12)]])
    assert checks_of(audit_of(rewritten, older=kept)) == {LogCheck.OLDER_TREE}
    assert checks_of(audit_of(HONEST[:7], older=kept)) == {LogCheck.OLDER_TREE}
    assert checks_of(audit_of(HONEST, older=(9, note_over(HONEST[:8])))) == {LogCheck.OLDER_TREE}
    assert checks_of(audit_of(HONEST, older=(9, b"nothing"))) == {LogCheck.OLDER_TREE}


def test_faults_are_counted_and_the_list_is_bounded() -> None:
    foreign = sealed([team_registered(f"t-{n}") for n in range(150)], generate_signing_keys())
    audit = audit_of([HONEST[0], *foreign[1:]])
    assert audit.fault_count == 150
    assert len(audit.faults) == MAX_FAULTS
