"""Put the key files, the passphrase and the ledger together, before a workspace opens."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.statements import KeyRole
from orchestrator.keys.files.passphrases import Passphrases, choose_passphrase, require_strength
from orchestrator.keys.pem.key_files import KeyFolder, unlock_signing_keys
from orchestrator.keys.pem.signing_keys import load_signing_keys
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.sql.sql_store import open_sql_ledger
from orchestrator.support.system_clock import SystemClock
from orchestrator.workspace.files.workspace_files import open_workspace as open_workspace_files
from orchestrator.workspace.rotate_key import (
    Rotated,
    RotationTools,
    rotate_key,
    settle_rotations,
)

LEDGER_FILE = "ledger.sqlite"
KEYS_FOLDER = "keys"
KEYS_LOCK = "locks/keys.lock"
SECRET_FILE_VARIABLE = "PISTE_KEY_PASSPHRASE_FILE"  # noqa: S105 - a name, not a secret
"""Names a file that holds the keys' passphrase: the secret itself is never in env."""


def key_passphrases() -> Passphrases:
    """Return where the keys' passphrase comes from: the file that the environment names, if any."""
    name = os.environ.get(SECRET_FILE_VARIABLE)
    return Passphrases(Path(name) if name else None, variable=SECRET_FILE_VARIABLE)


def new_passphrase(file: Path | None, *, ask: bool) -> str | None:
    """Return the passphrase for new keys: out of a file, from the terminal, or none.

    Raises:
        MalformedDocument: both ways were given, or the passphrase is too short.

    """
    if file is not None and ask:
        raise MalformedDocument("give --passphrase-file or --ask-passphrase, not both")
    if ask:
        return choose_passphrase()
    source = Passphrases(file, variable="") if file is not None else key_passphrases()
    return None if source.from_file is None else require_strength(source.from_file)


@dataclass(frozen=True, slots=True)
class OpenKeys:
    """The signing keys of this host, their files, and where passphrases come from."""

    signing: SigningKeys
    files: KeyFolder
    passphrases: Passphrases


def open_keys(root: Path) -> OpenKeys:
    """Load the signing keys, after what a killed rotation left was put right."""
    folder, passphrases = root / KEYS_FOLDER, key_passphrases()
    signing, secret = unlock_signing_keys(folder, passphrases)
    files = KeyFolder(folder, lock=root / KEYS_LOCK, passphrase=secret)
    if files.is_disturbed():
        with suppress(RefusedByPolicy), files.exclusive():  # else: a rotation is at work just now
            settle_rotations(files, open_sql_ledger(root / LEDGER_FILE, keys=signing))
            signing = load_signing_keys(folder, passphrase=secret)
    return OpenKeys(signing, files, passphrases)


def rotate(root: Path, role: KeyRole, *, reason: str) -> Rotated:
    """Rotate one signing key of the workspace in `root`."""
    store, keys = open_workspace_files(root), open_keys(root)
    tools = RotationTools(
        ledger=open_sql_ledger(root / LEDGER_FILE, keys=keys.signing),
        signing=keys.signing,
        files=keys.files,
        store=store,
        clock=SystemClock(),
    )
    return rotate_key(role, reason=reason, tools=tools)
