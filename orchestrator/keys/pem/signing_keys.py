"""Private keys as PEM files of mode 0600: ECDSA P-256 for run and scorer, Ed25519 for the log."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.statements import KeyRole, PublicKey
from orchestrator.keys.rules.signatures import describe_key
from orchestrator.keys.signing_port import SigningKeys

PrivateKey = ec.EllipticCurvePrivateKey | Ed25519PrivateKey
ROLES: tuple[KeyRole, ...] = ("run", "scorer", "log")
_MAX_KEY_BYTES = 16_384
_PROTECTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class FileSigner:
    """A private key in memory; its repr shows the public half only."""

    public_key: PublicKey
    _private_key: PrivateKey

    def __repr__(self) -> str:
        return f"FileSigner({self.public_key.role} {self.public_key.key_id[:16]})"

    def sign(self, message: bytes) -> bytes:
        """Sign `message`: DER of ECDSA P-256 with SHA-256, or Ed25519's 64 bytes."""
        if isinstance(self._private_key, Ed25519PrivateKey):
            return self._private_key.sign(message)
        return self._private_key.sign(message, ec.ECDSA(SHA256()))


def generate_signer(role: KeyRole) -> FileSigner:
    """Return a new key of the role's algorithm, in memory only."""
    private_key: PrivateKey = (
        Ed25519PrivateKey.generate() if role == "log" else ec.generate_private_key(ec.SECP256R1())
    )
    return FileSigner(describe_key(role, private_key.public_key()), private_key)


def generate_signing_keys() -> SigningKeys:
    """Return a new key of each role, in memory only."""
    return SigningKeys(
        run=generate_signer("run"), scorer=generate_signer("scorer"), log=generate_signer("log")
    )


def create_signing_keys(directory: Path, *, passphrase: bytes | None = None) -> SigningKeys:
    """Create `run.pem`, `scorer.pem` and `log.pem` in `directory`: all of them, or nothing.

    The directory (absent or empty before) appears with its three files in one rename.

    Raises:
        RefusedByPolicy: when the directory holds something already.
        PlatformFault: when it cannot be written.

    """
    keys = {role: generate_signer(role) for role in ROLES}
    try:
        _refuse_occupied(directory)
        staging = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
        try:
            for role, signer in keys.items():
                _write_key(staging / f"{role}.pem", signer, passphrase=passphrase)
            _sync_directory(staging)
            staging.rename(directory)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        _sync_directory(directory.parent)
    except OSError as error:
        raise PlatformFault(f"{directory}: keys cannot be written: {error.strerror}") from error
    return SigningKeys(**keys)


def create_key_file(path: Path, role: KeyRole, *, passphrase: bytes | None = None) -> FileSigner:
    """Create one new key at `path`, which must not exist; used to prepare a rotation.

    Raises:
        RefusedByPolicy: when `path` exists.
        PlatformFault: when it cannot be written.

    """
    signer = generate_signer(role)
    staging = path.with_name(f".{path.name}.{signer.public_key.key_id[:16]}")
    try:
        try:
            _write_key(staging, signer, passphrase=passphrase)
            path.hardlink_to(staging)  # unlike a rename, never onto a key that exists
        finally:
            staging.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except FileExistsError as error:
        raise RefusedByPolicy(f"{path} exists; a key is never overwritten") from error
    except OSError as error:
        raise PlatformFault(f"{path}: key cannot be written: {error.strerror}") from error
    return signer


def next_key_path(directory: Path, role: KeyRole) -> Path:
    """Return where a rotation prepares the role's next key, before the ledger knows of it."""
    return directory / f"{role}.next.pem"


def promote_next_key(directory: Path, role: KeyRole) -> None:
    """Put the prepared key into the role's place, in one rename, once its rotation is logged.

    Safe to repeat after a crash: without a prepared key it does nothing.

    Raises:
        PlatformFault: when the folder cannot be written.

    """
    prepared = next_key_path(directory, role)
    try:
        if prepared.exists():
            prepared.replace(directory / f"{role}.pem")
            _sync_directory(directory)
    except OSError as error:
        raise PlatformFault(f"{prepared}: key cannot be moved: {error.strerror}") from error


def load_signing_keys(directory: Path, *, passphrase: bytes | None = None) -> SigningKeys:
    """Load the keys that `directory` holds; an absent file is a key that this host does not hold.

    Raises:
        PlatformFault: when there is none at all, a file is readable by others, or cannot be read.
        MalformedDocument: when a file is no such key, or the passphrase does not open it.

    """
    signers = {
        role: load_signer(directory / f"{role}.pem", role, passphrase=passphrase)
        for role in ROLES
        if os.path.lexists(directory / f"{role}.pem")
    }
    if not signers:
        raise PlatformFault(
            f"{directory}: none of run.pem, scorer.pem, log.pem is here; "
            "create a workspace with: piste init DIR"
        )
    return SigningKeys(**signers)


def are_protected(directory: Path) -> bool:
    """Tell whether any key in `directory` has a passphrase; errors as `load_signing_keys`."""
    paths = [directory / f"{role}.pem" for role in ROLES]
    return any(_PROTECTED in _read_private_file(path) for path in paths if os.path.lexists(path))


def load_signer(path: Path, role: KeyRole, *, passphrase: bytes | None = None) -> FileSigner:
    """Load one private key of `role`; errors as `load_signing_keys`."""
    data = _read_private_file(path)
    try:
        private_key = load_pem_private_key(data, password=passphrase)
    except TypeError as error:
        raise MalformedDocument(
            f"{path}: "
            + (
                "the key has a passphrase and none was given"
                if passphrase is None
                else "a passphrase was given and the key has none"
            )
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        what = "not a PEM private key" if passphrase is None else "wrong passphrase, or not a key"
        raise MalformedDocument(f"{path}: {what}") from error
    expected = Ed25519PrivateKey if role == "log" else ec.EllipticCurvePrivateKey
    if not isinstance(private_key, expected):
        algorithm = "Ed25519" if role == "log" else "ECDSA P-256"
        raise MalformedDocument(f"{path}: a {role} key is {algorithm}")
    return FileSigner(describe_key(role, private_key.public_key()), private_key)


def _read_private_file(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise PlatformFault(f"{path}: not a regular file")
            if facts.st_mode & 0o077:
                mode = stat.S_IMODE(facts.st_mode)
                raise PlatformFault(
                    f"{path}: mode {mode:04o} lets others read the key; run: chmod 600 {path}"
                )
            return file.read(_MAX_KEY_BYTES)
    except OSError as error:
        raise PlatformFault(f"{path}: key cannot be read: {error.strerror}") from error


def _refuse_occupied(directory: Path) -> None:
    if os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir())):
        raise RefusedByPolicy(f"{directory} is not empty; keys are never overwritten")


def _write_key(path: Path, signer: FileSigner, *, passphrase: bytes | None) -> None:
    encryption: KeySerializationEncryption = (
        NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    )
    pem = signer._private_key.private_bytes(  # noqa: SLF001 - the module's own class
        Encoding.PEM, PrivateFormat.PKCS8, encryption
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
