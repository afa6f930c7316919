"""The one tree of errors; each class carries its exit code."""

from __future__ import annotations

from typing import ClassVar


class PisteError(Exception):
    """Base of every error that piste raises on purpose.

    The message states the place, the fact, the bound and the next step.
    """

    exit_code: ClassVar[int] = 4


class ClaimDoesNotHold(PisteError):  # noqa: N818 - a claim is a fact about evidence, not a malfunction
    """A published claim is false, or an entrant's run did not complete."""

    exit_code = 1


class MalformedDocument(PisteError):  # noqa: N818
    """A file, a document or the command's words do not follow their format."""

    exit_code = 2


class RefusedByPolicy(PisteError):  # noqa: N818
    """The rules of the edition or of this host forbid the act; nothing was spent."""

    exit_code = 3


class PlatformFault(PisteError):  # noqa: N818
    """Our side failed: engine, disk, keys or ledger. A run in progress is refunded."""

    exit_code = 4


class DiskFull(PlatformFault):
    """No space or quota is left where we write."""
