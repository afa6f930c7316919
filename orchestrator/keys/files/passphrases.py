"""The passphrase of the private keys: out of a file, or asked for on the terminal.

A passphrase is never an argument and never an environment variable: both show in the list of
processes. The environment may name the file.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from pathlib import Path

from manifests.errors import MalformedDocument, PlatformFault
from orchestrator.keys.files.secret_files import read_secret

MIN_CHARACTERS = 8
_ATTEMPTS = 3


class Passphrases:
    """What may open this host's keys, in the order in which it is tried."""

    def __init__(self, file: Path | None, *, variable: str) -> None:
        """`file` holds the passphrase; without it a person is asked. `variable` names it."""
        self._file = file
        self._variable = variable
        self._known: list[str] = [] if file is None else [read_passphrase(file)]

    @property
    def from_file(self) -> str | None:
        """Return the passphrase of the file, or None where there is no file."""
        return None if self._file is None else self._known[0]

    def attempts(self, name: str) -> Iterator[str]:
        """Yield what is known, then what a person at the terminal enters for `name`.

        Raises:
            PlatformFault: nothing is known, and nobody is at a terminal.

        """
        yield from tuple(self._known)
        if not sys.stdin.isatty():
            if self._file is not None:
                return
            raise PlatformFault(
                f"{name}: is protected by a passphrase, and nobody is at a terminal to ask; write "
                f"it to a file of mode 0600 and name that file in {self._variable}"
            )
        for _ in range(_ATTEMPTS):
            secret = getpass.getpass(f"Passphrase of {name}: ")
            if secret not in self._known:
                self._known.append(secret)
            yield secret


def read_passphrase(file: Path) -> str:
    """Return the first line of a passphrase file of mode 0600.

    Raises:
        PlatformFault: the file cannot be read, or others may read it.
        MalformedDocument: it is empty, has more lines or is not text.

    """
    try:
        lines = read_secret(file).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise MalformedDocument(f"{file}: not UTF-8 at byte {error.start}") from error
    if len(lines) != 1 or not lines[0]:
        raise MalformedDocument(f"{file}: {len(lines)} lines, expected one with the passphrase")
    return lines[0]


def choose_passphrase() -> str:
    """Ask a person at the terminal for a new passphrase, twice.

    Raises:
        PlatformFault: nobody is at a terminal.
        MalformedDocument: the two differ, or they are too short.

    """
    if not sys.stdin.isatty():
        raise PlatformFault("nobody is at a terminal to ask; use --passphrase-file FILE")
    first = require_strength(getpass.getpass("New passphrase of the keys: "))
    if getpass.getpass("Again: ") != first:
        raise MalformedDocument("the two passphrases differ; nothing was made")
    return first


def require_strength(secret: str) -> str:
    """Return `secret` unless it is too short to protect anything.

    Raises:
        MalformedDocument: with the bound.

    """
    if len(secret) < MIN_CHARACTERS:
        raise MalformedDocument(
            f"passphrase: {len(secret)} characters, expected at least {MIN_CHARACTERS}"
        )
    return secret
