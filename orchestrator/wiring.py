"""Put adapters and use cases together: the only place that knows both."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from manifests.errors import MalformedDocument
from manifests.statements import WorkspaceCreated
from orchestrator.adapters.age_files import AgeKeyring, AgeSealer, generate_identity
from orchestrator.adapters.epee_folder import EditionFile
from orchestrator.adapters.ledger_sql import create_sql_ledger, open_sql_ledger
from orchestrator.adapters.new_workspace import stage_workspace
from orchestrator.adapters.signing_keys import create_signing_keys, load_signing_keys
from orchestrator.adapters.system_clock import SystemClock
from orchestrator.adapters.workspace_files import open_workspace as open_workspace_files
from orchestrator.core.seal_documents import SealDocument, SealRecipients
from orchestrator.core.sealed_profile import seal_profile
from orchestrator.ports.clip_source import EditionSource
from orchestrator.ports.reporter import Reporter
from orchestrator.ports.sealing import Purpose
from orchestrator.ports.signing import SigningKeys
from orchestrator.usecases.initialise import Initialised, WorkspaceMakers, initialise
from orchestrator.usecases.seal_edition import SealingTools, seal_edition
from orchestrator.usecases.workspace import Workspace
from sandbox_profiles.profile import ShippedProfile, load_profile, parse_profile

LEDGER_FILE = "ledger.sqlite"
KEYS_FOLDER = "keys"
SECRET_FILE_VARIABLE = "PISTE_KEY_PASSPHRASE_FILE"  # noqa: S105 - a name, not a secret
"""Names a file that holds the signing keys' passphrase: the secret itself is never in env."""


def key_passphrase() -> bytes | None:
    """Return the signing keys' passphrase from the file that the environment names, if any."""
    name = os.environ.get(SECRET_FILE_VARIABLE)
    if not name:
        return None
    try:
        return Path(name).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise MalformedDocument(
            f"{SECRET_FILE_VARIABLE}={name}: cannot be read: {error.strerror}"
        ) from error


def open_workspace(root: Path) -> Workspace:
    """Open the workspace in `root` with the keys that this host holds."""
    store = open_workspace_files(root)
    keys_folder = root / KEYS_FOLDER
    signing = load_signing_keys(keys_folder, passphrase=key_passphrase())
    return Workspace(
        store=store,
        ledger=open_sql_ledger(root / LEDGER_FILE, keys=signing),
        keyring=AgeKeyring(keys_folder),
        sealer=AgeSealer(),
        signing=signing,
        clock=SystemClock(),
    )


def create_workspace(root: Path, *, origin: str | None) -> Initialised:
    """Make a workspace: keys, ledger, folders."""
    passphrase = key_passphrase()
    origin = origin or f"piste.local/{secrets.token_hex(6)}"

    def create_ledger(folder: Path, created: WorkspaceCreated, keys: SigningKeys) -> None:
        create_sql_ledger(folder / LEDGER_FILE, created, keys=keys)

    return initialise(
        root,
        origin=origin,
        make=WorkspaceMakers(
            stage=stage_workspace,
            create_signing_keys=lambda folder: create_signing_keys(folder, passphrase=passphrase),
            create_ledger=create_ledger,
            generate_identity=generate_identity,
            clock=SystemClock(),
        ),
    )


def load_profile_file(source: EditionSource, name: str) -> bytes:
    """Return the sealed form of a shipped profile, or of one at a path beside the edition."""
    if name in set(ShippedProfile):
        return seal_profile(load_profile(name))
    return seal_profile(parse_profile(source.read(name), source.place_of(name)))


def seal(workspace: Workspace, edition_file: Path, reporter: Reporter) -> SealDocument:
    """Seal the edition that a file describes."""
    keyring = workspace.keyring
    recipients = SealRecipients(
        clips=keyring.plan(Purpose.CLIPS), labels=keyring.plan(Purpose.LABELS)
    )
    return seal_edition(
        EditionFile(edition_file),
        SealingTools(
            store=workspace.store,
            ledger=workspace.ledger,
            sealer=workspace.sealer,
            clock=workspace.clock,
            reporter=reporter,
            recipients=recipients,
            load_profile=load_profile_file,
        ),
    )
