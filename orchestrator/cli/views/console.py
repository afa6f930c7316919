"""Where text goes: people read stderr and tables on stdout; with --json stdout is one document."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from manifests.encoding import readable_json


def print_json(document: Mapping[str, object]) -> None:
    """Write the command's one JSON document to stdout."""
    sys.stdout.buffer.write(readable_json(document))
    sys.stdout.flush()


def print_bytes(data: bytes) -> None:
    """Write a file's exact bytes to stdout."""
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def say(text: str) -> None:
    """Write one line of a command's result to stdout."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Write one line for the person at the terminal to stderr."""
    sys.stderr.write(text + "\n")
