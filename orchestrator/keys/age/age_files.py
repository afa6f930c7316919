"""age (age-encryption.org/v1) through pyrage: seal to recipients, open with identity files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import pyrage  # type: ignore[import-untyped]  # ships no stubs
from pyrage import passphrase, x25519

from manifests.digests import sha256_hex
from manifests.errors import MalformedDocument, PlatformFault
from manifests.text import escape_untrusted
from orchestrator.keys.files.secret_files import read_secret
from orchestrator.keys.rules.recipients import SealingPlan, SealRecipients, parse_recipients
from orchestrator.keys.sealing_port import (
    IdentityMissing,
    Purpose,
    SealedFileChanged,
    WrongIdentity,
)
from orchestrator.support.files.durable_files import disk_faults, read_existing

IDENTITY_SUFFIX = ".agekey"
RECIPIENTS = "recipients.json"
_AGE_MAGIC = (b"age-encryption.org/v1", b"-----BEGIN AGE ENCRYPTED FILE-----")
_NO_KEY = "No matching keys found"
_CUT_SHORT = frozenset({"age file is truncated", "failed to fill whole buffer"})

AskPassphrase = Callable[[str], Iterable[str]]
"""Yields passphrases to try on the named identity file, one after the other."""


def generate_identity() -> tuple[bytes, str]:
    """Return a new identity file's bytes, as `age-keygen` writes them, and its recipient."""
    identity = x25519.Identity.generate()
    recipient = str(identity.to_public())
    return f"# public key: {recipient}\n{identity}\n".encode("ascii"), recipient


def protect_identity(identity_file: bytes, secret: str) -> bytes:
    """Return an identity file that asks for the passphrase `secret`, as `age -p` makes it."""
    return bytes(passphrase.encrypt(identity_file, secret))


def parse_identities(data: bytes, *, source: str) -> tuple[x25519.Identity, ...]:
    """Parse an identity file: one AGE-SECRET-KEY-1… per line, comments with `#`.

    Raises:
        MalformedDocument: with `source` and line, never with the secret.

    """
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            try:
                found.append(x25519.Identity.from_str(text))
            except pyrage.IdentityError as error:
                raise MalformedDocument(
                    f"{source}, line {number}: not an age X25519 identity (AGE-SECRET-KEY-1…)"
                ) from error
    if not found:
        raise MalformedDocument(f"{source}: holds no age identity; make one with: age-keygen")
    return tuple(found)


def load_identities(path: Path, ask: AskPassphrase | None) -> tuple[x25519.Identity, ...]:
    """Load an identity file of mode 0600, asking for its passphrase where it has one."""
    data = read_secret(path)
    if data.startswith(_AGE_MAGIC):
        data = _unprotect(data, path, ask)
    return parse_identities(data, source=str(path))


def _unprotect(data: bytes, path: Path, ask: AskPassphrase | None) -> bytes:
    if ask is None:
        raise PlatformFault(f"{path}: is protected by a passphrase and nobody is there to ask")
    for secret in ask(str(path)):
        try:
            return bytes(passphrase.decrypt(data, secret))
        except pyrage.DecryptError:
            continue
    raise WrongIdentity(f"{path}: the passphrase does not open it")


class AgeSealer:
    """Implements `Sealer` and `BulkSealer` of `orchestrator.keys.sealing_port` in this process."""

    def seal(self, plain: bytes, plan: SealingPlan) -> bytes:
        """Return `plain` as age, one layer per layer of `plan`, the first innermost."""
        for layer in plan.layers:
            # the streaming call copies less than the one-shot call
            whole = io.BytesIO()
            pyrage.encrypt_io(io.BytesIO(plain), whole, [_recipient(text) for text in layer])
            plain = whole.getvalue()
        return plain

    def seal_to(
        self, write: Callable[[memoryview], None], parts: Sequence[bytes], plan: SealingPlan
    ) -> str:
        """Hand the joined `parts` as age to `write`, and return the SHA-256 of that."""
        sealed = self.seal(b"".join(parts), plan)
        write(memoryview(sealed))
        return sha256_hex(sealed)

    @staticmethod
    def check(plan: SealingPlan) -> None:
        """Refuse a recipient that is none. Raises MalformedDocument."""
        for layer in plan.layers:
            for text in layer:
                _recipient(text)


@lru_cache(maxsize=64)
def _recipient(text: str) -> x25519.Recipient:
    try:
        return x25519.Recipient.from_str(text)
    except pyrage.RecipientError as error:
        raise MalformedDocument(
            f"{escape_untrusted(text)}: not an age recipient (age1…)"
        ) from error


class AgeUnsealer:
    """Implements `orchestrator.keys.sealing_port.Unsealer`."""

    def __init__(self, identities: Sequence[x25519.Identity]) -> None:
        self._identities = list(identities)

    def recipients(self) -> tuple[str, ...]:
        """Return the public recipients of the identities at hand."""
        return tuple(str(identity.to_public()) for identity in self._identities)

    def open_sealed(self, sealed: bytes, *, layers: int, source: str) -> bytes:
        """Return the plaintext; nothing of it on a failure."""
        data = sealed
        for _ in range(layers):
            try:
                data = pyrage.decrypt(data, self._identities)
            except pyrage.DecryptError as error:
                raise self._refusal(str(error), source) from error
        return data

    def _refusal(self, fact: str, source: str) -> PlatformFault:
        if fact == _NO_KEY:
            held = len(self._identities)
            return WrongIdentity(
                f"{source}: none of the {held} identities at hand opens it; seal.json names the "
                "recipients: put the identity of one of them into the workspace's keys folder"
            )
        if fact in _CUT_SHORT:
            return SealedFileChanged(f"{source}: cut short; restore it from a backup")
        return SealedFileChanged(
            f"{source}: changed or cut short since it was sealed ({escape_untrusted(fact, 60)}); "
            "restore it from a backup"
        )


class AgeKeyring:
    """Implements `orchestrator.keys.sealing_port.Keyring` on a folder of identity files.

    `clips*.agekey` open clips, `labels*.agekey` open labels: a second file serves two-person
    editions. `recipients.json` stays when an identity is carried elsewhere.
    """

    def __init__(self, folder: Path, *, ask: AskPassphrase | None = None) -> None:
        self._folder = folder
        self._ask = ask
        self._loaded: dict[Purpose, AgeUnsealer] = {}

    def plan(self, purpose: Purpose) -> SealingPlan:
        """Return the recipients for `purpose`."""
        path = self._folder / RECIPIENTS
        recipients: SealRecipients = parse_recipients(_read_public(path), source=str(path))
        return recipients.clips if purpose is Purpose.CLIPS else recipients.labels

    def holds(self, purpose: Purpose) -> bool:
        """Tell whether an identity file for `purpose` is there."""
        return bool(self._files(purpose))

    def identity_files(self, purpose: Purpose) -> tuple[str, ...]:
        """Return the names of the identity files for `purpose`."""
        return tuple(path.name for path in self._files(purpose))

    def unsealer(self, purpose: Purpose) -> AgeUnsealer:
        """Load the identities for `purpose`, once."""
        if purpose not in self._loaded:
            files = self._files(purpose)
            if not files:
                raise IdentityMissing(
                    f"{self._folder}: no {purpose}{IDENTITY_SUFFIX}: this host cannot open "
                    f"{purpose}; work on a host that holds that identity"
                )
            loaded = [one for path in files for one in load_identities(path, self._ask)]
            self._loaded[purpose] = AgeUnsealer(loaded)
        return self._loaded[purpose]

    def _files(self, purpose: Purpose) -> list[Path]:
        return sorted(self._folder.glob(f"{purpose}*{IDENTITY_SUFFIX}"))


def _read_public(path: Path) -> bytes:
    with disk_faults(path, "read the recipients"):
        return read_existing(path)
