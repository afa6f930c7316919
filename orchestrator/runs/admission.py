"""What a sealed edition asks of a run before anything is spent: team, dates, quota, room."""

from __future__ import annotations

from typing import Final

from manifests.errors import DiskFull, RefusedByPolicy
from orchestrator.editions.open_clips import open_sealed_clips
from orchestrator.editions.rules.sealed_profile import open_profile
from orchestrator.editions.sealed_editions import SealedEdition
from orchestrator.editions.settle_editions import PROFILE_FILE
from orchestrator.keys.sealing_port import Purpose
from orchestrator.ledger.rules.quota import quota_fault, quota_state
from orchestrator.ledger.rules.run_states import fold_runs
from orchestrator.runs.prepare_run import FrozenConsumer, RunRequest
from orchestrator.runs.rules.run_policy import check_open, registered_team
from orchestrator.sandbox.rules.gpu import GpuPolicy
from orchestrator.scoring.rules.scoring import edition_parameters
from orchestrator.support.reporter import Reporter
from orchestrator.workspace.workspace import Workspace
from sandbox_profiles.profile import SandboxProfile

LARGEST_REPEAT = 10

_SPARE_BYTES: Final = 16 << 20
"""For cards, evidence and the ledger, beside what the entrant leaves."""


def admit(workspace: Workspace, sealed: SealedEdition, *, team: str) -> None:
    """Check team, dates, scorer and quota; the quota is checked again when the run is reserved.

    Raises:
        RefusedByPolicy: with the rule, and that nothing was spent.

    """
    statement = sealed.statement
    registrations = workspace.ledger.entries(team=team, kind="team-registered")
    registered_team((entry.statement for entry in registrations), team)
    check_open(statement, workspace.clock.now())
    edition_parameters(sealed.edition, statement.labels.version)
    history = workspace.ledger.entries(edition=statement.edition, team=team)
    runs = fold_runs(entry.statement for entry in history).values()
    state = quota_state(runs, rule=statement.quota)
    fault = quota_fault(state, edition=statement.edition, team=team)
    if fault is not None:
        raise RefusedByPolicy(fault)


def sealed_request(
    workspace: Workspace, sealed: SealedEdition, image: str, reporter: Reporter, *, repeat: int = 1
) -> RunRequest:
    """Return the request to run `image` under the conditions that the edition sealed.

    Raises:
        RefusedByPolicy: for a number of repeats that is out of bounds.
        IdentityMissing: the identities at hand do not open this edition's clips.
        ClaimDoesNotHold, SealedFileChanged: a file is not what was sealed.

    """
    if not 1 <= repeat <= LARGEST_REPEAT:
        raise RefusedByPolicy(f"--repeat {repeat}: from 1 to {LARGEST_REPEAT}")
    edition = sealed.edition
    return RunRequest(
        image=image,
        exam=open_sealed_clips(
            sealed,
            store=workspace.store,
            unsealer=workspace.keyring.unsealer(Purpose.CLIPS),
            reporter=reporter,
        ),
        profile=open_profile(sealed.profile, source=f"{sealed.folder}/{PROFILE_FILE}"),
        gpu=GpuPolicy(edition.gpu),
        engine_minimum=edition.engine_minimum,
        consumer=None
        if edition.consumer is None
        else FrozenConsumer(image=edition.consumer, vocabulary=sealed.vocabulary or b""),
        repeat=repeat,
    )


def require_room(workspace: Workspace, profile: SandboxProfile) -> None:
    """Refuse what could end, hours later, with predictions that nobody can keep.

    Raises:
        DiskFull: when what is kept of a run might not fit into the workspace.

    """
    free = workspace.store.free_bytes()
    needed = profile.output_bytes + profile.log_bytes + _SPARE_BYTES
    if free < needed:
        raise DiskFull(
            f"{workspace.store.root}: the disk is nearly full: {free} bytes are free, and what is "
            f"kept of a run may take {needed}; free space there and try again, nothing was spent"
        )
