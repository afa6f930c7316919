"""Many processes, one ledger: exactly three runs, and a kill neither loses nor invents one."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from manifests.errors import RefusedByPolicy
from manifests.statements import QuotaRule
from orchestrator.keys.pem.signing_keys import create_signing_keys, load_signing_keys
from orchestrator.ledger.rules.entries import Scope
from orchestrator.ledger.rules.log_audit import LogAudit, audit_log
from orchestrator.ledger.rules.merkle import Node
from orchestrator.ledger.rules.quota import decide_reservation, quota_state
from orchestrator.ledger.rules.run_states import RunState
from orchestrator.ledger.sql.sql_store import create_sql_ledger, open_sql_ledger
from tests.support.killed_processes import PROCESSES
from tests.support.synthetic_ledger import (
    EDITION,
    TEAM,
    edition_sealed,
    run_reserved,
    team_registered,
    whole_run,
    workspace_created,
)

RACERS = 20
RUN = "00000000000000aa"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    keys = create_signing_keys(tmp_path / "keys")
    ledger = create_sql_ledger(tmp_path / "ledger.sqlite", workspace_created(keys), keys=keys)
    ledger.append(edition_sealed())
    ledger.append(team_registered())
    return tmp_path


def reserve(workspace: Path, run_id: str) -> int:
    """Reserve through the quota rule; return the attempt."""
    keys = load_signing_keys(workspace / "keys")
    entry = open_sql_ledger(workspace / "ledger.sqlite", keys=keys).decide(
        lambda history: decide_reservation(
            history,
            quota=QuotaRule(),
            edition=EDITION,
            team=TEAM,
            make=lambda attempt: run_reserved(run_id, attempt),
        ),
        edition=EDITION,
        team=TEAM,
    )
    return int(getattr(entry.statement, "attempt"))  # noqa: B009 - the statement is a union


def race(workspace: Path, number: int, barrier: Barrier, results: Connection) -> None:
    barrier.wait(timeout=120)
    try:
        results.send(reserve(workspace, f"{number:016x}"))
    except RefusedByPolicy as refusal:
        results.send(str(refusal))
    results.close()


def append_for_ever(workspace: Path, acknowledged: Connection) -> None:
    """Record whole runs of team after team; say the size after each append."""
    keys = load_signing_keys(workspace / "keys")
    ledger = open_sql_ledger(workspace / "ledger.sqlite", keys=keys)
    for number in range(10_000):
        team = f"{os.getpid()}-{number}"
        acknowledged.send(ledger.append(team_registered(team)).sequence)
        for statement in whole_run(f"{os.getpid():08x}{number:08x}", team=team):
            acknowledged.send(ledger.append(statement).sequence)


def die_after(workspace: Path, steps: int, *, inside_the_next: bool) -> None:
    """Append `steps` statements of a run, then die by SIGKILL, maybe with the next one written."""
    keys = load_signing_keys(workspace / "keys")
    ledger = open_sql_ledger(workspace / "ledger.sqlite", keys=keys)
    statements = list(whole_run(RUN))
    for statement in statements[:steps]:
        ledger.append(statement)
    if inside_the_next and steps < len(statements):
        store, node = ledger._store, Node(level=9, index=9, digest=bytes(32))
        with store.exclusive() as transaction:
            # A leaf, its nodes and the head are written; the commit never comes.
            (first,) = transaction.leaves(Scope(), limit=1)
            transaction.write((replace(first, sequence=transaction.size()),), (node,), b"never")
            os.kill(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def audited(workspace: Path) -> LogAudit:
    ledger = open_sql_ledger(workspace / "ledger.sqlite")
    audit = audit_log(ledger.stored_leaves(), checkpoint=ledger.checkpoint())
    assert audit.faults == []
    return audit


def received(connection: Connection) -> Iterator[int]:
    try:
        while connection.poll(0):
            yield connection.recv()
    except EOFError:
        return


def test_twenty_processes_that_race_for_one_teams_runs_get_exactly_three(workspace: Path) -> None:
    barrier = PROCESSES.Barrier(RACERS)
    racers = []
    for number in range(RACERS):
        results, sender = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=race, args=(workspace, number, barrier, sender))
        process.start()
        sender.close()
        racers.append((process, results))
    answers = []
    for process, results in racers:
        answers.append(results.recv())
        process.join(timeout=60)
    won = sorted(answer for answer in answers if isinstance(answer, int))
    lost = {answer for answer in answers if isinstance(answer, str)}
    assert won == [1, 2, 3]
    assert len(lost) == 1
    assert next(iter(lost)).startswith(
        f"team {TEAM} has used 0 and reserved 3 of 3 runs in {EDITION}; none was voided"
    )
    runs = audited(workspace).state.runs_of(EDITION, TEAM)
    assert [run.attempt for run in runs] == [1, 2, 3]


@pytest.mark.parametrize("inside_the_next", [False, True])
@pytest.mark.parametrize("steps", range(6))
def test_a_kill_between_or_inside_steps_keeps_exactly_what_was_recorded(
    workspace: Path, steps: int, inside_the_next: bool
) -> None:
    child = PROCESSES.Process(
        target=die_after,
        args=(workspace, steps),
        kwargs={"inside_the_next": inside_the_next},
    )
    child.start()
    child.join(timeout=60)
    assert child.exitcode == -signal.SIGKILL
    state = audited(workspace).state
    states = [None, RunState.RESERVED, RunState.STARTED] + [RunState.FINISHED] * 3
    assert (state.runs[RUN].state if RUN in state.runs else None) == states[steps]
    quota = quota_state(state.runs_of(EDITION, TEAM), rule=QuotaRule())
    assert (quota.used, quota.pending) == (int(steps >= 2), int(steps == 1))
    assert reserve(workspace, "00000000000000bb") == quota.attempts_used + 1


def test_a_kill_at_any_moment_loses_no_acknowledged_statement_and_adds_at_most_one(
    workspace: Path,
) -> None:
    chance = random.Random(200)
    size = 3
    for _ in range(6):
        acknowledged, sender = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=append_for_ever, args=(workspace, sender))
        process.start()
        sender.close()
        newest = acknowledged.recv()
        assert newest >= size
        time.sleep(chance.uniform(0, 0.08))
        process.kill()
        process.join()
        newest = max(received(acknowledged), default=newest)
        size = audited(workspace).tree.size
        assert newest + 1 <= size <= newest + 2
