"""Gather what the diagnosis of a dry run judges by: the run itself, the image, a second pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

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
from orchestrator.entrants.rules.observations import Observation
from orchestrator.entrants.rules.writing import refused_paths
from orchestrator.runs.execute_run import ExecutedRun
from orchestrator.runs.prepare_run import PreparedRun
from orchestrator.support.reporter import Reporter

_WORTH_A_SECOND_PASS: Final = frozenset(
    {Outcome.NONZERO_EXIT, Outcome.NO_PREDICTIONS, Outcome.OUTPUT_LIMIT}
)
_NOT_STARTED: Final = frozenset(
    {Diagnostic.START_REFUSED, Diagnostic.EXIT_NOT_EXECUTABLE, Diagnostic.EXIT_NOT_FOUND}
)
_SECOND_PASS_S: Final = 30.0


def observation_of(
    prepared: PreparedRun, executed: ExecutedRun, exam: DryRunInput, watched: Watched
) -> Observation:
    """Return what was seen of a dry run."""
    sandbox, verdict = executed.first.sandbox, executed.verdict
    return Observation(
        profile=prepared.request.profile,
        track=exam.track,
        outcome=verdict.outcome,
        diagnostics=verdict.diagnostics,
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
        differing_clips=executed.differing,
        has_gpu=prepared.gpu is not None,
    )


def look_closer(
    seen: Observation,
    prepared: PreparedRun,
    identity: ImageIdentity,
    *,
    clips: OpenClips,
    engine: ContainerEngine,
    reporter: Reporter,
    second_pass: bool,
) -> Observation:
    """Look into the image of a failed run, and where it may help run the diagnosing pass.

    A failing engine ends the looking, not the dry run: its verdict stands already.
    """
    if seen.completed or seen.outcome is Outcome.PLATFORM_FAULT:
        return seen
    run_id, settings = prepared.run_id, prepared.image.settings
    try:
        paths = refused_paths(seen)
        facts = look_into_image(engine, identity, settings, run_id=run_id, paths=paths)
        seen = replace(seen, image=facts)
        if not second_pass or not _is_worth_a_second_pass(seen):
            return seen
        reporter.note("looking where it writes: once more, with a writable root")
        writes = find_writes(
            engine,
            DiagnosingPass(
                run_id=run_id,
                identity=identity,
                image_config=dict(settings),
                profile=seen.profile,
                clips=clips,
                limit_s=min(float(seen.profile.deadline_s), 2 * seen.elapsed_s + _SECOND_PASS_S),
            ),
        )
        in_tmp = tuple(dict.fromkeys((*seen.tmp_names, *writes.in_tmp)))
        return replace(seen, outside_writes=writes.outside, tmp_names=in_tmp)
    except PlatformFault as error:
        reporter.warn(f"the diagnosis stopped early: {error}")
        return seen


def _is_worth_a_second_pass(seen: Observation) -> bool:
    started = _NOT_STARTED.isdisjoint(seen.diagnostics)
    return started and seen.outcome in _WORTH_A_SECOND_PASS
