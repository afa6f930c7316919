"""Apply every rule to an observation, the most probable cause first, one screen at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from orchestrator.entrants.rules import (
    answers,
    crashes,
    determinism,
    graphics,
    network,
    resources,
    starting,
    user,
    writing,
)
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.observations import Observation

Rule = Callable[[Observation], Iterable[Finding]]

MOST_FINDINGS: Final = 4
"""More do not fit on one screen, and are seldom true."""

RULES: Final[tuple[Rule, ...]] = (
    resources.memory,
    resources.shared_memory,
    resources.space,
    resources.file_size,
    resources.processes,
    resources.deadline,
    network.network,
    starting.starting,
    user.passwd_entry,
    user.root_only_files,
    writing.writing,
    graphics.gpu,
    crashes.missing_parts,
    crashes.wrong_call,
    crashes.signals,
    crashes.exceptions,
    crashes.our_side,
    answers.missing_answers,
    answers.unaccepted_output,
    answers.invalid_predictions,
    determinism.determinism,
)
_ORDER: Final = {cause: number for number, cause in enumerate(Cause)}
_VAGUE: Final = frozenset({Cause.PROGRAM_ERROR, Cause.CRASH, Cause.NO_OUTPUT})
"""What is said only where nothing explains the end better."""


def diagnose(seen: Observation) -> tuple[Finding, ...]:
    """Return the findings: why it failed, or of a completed run what to beware of."""
    found = sorted(
        (finding for rule in RULES for finding in rule(seen)),
        key=lambda finding: (-finding.certainty, _ORDER[finding.cause]),
    )
    return tuple(_once(_without_vague(found)))[:MOST_FINDINGS]


def _without_vague(found: list[Finding]) -> list[Finding]:
    explained = any(
        finding.cause not in _VAGUE and finding.certainty >= Certainty.LAST_WORDS
        for finding in found
    )
    return [one for one in found if not (explained and one.cause in _VAGUE)]


def _once(found: list[Finding]) -> Iterator[Finding]:
    """Yield the surest finding of each cause."""
    causes: set[Cause] = set()
    for finding in found:
        if finding.cause not in causes:
            causes.add(finding.cause)
            yield finding
