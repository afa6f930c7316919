"""Check 8: the three-run rule, counted anew from the statements alone.

The log's rules (check 7) refuse a fourth reservation; this count does not trust them and asks only
what was started, what was voided, and what the edition allows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from manifests.statements import (
    EditionSealed,
    QuotaRule,
    RunReserved,
    RunStarted,
    RunVoided,
    Statement,
)
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Findings

TeamInEdition = tuple[str, str]


@dataclass(slots=True)
class QuotaCount:
    """Counts runs by edition and team as the statements go by."""

    rules: dict[str, QuotaRule] = field(default_factory=dict)
    attempts: Counter[TeamInEdition] = field(default_factory=Counter)
    started: dict[str, TeamInEdition] = field(default_factory=dict)
    voided: set[str] = field(default_factory=set)
    blank_voids: list[str] = field(default_factory=list)

    def add(self, statement: Statement) -> None:
        """Take in the next statement."""
        match statement:
            case EditionSealed():
                self.rules.setdefault(statement.edition, statement.quota)
            case RunReserved():
                self.attempts[statement.edition, statement.team] += 1
            case RunStarted():
                self.started[statement.run_id] = (statement.edition, statement.team)
            case RunVoided():
                self.voided.add(statement.run_id)
                if not statement.reason.strip():
                    self.blank_voids.append(statement.run_id)
            case _:
                pass

    def judge(self, findings: Findings) -> None:
        """Compare every team's counts with its edition's quota."""
        counted = Counter(
            entry for run_id, entry in self.started.items() if run_id not in self.voided
        )
        for edition, team in self.attempts.keys() | counted.keys():
            rule = self.rules.get(edition)
            if rule is None:
                findings.fault(Check.QUOTA, f"team {team}: runs in {edition}, which has no quota")
                continue
            used, attempts = counted[edition, team], self.attempts[edition, team]
            findings.require(
                Check.QUOTA,
                used <= rule.certified_runs and attempts <= rule.attempts,
                f"team {team} has {used} counted runs of {rule.certified_runs} and {attempts} "
                f"attempts of {rule.attempts} in {edition}",
            )
        for run_id in self.blank_voids:
            findings.fault(Check.QUOTA, f"run {run_id} was voided without a reason")
