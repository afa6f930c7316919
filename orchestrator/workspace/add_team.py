"""`piste team add`: from here on the team may enter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.names import TeamName
from manifests.statements import Statement, TeamRegistered
from manifests.text import escape_untrusted
from orchestrator.ledger.ports import Entry, Ledger
from orchestrator.support.clock import Clock

DataTrack = Literal["open-data", "private-data"]
_NAME: TypeAdapter[str] = TypeAdapter(TeamName)


def add_team(
    name: str,
    *,
    organizer: bool,
    data_track: DataTrack,
    ledger: Ledger,
    clock: Clock,
) -> Entry:
    """Register a team, once.

    Raises:
        MalformedDocument: the name is not a team's name.
        RefusedByPolicy: the team is registered already.

    """
    _check(name)

    def register(history: Sequence[Entry]) -> Statement:
        if any(entry.statement.kind == "team-registered" for entry in history):
            raise RefusedByPolicy(f"team {name}: registered already; certify with --team {name}")
        return TeamRegistered(at=clock.now(), team=name, organizer=organizer, data_track=data_track)

    return ledger.decide(register, team=name)


def _check(name: str) -> None:
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        raise MalformedDocument(
            f"{escape_untrusted(name, 60)!r}: not a team's name; use 2 to 40 of a-z, 0-9 and -, "
            "beginning with a letter or digit"
        ) from error
