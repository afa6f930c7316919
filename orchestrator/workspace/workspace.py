"""An open workspace: the ports that most use cases need, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.keys.sealing_port import Keyring, Sealer
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.ports import Ledger
from orchestrator.support.clock import Clock
from orchestrator.workspace.ports import WorkspaceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One organizer's folder, ledger and keys."""

    store: WorkspaceStore
    ledger: Ledger
    keyring: Keyring
    sealer: Sealer
    signing: SigningKeys
    clock: Clock
