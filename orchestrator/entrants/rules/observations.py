"""Everything that was seen of a dry run; what was not looked at is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from manifests.editions import Track
from manifests.outcomes import Diagnostic, Outcome
from manifests.predictions.problems import PredictionProblem
from orchestrator.entrants.rules.log_reading import LogReading
from orchestrator.entrants.rules.programs import ImageFile
from sandbox_profiles.profile import SandboxProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What was looked up in the image itself, after a failure.

    `files` maps the paths that were looked for to what is there, None for nothing. `program` is
    the path that the entrypoint resolves to, or None where no such program is on the PATH.
    """

    argv: tuple[str, ...]
    program: str | None
    files: Mapping[str, ImageFile | None]
    has_passwd_entry: bool | None = None


@dataclass(frozen=True, slots=True)
class Writes:
    """What a program wrote: `outside` where it may not, as paths, and below `/tmp`, as names."""

    outside: tuple[str, ...] = ()
    in_tmp: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One dry run, as the rules see it. Texts of the entrant's are unescaped here."""

    profile: SandboxProfile
    track: Track
    outcome: Outcome
    diagnostics: tuple[Diagnostic, ...] = ()
    exit_code: int | None = None
    engine_message: str | None = None
    log: LogReading = field(default_factory=lambda: LogReading(()))
    elapsed_s: float = 0.0
    memory_peak_bytes: int | None = None
    processes_peak: int | None = None
    tmp_bytes: int | None = None
    tmp_files: int | None = None
    tmp_names: tuple[str, ...] = ()
    shm_bytes: int | None = None
    network_attempts: int | None = None
    files: tuple[str, ...] = ()
    violation: str | None = None
    problems: tuple[PredictionProblem, ...] = ()
    outside_writes: tuple[str, ...] | None = None
    """What the diagnosing pass found, on a writable root."""
    image: ImageFacts | None = None
    has_gpu: bool = False
    differing_clips: tuple[str, ...] | None = None
    """None: it ran once."""

    @property
    def completed(self) -> bool:
        """Tell whether a certified run would be scored: what is found then is a warning."""
        return self.outcome is Outcome.COMPLETED
