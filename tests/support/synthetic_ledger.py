"""Made-up statements and whole made-up ledgers, for benchmarks and tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from manifests.digests import sha256_hex
from manifests.images import ImageIdentity, Transport
from manifests.outcomes import Outcome
from manifests.statements import (
    SCORER_KINDS,
    EditionSealed,
    ImageRemoved,
    KeyRole,
    LabelsCommitment,
    QuotaRule,
    RunFinished,
    RunReserved,
    RunScored,
    RunStarted,
    RunVoided,
    Statement,
    SubmissionRule,
    TeamRegistered,
    WorkspaceCreated,
)
from orchestrator.keys.pem.signing_keys import generate_signing_keys
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.append import seal_entry, sign_checkpoint
from orchestrator.ledger.rules.entries import StoredLeaf
from orchestrator.ledger.rules.merkle import Node, leaf_hash, range_at
from orchestrator.ledger.sql.sql_store import create_sql_ledger, sqlite_store
from orchestrator.ledger.stored_ledger import StoredLedger

EDITION = "epee200-final-2026"
TEAM = "nova"
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
LABELS = LabelsCommitment(version="labels-v1", sha256=sha256_hex(b"labels-v1"))
SCORER = "epee200|labels:labels-v1|n:200|v:2.1"
STATEMENTS_PER_RUN = 5


def workspace_created(keys: SigningKeys) -> WorkspaceCreated:
    return WorkspaceCreated(at=NOW, origin="example.org/piste", keys=keys.held())


def edition_sealed(
    edition: str = EDITION,
    *,
    quota: QuotaRule | None = None,
    stage: Literal["qualifier", "final"] = "final",
) -> EditionSealed:
    return EditionSealed(
        at=NOW,
        edition=edition,
        title="Épée 200 · Final",
        track="recognition",
        round=stage,
        edition_sha256=sha256_hex(b"edition"),
        seal_sha256=sha256_hex(b"seal"),
        clip_set_sha256=sha256_hex(edition.encode()),
        sealed_sums_sha256=sha256_hex(b"sums"),
        clips=200,
        labels=LABELS,
        profile="certified",
        profile_sha256=sha256_hex(b"profile"),
        gpu="optional",
        quota=quota or QuotaRule(),
        submissions=SubmissionRule(),
        scorer="epee200 2.1",
        opens=NOW,
        closes=NOW.replace(year=2027),
    )


def team_registered(team: str = TEAM) -> TeamRegistered:
    return TeamRegistered(at=NOW, team=team)


def image_identity() -> ImageIdentity:
    digest = f"sha256:{sha256_hex(b'config')}"
    return ImageIdentity(
        reference=f"registry.example.org/nova@{digest}",
        transport=Transport.REGISTRY,
        config_digest=digest,
        diff_ids=(digest,) * 6,
        platform="linux/amd64",
        size_bytes=70_000_000,
        engine_image_id=digest,
    )


def run_reserved(
    run_id: str, attempt: int = 1, *, edition: str = EDITION, team: str = TEAM
) -> RunReserved:
    return RunReserved(
        at=NOW,
        run_id=run_id,
        edition=edition,
        team=team,
        attempt=attempt,
        host="host-1",
        image=image_identity(),
        profile_sha256=sha256_hex(b"profile"),
        clip_set_sha256=sha256_hex(edition.encode()),
        deadline_s=3600,
    )


def run_started(run_id: str, *, edition: str = EDITION, team: str = TEAM) -> RunStarted:
    return RunStarted(
        at=NOW,
        run_id=run_id,
        edition=edition,
        team=team,
        container_id=sha256_hex(run_id.encode()),
        effective_sha256=sha256_hex(b"effective"),
        environment={"docker": "28.5.2", "api": "1.51", "kernel": "6.1.0-40-amd64", "gpu": None},
    )


def run_finished(
    run_id: str,
    outcome: Outcome = Outcome.COMPLETED,
    *,
    edition: str = EDITION,
    team: str = TEAM,
) -> RunFinished:
    return RunFinished(
        at=NOW,
        run_id=run_id,
        edition=edition,
        team=team,
        outcome=outcome,
        diagnostics=(),
        predictions_sha256=sha256_hex(run_id.encode()),
        files={"predictions.jsonl": sha256_hex(run_id.encode())},
        elapsed_s=12,
    )


def run_voided(run_id: str, *, edition: str = EDITION, team: str = TEAM) -> RunVoided:
    return RunVoided(
        at=NOW, run_id=run_id, edition=edition, team=team, reason="engine lost", by="tool"
    )


def image_removed(run_id: str, *, edition: str = EDITION, team: str = TEAM) -> ImageRemoved:
    identity = image_identity()
    return ImageRemoved(
        at=NOW,
        run_id=run_id,
        edition=edition,
        team=team,
        config_digest=identity.config_digest,
        engine_image_id=identity.engine_image_id,
        gone=True,
        images_before=3,
        images_after=2,
    )


def run_scored(run_id: str, *, edition: str = EDITION, team: str = TEAM) -> RunScored:
    return RunScored(
        at=NOW,
        run_id=run_id,
        edition=edition,
        team=team,
        labels=LABELS,
        scorer_string=SCORER,
        predictions_sha256=sha256_hex(run_id.encode()),
        public_sha256=sha256_hex(b"public"),
        private_sha256=sha256_hex(b"private"),
        complete=True,
        figures={"macro_f1": 0.5, "top1": 0.5, "top3": None},
    )


def whole_run(
    run_id: str, attempt: int = 1, *, edition: str = EDITION, team: str = TEAM
) -> Iterator[Statement]:
    """Yield the five statements of a run that completed."""
    yield run_reserved(run_id, attempt, edition=edition, team=team)
    yield run_started(run_id, edition=edition, team=team)
    yield run_finished(run_id, edition=edition, team=team)
    yield image_removed(run_id, edition=edition, team=team)
    yield run_scored(run_id, edition=edition, team=team)


def synthetic_statements(runs: int, *, per_team: int = 3) -> Iterator[Statement]:
    """Yield an edition and `runs` completed runs, `per_team` (at most 3) of each team."""
    yield edition_sealed()
    for number in range(runs):
        team, attempt = f"team-{number // per_team}", number % per_team + 1
        if attempt == 1:
            yield team_registered(team)
        yield from whole_run(f"{number:016x}", attempt, team=team)


def create_synthetic_ledger(path: Path, *, runs: int) -> StoredLedger:
    """Write a ledger of `runs` completed runs and one more team, `nova`, that has none yet."""
    keys = generate_signing_keys()
    ledger = create_sql_ledger(path, workspace_created(keys), keys=keys)
    statements = itertools.chain(synthetic_statements(runs), [team_registered(TEAM)])
    append_in_bulk(path, statements, keys=keys)
    return ledger


def append_in_bulk(path: Path, statements: Iterable[Statement], *, keys: SigningKeys) -> None:
    """Append in one transaction without asking the log's rules, which 60,000 would take minutes.

    The product has no such door: every append of the ledger is judged.
    """
    leaves: list[StoredLeaf] = []
    nodes: list[Node] = []
    with sqlite_store(path).exclusive() as transaction:
        tree = range_at(transaction.size(), transaction.node)
        for statement in statements:
            stamped = statement.model_copy(update={"sequence": tree.size})
            role: KeyRole = "scorer" if statement.kind in SCORER_KINDS else "run"
            entry, leaf = seal_entry(stamped, keys.signer(role))
            tree, grown = tree.append(leaf_hash(entry.envelope))
            leaves.append(leaf)
            nodes.extend(grown)
        origin = workspace_created(keys).origin
        transaction.write(leaves, nodes, sign_checkpoint(origin, tree, keys.signer("log")))
