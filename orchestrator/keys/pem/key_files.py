"""The files of the private keys while one gives way to the next: `run.pem`, `run.next.pem`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.statements import KeyRole, PublicKey
from orchestrator.keys.files.passphrases import Passphrases
from orchestrator.keys.pem.signing_keys import (
    ROLES,
    are_protected,
    create_key_file,
    load_signer,
    load_signing_keys,
    next_key_path,
    promote_next_key,
)
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.support.files.durable_files import disk_faults, sync_folder
from orchestrator.support.files.locks import try_lock


class KeyFolder:
    """Implements `orchestrator.keys.signing_port.KeyFiles` on a workspace's keys folder."""

    def __init__(self, folder: Path, *, lock: Path, passphrase: bytes | None) -> None:
        """`passphrase` protects the next key as it does the present one."""
        self._folder = folder
        self._lock = lock
        self._passphrase = passphrase

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock on the key files."""
        with try_lock(self._lock) as held:
            if not held:
                raise RefusedByPolicy(
                    f"{self._folder}: another process is changing its keys; let it end"
                )
            yield

    def prepare(self, role: KeyRole) -> PublicKey:
        """Make the role's next key beside the present one."""
        path = next_key_path(self._folder, role)
        return create_key_file(path, role, passphrase=self._passphrase).public_key

    def prepared(self) -> Mapping[KeyRole, PublicKey]:
        """Return the next keys that are prepared and not in place yet."""
        paths = {role: next_key_path(self._folder, role) for role in ROLES}
        return {
            role: load_signer(path, role, passphrase=self._passphrase).public_key
            for role, path in paths.items()
            if path.exists()
        }

    def install(self, role: KeyRole) -> None:
        """Put the prepared key into the present one's place, in one rename."""
        promote_next_key(self._folder, role)

    def discard(self, role: KeyRole) -> None:
        """Remove whatever was prepared for `role`: private keys that nothing will ever name."""
        path = next_key_path(self._folder, role)
        with disk_faults(path, "remove the unused key"):
            remnants = [*self._folder.glob(f".{path.name}.*"), path]
            for file in remnants:
                file.unlink(missing_ok=True)
            sync_folder(self._folder)

    def is_disturbed(self) -> bool:
        """Tell, by names alone, whether a rotation was under way when its process died."""
        if not self._folder.is_dir():
            return False
        names = [next_key_path(self._folder, role).name for role in ROLES]
        with disk_faults(self._folder, "list"):
            found = [entry.name.lstrip(".") for entry in self._folder.iterdir()]
        return any(name.startswith(known) for name in found for known in names)


def unlock_signing_keys(folder: Path, passphrases: Passphrases) -> tuple[SigningKeys, bytes | None]:
    """Load the keys in `folder`; return them and the passphrase that opened them, if they have one.

    A passphrase from a file is expected to be needed: keys without one are refused then, so that
    nobody believes them protected. Errors as `load_signing_keys`.
    """
    given = passphrases.from_file
    if given is not None:
        return load_signing_keys(folder, passphrase=given.encode()), given.encode()
    if not are_protected(folder):
        return load_signing_keys(folder), None
    fault = MalformedDocument(f"{folder}: no passphrase was given")
    for secret in passphrases.attempts(str(folder)):
        try:
            return load_signing_keys(folder, passphrase=secret.encode()), secret.encode()
        except MalformedDocument as error:
            fault = error
    raise fault
