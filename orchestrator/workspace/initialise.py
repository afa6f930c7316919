"""`piste init`: keys, ledger and folders, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from manifests.statements import PublicKey, WorkspaceCreated
from orchestrator.keys.rules.recipients import SealRecipients, any_of, encode_recipients
from orchestrator.keys.sealing_port import Purpose
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.support.clock import Clock
from orchestrator.workspace.ports import StagedWorkspace

RECIPIENTS_FILE = "keys/recipients.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceMakers:
    """How the parts of a workspace are made."""

    stage: Callable[[Path], AbstractContextManager[StagedWorkspace]]
    create_signing_keys: Callable[[Path], SigningKeys]
    """Makes the private keys in this folder, which is empty."""
    create_ledger: Callable[[Path, WorkspaceCreated, SigningKeys], None]
    """Makes the ledger below this folder, its first statement the given one, and closes it."""
    generate_identity: Callable[[], tuple[bytes, str]]
    """Returns an age identity file's bytes and its recipient."""
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """A workspace that exists now."""

    root: Path
    keys: tuple[PublicKey, ...]
    """Empty when an interrupted init was completed: the ledger holds them."""
    completed_earlier: bool


def initialise(root: Path, *, origin: str, make: WorkspaceMakers) -> Initialised:
    """Make a workspace in `root`, which is absent or empty. `origin` names its log for ever.

    Raises:
        RefusedByPolicy: `root` is a workspace already, or holds other files.
        PlatformFault: the disk refuses; `root` is left as it was.

    """
    with make.stage(root) as staged:
        if staged.is_complete:
            staged.publish()
            return Initialised(root=root, keys=(), completed_earlier=True)
        signing = make.create_signing_keys(staged.root / "keys")
        keys = signing.held()
        created = WorkspaceCreated(at=make.clock.now(), origin=origin, keys=keys)
        make.create_ledger(staged.root, created, signing)
        _add_identities(staged, make)
        staged.publish()
    return Initialised(root=root, keys=keys, completed_earlier=False)


def _add_identities(staged: StagedWorkspace, make: WorkspaceMakers) -> None:
    recipients = {}
    for purpose in Purpose:
        identity, recipient = make.generate_identity()
        staged.add(f"keys/{purpose}.agekey", identity, mode=0o600)
        recipients[purpose] = any_of(recipient)
    document = SealRecipients(clips=recipients[Purpose.CLIPS], labels=recipients[Purpose.LABELS])
    staged.add(RECIPIENTS_FILE, encode_recipients(document), mode=0o644)
