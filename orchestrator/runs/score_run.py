"""Score retained predictions on one label version: cards, evidence, `run-scored`.

The same bytes give the same cards, so a killed scoring is simply done again: the ledger decides
which cards are the row's, and files are put back where they are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from manifests.digests import sha256_hex
from manifests.encoding import readable_json
from manifests.errors import ClaimDoesNotHold
from manifests.statements import RunScored, Statement
from orchestrator.ledger.ports import Entry
from orchestrator.runs.retained_runs import RetainedRun, find_retained
from orchestrator.runs.rules.run_files import PRIVATE_CARD, PUBLIC_CARD, SCORES_FOLDER, SUMS
from orchestrator.runs.scoring_materials import (
    ScoringMaterials,
    open_materials,
    scoring_task,
)
from orchestrator.runs.signed_folder import is_signed, sign_folder
from orchestrator.scoring.rules.board_figures import board_figures
from orchestrator.scoring.rules.scoring import score
from orchestrator.workspace.ports import WorkspaceStore
from orchestrator.workspace.workspace import Workspace
from scorers.cards import Json, ScoreCard


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cards:
    card: ScoreCard
    public: bytes
    private: bytes

    @property
    def digests(self) -> dict[str, str]:
        return {PUBLIC_CARD: sha256_hex(self.public), PRIVATE_CARD: sha256_hex(self.private)}


def score_run(workspace: Workspace, run_id: str, labels_version: str | None = None) -> ScoreCard:
    """Score a completed run or a submission; without a version, on the edition's first labels.

    Nobody else may be at work on the run: the caller holds its lock.

    Raises:
        IdentityMissing: this host holds no identity for the labels; rescore on one that does.
        RefusedByPolicy: the run did not complete, was voided or is unknown; no such labels.
        ClaimDoesNotHold: a kept file is not what the ledger recorded.

    """
    retained = find_retained(run_id, ledger=workspace.ledger)
    materials = open_materials(workspace, retained.run.edition, labels_version)
    return score_retained(workspace, retained, materials)


def score_retained(
    workspace: Workspace, retained: RetainedRun, materials: ScoringMaterials
) -> ScoreCard:
    """Score a run with materials that are open already; errors as `score_run`."""
    card = score(scoring_task(materials, retained, store=workspace.store))
    card = replace(card, provenance={**card.provenance, **_provenance(retained, materials)})
    cards = _Cards(
        card=card,
        public=readable_json(card.public_document()),
        private=readable_json(card.as_document()),
    )
    rows = _rows(workspace, retained, materials)
    known = next((row for row in rows if row.scorer_string == card.scorer_string), None)
    if known is None:
        folder = _place(workspace.store, retained, materials, rows, card)
        _keep(workspace, folder, cards, apart=folder != retained.folder)
        _append(workspace, retained, materials, cards)
        return card
    _restore(workspace, retained, known, cards, rows)
    return card


def _provenance(retained: RetainedRun, materials: ScoringMaterials) -> dict[str, Json]:
    sealed = materials.sealed
    return {
        "run_id": retained.run.run_id,
        "edition": sealed.edition.edition,
        "exam_version": sealed.edition.exam_version,
        "clip_set_sha256": sealed.statement.clip_set_sha256,
        "labels_sha256": materials.commitment.sha256,
        "labels_note": materials.commitment.note,
        "predictions_sha256": retained.run.predictions_sha256,
        **retained.provenance,
    }


def _rows(
    workspace: Workspace, retained: RetainedRun, materials: ScoringMaterials
) -> list[RunScored]:
    """Return the run's rows on this label version, the oldest first."""
    entries = workspace.ledger.entries(run_id=retained.run.run_id, kind="run-scored")
    return [
        entry.statement
        for entry in entries
        if isinstance(entry.statement, RunScored)
        and entry.statement.labels.version == materials.commitment.version
    ]


def scores_folder(retained: RetainedRun, version: str, scorer_string: str, *, first: bool) -> str:
    """Return where a later row's cards lie; a second scorer on the same labels gets a suffix."""
    suffix = "" if first else f"_{sha256_hex(scorer_string.encode())[:12]}"
    return f"{retained.folder}/{SCORES_FOLDER}/{version}{suffix}"


def _place(
    store: WorkspaceStore,
    retained: RetainedRun,
    materials: ScoringMaterials,
    rows: Sequence[RunScored],
    card: ScoreCard,
) -> str:
    """Return the folder of a new row: the run's own until its evidence is signed."""
    own = materials.commitment.version == materials.sealed.statement.labels.version
    if own and not rows and not store.exists(f"{retained.folder}/{SUMS}"):
        return retained.folder
    version = materials.commitment.version
    return scores_folder(retained, version, card.scorer_string, first=not rows)


def _keep(workspace: Workspace, folder: str, cards: _Cards, *, apart: bool) -> None:
    store = workspace.store
    store.replace(f"{folder}/{PRIVATE_CARD}", cards.private, mode=0o600)
    store.replace(f"{folder}/{PUBLIC_CARD}", cards.public)
    if apart and not is_signed(workspace, folder, cards.digests, role="scorer"):
        sign_folder(workspace, folder, cards.digests, role="scorer")


def _restore(
    workspace: Workspace,
    retained: RetainedRun,
    row: RunScored,
    cards: _Cards,
    rows: Sequence[RunScored],
) -> None:
    """Put the cards of a recorded row back where they are missing.

    Raises:
        ClaimDoesNotHold: they are gone, and scoring anew gives other bytes.

    """
    store = workspace.store
    recorded = {PUBLIC_CARD: row.public_sha256, PRIVATE_CARD: row.private_sha256}
    first = rows[0].scorer_string == row.scorer_string
    apart = scores_folder(retained, row.labels.version, row.scorer_string, first=first)
    if _holds(store, retained.folder, recorded):
        return
    if _holds(store, apart, recorded) and is_signed(workspace, apart, recorded, role="scorer"):
        return
    if cards.digests != recorded:
        raise ClaimDoesNotHold(
            f"{store.root}/{retained.folder}: the cards that the ledger recorded for "
            f"{row.labels.version} are not there, and scoring anew gives another card "
            f"({cards.digests[PUBLIC_CARD][:16]}…, not {row.public_sha256[:16]}…); restore the "
            "folder from a backup"
        )
    in_place = not store.exists(f"{apart}/{PUBLIC_CARD}") and _open(
        store, retained.folder, recorded
    )
    folder = retained.folder if in_place else apart
    _keep(workspace, folder, cards, apart=not in_place)


def _open(store: WorkspaceStore, folder: str, recorded: dict[str, str]) -> bool:
    """Tell whether the run's own folder is unsigned, or was signed with this very card."""
    sums = store.read_optional(f"{folder}/{SUMS}")
    return sums is None or recorded[PUBLIC_CARD].encode() in sums


def _holds(store: WorkspaceStore, folder: str, recorded: dict[str, str]) -> bool:
    found = {name: store.read_optional(f"{folder}/{name}") for name in recorded}
    return all(data is not None and sha256_hex(data) == recorded[n] for n, data in found.items())


def _append(
    workspace: Workspace, retained: RetainedRun, materials: ScoringMaterials, cards: _Cards
) -> None:
    run = retained.run

    def decide(_: Sequence[Entry]) -> Statement:
        return RunScored(
            at=workspace.clock.now(),
            run_id=run.run_id,
            edition=run.edition,
            team=run.team,
            labels=materials.commitment,
            scorer_string=cards.card.scorer_string,
            predictions_sha256=run.predictions_sha256 or "",
            public_sha256=cards.digests[PUBLIC_CARD],
            private_sha256=cards.digests[PRIVATE_CARD],
            complete=cards.card.complete,
            figures=board_figures(materials.sealed.edition.track, cards.card),
        )

    workspace.ledger.decide(decide, run_id=run.run_id)
