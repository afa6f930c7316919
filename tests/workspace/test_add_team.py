"""Registering teams: once, under a safe name."""

from __future__ import annotations

import pytest

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.statements import TeamRegistered
from orchestrator.editions.seal_edition import SealingTools
from orchestrator.workspace.add_team import add_team


def add(sealing: SealingTools, name: str, *, organizer: bool = False) -> TeamRegistered:
    entry = add_team(
        name,
        organizer=organizer,
        data_track="private-data",
        ledger=sealing.ledger,
        clock=sealing.clock,
    )
    assert isinstance(entry.statement, TeamRegistered)
    return entry.statement


def test_a_team_is_registered_with_its_track(sealing: SealingTools) -> None:
    statement = add(sealing, "nova", organizer=True)
    assert (statement.team, statement.organizer) == ("nova", True)
    assert statement.data_track == "private-data"


def test_a_team_is_registered_once(sealing: SealingTools) -> None:
    add(sealing, "nova")
    add(sealing, "nova-2")
    with pytest.raises(RefusedByPolicy, match="team nova: registered already"):
        add(sealing, "nova")
    assert len(list(sealing.ledger.entries(kind="team-registered"))) == 2


@pytest.mark.parametrize("name", ["", "N", "Nova", "no va", "-nova", "../nova", "n" * 41, "nova\n"])
def test_a_name_that_is_not_safe_is_refused(sealing: SealingTools, name: str) -> None:
    with pytest.raises(MalformedDocument, match="not a team's name"):
        add(sealing, name)
    assert list(sealing.ledger.entries(kind="team-registered")) == []
