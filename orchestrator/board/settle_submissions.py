"""Finish or forget submissions whose process died: the ledger alone decides which.

A submission's predictions are staged on the disk, then recorded, then put into the run's folder,
scored where the label identity is here, and signed; the staged file goes last. So a staged file
whose submission is recorded is finished from where it was, and any other is thrown away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from manifests.digests import sha256_hex
from manifests.errors import RefusedByPolicy
from manifests.statements import SubmissionRecorded
from orchestrator.keys.sealing_port import Purpose
from orchestrator.runs.rules.run_files import (
    PREDICTIONS,
    PRIVATE_CARD,
    PUBLIC_CARD,
    SUMS,
    run_folder,
)
from orchestrator.runs.score_run import score_run
from orchestrator.runs.signed_folder import is_signed, sign_folder
from orchestrator.workspace.workspace import Workspace
from scorers.cards import ScoreCard

_STAGED = re.compile(r"submission-([0-9a-f]{16})\.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A recorded submission whose folder is complete; `unscored` says why there is no card."""

    card: ScoreCard | None
    unscored: str | None


def staged_file(run_id: str) -> str:
    """Return the name under which a submission's predictions wait to be recorded."""
    return f"intake/submission-{run_id}.jsonl"


def settle_submissions(workspace: Workspace) -> None:
    """Finish what is recorded and throw the rest away; leave alone what is under way.

    Raises:
        PlatformFault: a disk, key or sealed file refuses; the next command tries again.

    """
    for name in workspace.store.list_names("intake"):
        match = _STAGED.fullmatch(name)
        if match is None or workspace.store.is_run_alive(match[1]):
            continue
        with workspace.store.lock_run(match[1]):
            _settle(match[1], workspace)


def _settle(run_id: str, workspace: Workspace) -> None:
    staged = workspace.store.read_optional(staged_file(run_id))
    entries = workspace.ledger.entries(run_id=run_id, kind="submission-recorded")
    recorded = next((e.statement for e in entries), None)
    if staged is not None and isinstance(recorded, SubmissionRecorded):
        complete_submission(workspace, recorded, staged)
    else:
        workspace.store.remove(staged_file(run_id))


def complete_submission(
    workspace: Workspace, recorded: SubmissionRecorded, staged: bytes
) -> Completed:
    """Keep, score and sign a recorded submission; the caller holds the run's lock.

    A host without the identity or the key for scores leaves the score to `piste rescore`.
    """
    store, folder = workspace.store, run_folder(recorded.run_id)
    if not store.exists(f"{folder}/{PREDICTIONS}"):
        store.create(f"{folder}/{PREDICTIONS}", staged)
    card, unscored = None, _cannot_score(workspace)
    if unscored is None:
        try:
            card = score_run(workspace, recorded.run_id)
        except RefusedByPolicy as refusal:
            unscored = str(refusal)
    _sign(workspace, folder)
    store.remove(staged_file(recorded.run_id))
    return Completed(card=card, unscored=unscored)


def _cannot_score(workspace: Workspace) -> str | None:
    if not workspace.keyring.holds(Purpose.LABELS):
        return "this host holds no identity for the labels; score with: piste rescore"
    if workspace.signing.scorer is None:
        return "this host holds no scorer key; score with: piste rescore"
    return None


def _sign(workspace: Workspace, folder: str) -> None:
    """List and sign the folder with the run's key, unless that is done."""
    store = workspace.store
    names = [n for n in (PREDICTIONS, PUBLIC_CARD, PRIVATE_CARD) if store.exists(f"{folder}/{n}")]
    digests = {name: sha256_hex(store.read(f"{folder}/{name}")) for name in names}
    if not store.exists(f"{folder}/{SUMS}") or not is_signed(
        workspace, folder, digests, role="run"
    ):
        sign_folder(workspace, folder, digests, role="run")
