"""What a dry run gives back, and how it is told as one JSON document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from manifests.digests import sha256_hex
from manifests.errors import PisteError
from manifests.outcomes import Diagnostic, Outcome
from orchestrator.entrants.dry_run_input import DryRunInput
from orchestrator.entrants.dry_run_watch import Watched
from orchestrator.entrants.rules.findings import Finding
from orchestrator.entrants.rules.observations import Observation
from orchestrator.runs.execute_run import ExecutedRun
from orchestrator.runs.prepare_run import PreparedRun
from scorers.cards import ScoreCard

_IMAGE_FIELDS: Final = (
    "reference",
    "index_digest",
    "manifest_digest",
    "config_digest",
    "diff_ids",
    "platform",
    "size_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunRefusal:
    """A certified run would refuse the image before it starts; nothing would be spent."""

    error: PisteError
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """Return the exit code that `certify` ends with."""
        return self.error.exit_code

    def document(self) -> dict[str, object]:
        """Return it as one JSON document."""
        return {
            "outcome": None,
            "diagnostics": [],
            "would_be_scored": False,
            "refused": {"kind": type(self.error).__name__, "message": str(self.error)},
            "findings": [finding.document() for finding in self.findings],
            "exit_code": self.exit_code,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunReport:
    """A dry run that ran: what a certified run would have recorded, and why."""

    exam: DryRunInput
    prepared: PreparedRun
    executed: ExecutedRun
    watched: Watched
    seen: Observation
    findings: tuple[Finding, ...]
    card: ScoreCard | None
    unscored: str | None
    image_removed: bool
    """False for an image that was there before."""

    @property
    def outcome(self) -> Outcome:
        """Return the outcome that would be recorded."""
        return self.executed.verdict.outcome

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the codes that would be recorded."""
        return self.executed.verdict.diagnostics

    @property
    def would_be_scored(self) -> bool:
        """Tell whether a certified run's predictions would be scored."""
        return self.outcome is Outcome.COMPLETED

    @property
    def exit_code(self) -> int:
        """Return the exit code, as `certify` has it."""
        if self.outcome is Outcome.PLATFORM_FAULT:
            return 4
        return 0 if self.would_be_scored else 1

    def document(self) -> dict[str, object]:
        """Return it as one JSON document; the log is bounded by the profile."""
        executed, request = self.executed, self.prepared.request
        image = executed.images.entrant.model_dump(mode="json")
        verdict, sandbox = executed.verdict, executed.first.sandbox
        predictions, outside = verdict.canonical, self.seen.outside_writes
        return {
            "outcome": self.outcome.value,
            "diagnostics": [code.value for code in self.diagnostics],
            "would_be_scored": self.would_be_scored,
            "refused": None,
            "exit_code": self.exit_code,
            "exam": {
                "track": self.exam.track,
                "clips": len(request.exam.exam.clips),
                "source": self.exam.place,
            },
            "image": {name: image[name] for name in _IMAGE_FIELDS},
            "image_removed": self.image_removed,
            "environment": self.prepared.environment(),
            "profile": {"name": request.profile.name, "sha256": request.profile.sha256()},
            "time": {
                "elapsed_s": round(sandbox.elapsed_s, 3),
                "deadline_s": request.profile.deadline_s,
            },
            "peaks": self.peaks(),
            "network": self._network(),
            "outside_writes": None if outside is None else list(outside),
            "findings": [finding.document() for finding in self.findings],
            "problems": [problem.message for problem in verdict.problems],
            "exit_status": sandbox.facts.exit_code,
            "predictions_sha256": None if predictions is None else sha256_hex(predictions),
            "repeat": request.repeat,
            "repeats_agree": executed.repeats_agree,
            "differing_clips": list(executed.differing or ()),
            "score": None if self.card is None else self.card.as_document(),
            "unscored": self.unscored,
            "log": sandbox.log.decode("utf-8", "backslashreplace"),
        }

    def peaks(self) -> dict[str, dict[str, int | None]]:
        """Return each measured peak beside its limit."""
        profile, sandbox = self.prepared.request.profile, self.executed.first.sandbox
        usage, output = sandbox.usage, sum(map(len, sandbox.files.values()))
        return {
            "memory_bytes": {"peak": usage.memory_bytes, "limit": profile.memory_bytes},
            "processes": {"peak": usage.processes, "limit": profile.pids},
            "tmp_bytes": {"peak": self.watched.tmp_bytes, "limit": profile.tmp_bytes},
            "shm_bytes": {"peak": self.watched.shm_bytes, "limit": profile.shm_bytes},
            "output_bytes": {"peak": output, "limit": profile.output_bytes},
        }

    def _network(self) -> dict[str, object]:
        counted = self.watched.network
        return {
            "attempts": None if counted is None else counted.total,
            "unmeasured": self.watched.unseen,
        }
