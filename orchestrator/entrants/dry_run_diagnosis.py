"""Gather what the diagnosis of a dry run judges by: the run itself, the image, a second pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from manifests.errors import PlatformFault
from manifests.images import ImageIdentity
from manifests.outcomes import Diagnostic, Outcome
from orchestrator.engine.ports import ContainerEngine
from orchestrator.entrants.diagnose_run import (
    DiagnosingPass,
    OpenClips,
    find_writes,
)
from orchestrator.entrants.dry_run_input import DryRunInput
from orchestrator.entrants.dry_run_watch import Watched
from orchestrator.entrants.image_look import look_into_image
from orchestrator.entrants.rules.log_reading import LogReading
from orchestrator.entrants.rules.observations import Observation, Writes
from orchestrator.entrants.rules.writing import refused_paths
from orchestrator.runs.run_stage import StageResult
from orchestrator.support.reporter import Reporter
from sandbox_profiles.profile import SandboxProfile

_WORTH_A_SECOND_PASS: Final = frozenset(
    {Outcome.NONZERO_EXIT, Outcome.NO_PREDICTIONS, Outcome.OUTPUT_LIMIT}
)
_NOT_STARTED: Final = frozenset(
    {Diagnostic.START_REFUSED, Diagnostic.EXIT_NOT_EXECUTABLE, Diagnostic.EXIT_NOT_FOUND}
)
_SECOND_PASS_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CloserLook:
    """What is needed to look again after a failure."""

    run_id: str
    identity: ImageIdentity
    image_config: Mapping[str, Any]
    clips: OpenClips
    second_pass: bool


def observation_of(
    first: StageResult,
    exam: DryRunInput,
    profile: SandboxProfile,
    *,
    watched: Watched,
    differing: tuple[str, ...] | None,
) -> Observation:
    """Return what was seen of a dry run. `differing` are clips whose repeats differ."""
    sandbox, verdict = first.sandbox, first.verdict
    codes = verdict.diagnostics
    return Observation(
        profile=profile,
        track=exam.track,
        outcome=verdict.outcome,
        diagnostics=(*codes, Diagnostic.PREDICTIONS_DISAGREE) if differing else codes,
        exit_code=sandbox.facts.exit_code,
        engine_message=sandbox.engine_message,
        log=LogReading.of(sandbox.log),
        elapsed_s=sandbox.elapsed_s,
        memory_peak_bytes=sandbox.usage.memory_bytes,
        processes_peak=sandbox.usage.processes,
        tmp_bytes=watched.tmp_bytes,
        tmp_files=watched.tmp_files,
        tmp_names=watched.tmp_names,
        shm_bytes=watched.shm_bytes,
        network_attempts=None if watched.network is None else watched.network.total,
        files=tuple(sandbox.files),
        violation=None if sandbox.violation is None else sandbox.violation.detail,
        problems=verdict.problems,
        differing_clips=differing,
    )


def look_closer(
    seen: Observation, look: CloserLook, *, engine: ContainerEngine, reporter: Reporter
) -> Observation:
    """Look into the image of a failed run, and where it may help run the diagnosing pass.

    A failing engine ends the looking, not the dry run: its verdict stands already.
    """
    if seen.completed or seen.outcome is Outcome.PLATFORM_FAULT:
        return seen
    try:
        facts = look_into_image(
            engine, look.identity, look.image_config, run_id=look.run_id, paths=refused_paths(seen)
        )
        seen = replace(seen, image=facts)
        if not look.second_pass or not _is_worth_a_second_pass(seen):
            return seen
        reporter.note("looking where it writes: once more, with a writable root")
        writes = _second_pass(seen, look, engine)
        in_tmp = tuple(dict.fromkeys((*seen.tmp_names, *writes.in_tmp)))
        return replace(seen, outside_writes=writes.outside, tmp_names=in_tmp)
    except PlatformFault as error:
        reporter.warn(f"the diagnosis stopped early: {error}")
        return seen


def _is_worth_a_second_pass(seen: Observation) -> bool:
    started = _NOT_STARTED.isdisjoint(seen.diagnostics)
    return started and seen.outcome in _WORTH_A_SECOND_PASS


def _second_pass(seen: Observation, look: CloserLook, engine: ContainerEngine) -> Writes:
    request = DiagnosingPass(
        run_id=look.run_id,
        identity=look.identity,
        image_config=dict(look.image_config),
        profile=seen.profile,
        clips=look.clips,
        limit_s=min(float(seen.profile.deadline_s), 2 * seen.elapsed_s + _SECOND_PASS_S),
    )
    return find_writes(engine, request)
