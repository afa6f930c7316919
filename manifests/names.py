"""Names that are safe as a file name, a container name and a line of text."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

EditionName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{2,63}$")]
"""An edition's name, as `epee200-final-2026`."""

TeamName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{1,39}$")]
"""A team's name, as `nova`."""

ClipId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""A clip's name. Sealed clips have opaque ones of four digits or more."""

RunId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
"""A run's name: 64 random bits in hex, chosen at the reservation."""

LabelsVersion = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]
"""A label version, as `labels-v1`."""

ENTRANT_ID = 65532
"""User and group id that every entrant's container runs as (design, section 4)."""


def container_name(run_id: str, part: str) -> str:
    """Return the name of a run's container or volume.

    Recovery finds leftovers by this name, from the ledger: labels can be spoofed by an image.
    `part` is one of `entrant`, `holder`, `input`, `output`, with a number behind it for a repeat.
    """
    return f"piste-{run_id}-{part}"
