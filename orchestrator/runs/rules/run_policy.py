"""Who may run what, where and when: every refusal before anything is spent, as pure rules."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from manifests.editions import EngineMinimum
from manifests.errors import RefusedByPolicy
from manifests.statements import EditionSealed, Statement, TeamRegistered
from manifests.text import escape_untrusted
from orchestrator.engine.rules.versions import is_older


def registered_team(statements: Iterable[Statement], team: str) -> TeamRegistered:
    """Return the team's registration.

    Raises:
        RefusedByPolicy: it is not registered in this workspace.

    """
    for statement in statements:
        if isinstance(statement, TeamRegistered) and statement.team == team:
            return statement
    shown = escape_untrusted(team, 60)
    raise RefusedByPolicy(f"team {shown}: not registered; register it with: piste team add {shown}")


def check_open(edition: EditionSealed, now: datetime) -> None:
    """Refuse an edition that has not opened yet or is closed.

    Raises:
        RefusedByPolicy: with the edition's dates.

    """
    if now < edition.opens:
        raise RefusedByPolicy(
            f"edition {edition.edition} opens at {edition.opens:%Y-%m-%dT%H:%M:%SZ}, "
            f"it is {now:%Y-%m-%dT%H:%M:%SZ}; nothing was spent"
        )
    if now >= edition.closes:
        raise RefusedByPolicy(
            f"edition {edition.edition} closed at {edition.closes:%Y-%m-%dT%H:%M:%SZ}; "
            "nothing was spent"
        )


def check_versions(*, docker: str, runc: str, minimum: EngineMinimum) -> None:
    """Refuse an engine or runtime that is older than the edition demands.

    Raises:
        RefusedByPolicy: with what was found and what is demanded.

    """
    pairs = (("docker", docker, minimum.docker), ("runc", runc, minimum.runc))
    for name, found, needed in pairs:
        if needed is not None and is_older(found, needed):
            raise RefusedByPolicy(
                f"this host's {name} is {escape_untrusted(found, 40)}, the edition demands "
                f"{needed} or newer; update it; nothing was spent"
            )
