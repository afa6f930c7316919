"""What the checks found: collected while they run, bounded, and summed up by number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from manifests.encoding import Json
from manifests.errors import ClaimDoesNotHold, MalformedDocument, RefusedByPolicy
from manifests.text import escape_untrusted
from orchestrator.evidence.rules.catalogue import Check

MAX_FAULTS = 20
"""Faults that are shown for one check; more are counted."""
MAX_TEXT = 300
NOT_HERE = "nothing of this kind is in what was given"


class Result(StrEnum):
    """How a check ended."""

    PASSED = "pass"
    FAILED = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One line of the report."""

    check: Check
    result: Result
    compared: int
    faults: tuple[str, ...]
    fault_count: int
    notes: tuple[str, ...]
    """Why something was skipped, or what the auditor should look at."""

    def as_document(self) -> dict[str, Json]:
        """Return the line for `--json`."""
        return {
            "number": self.check.number,
            "check": self.check.title,
            "compares": self.check.compares,
            "result": self.result.value,
            "compared": self.compared,
            "unit": self.check.unit,
            "faults": list(self.faults),
            "fault_count": self.fault_count,
            "notes": list(self.notes),
        }


@dataclass(slots=True)
class _Tally:
    compared: int = 0
    fault_count: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Findings:
    """Collects what was compared, what does not hold, and what could not be checked."""

    def __init__(self) -> None:
        self._tallies = {check: _Tally() for check in Check}

    def compared(self, check: Check, count: int = 1) -> None:
        """Count what was compared."""
        self._tallies[check].compared += count

    def fault(self, check: Check, text: str) -> None:
        """Record one claim that does not hold."""
        tally = self._tallies[check]
        tally.fault_count += 1
        if len(tally.faults) < MAX_FAULTS:
            tally.faults.append(escape_untrusted(text, MAX_TEXT))

    def require(self, check: Check, holds: bool, text: str) -> None:
        """Count one comparison, and record `text` unless it holds."""
        self.compared(check)
        if not holds:
            self.fault(check, text)

    def note(self, check: Check, text: str) -> None:
        """Say why something was not compared, or what to compare by hand; once each."""
        notes, shown = self._tallies[check].notes, escape_untrusted(text, MAX_TEXT)
        if shown not in notes and len(notes) < MAX_FAULTS:
            notes.append(shown)

    @contextmanager
    def judging(self, check: Check) -> Iterator[None]:
        """Turn an error of a strict parser or verifier into a fault of `check`."""
        try:
            yield
        except (ClaimDoesNotHold, MalformedDocument, RefusedByPolicy) as error:
            self.fault(check, str(error))

    def failed(self, check: Check) -> bool:
        """Tell whether `check` found a fault so far."""
        return self._tallies[check].fault_count > 0

    def results(self) -> tuple[CheckResult, ...]:
        """Return every check in the order of its number; one that compared nothing is skipped."""
        return tuple(_result(check, tally) for check, tally in self._tallies.items())


def _result(check: Check, tally: _Tally) -> CheckResult:
    if tally.fault_count:
        result = Result.FAILED
    else:
        result = Result.PASSED if tally.compared else Result.SKIPPED
    notes = tally.notes or ([NOT_HERE] if result is Result.SKIPPED else [])
    return CheckResult(
        check=check,
        result=result,
        compared=tally.compared,
        faults=tuple(tally.faults),
        fault_count=tally.fault_count,
        notes=tuple(notes),
    )
