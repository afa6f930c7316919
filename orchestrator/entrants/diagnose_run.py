"""The second, diagnosing pass of a dry run: on open clips, with a writable root.

It answers one question: what does the program write, and where? Its answers count for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from manifests.editions import Track
from manifests.images import ImageIdentity
from orchestrator.editions.open_clips import ExamInput, read_open_clips
from orchestrator.editions.ports import ClipFolder
from orchestrator.editions.rules.clip_archives import stream_input
from orchestrator.engine.ports import ContainerEngine, StartRefused
from orchestrator.entrants.rules.diagnosing_options import (
    TMP,
    diagnosing_options,
    program_writes,
    tmp_folder,
)
from orchestrator.entrants.rules.observations import Writes
from orchestrator.images.rules.image_config import declares_volume, neutralise
from orchestrator.sandbox.parts import PartNames, remove_parts, start_holder
from orchestrator.sandbox.rules.container_options import INPUT, EntrantSpec
from orchestrator.support.interruption import termination_ignored
from sandbox_profiles.profile import SandboxProfile

SUFFIX: Final = "8"
"""Sets the pass's containers apart from the run's own, whose repeats count from 2."""

_KILL_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class OpenClips:
    """Clips that lie open in a folder. Sealed clips cannot become one: they have no folder."""

    exam: ExamInput

    @classmethod
    def read(cls, folder: ClipFolder, *, track: Track, vocabulary: bytes | None) -> OpenClips:
        """Take a folder in the Épée layout as the exam. Raises MalformedDocument."""
        return cls(read_open_clips(folder, track=track, vocabulary=vocabulary))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosingPass:
    """What the pass runs, and how long at most."""

    run_id: str
    identity: ImageIdentity
    image_config: dict[str, Any]
    profile: SandboxProfile
    clips: OpenClips
    limit_s: float


def find_writes(engine: ContainerEngine, request: DiagnosingPass) -> Writes:
    """Run the image once more with a writable root and return what it wrote.

    Raises:
        PlatformFault: when the engine fails.

    """
    names = PartNames.of(request.run_id, SUFFIX)
    try:
        return _run(engine, names, request)
    finally:
        with termination_ignored():
            remove_parts(engine, names)


def _run(engine: ContainerEngine, names: PartNames, request: DiagnosingPass) -> Writes:
    exam = request.clips.exam
    holder = start_holder(
        engine,
        names,
        request.profile,
        run_id=request.run_id,
        platform=request.identity.platform,
        input_bytes=exam.size_bytes,
        input_files=len(exam.sums),
    )
    engine.put_archive(holder.container_id, INPUT, stream_input(exam.files()))
    tmp_in_root = not declares_volume(request.image_config, TMP)
    options = diagnosing_options(_spec(names, request), tmp_in_root=tmp_in_root)
    container = engine.create_container(names.entrant, options)
    if tmp_in_root:
        engine.put_archive(container, "/", (tmp_folder(),))
    try:
        engine.start_container(container)
    except StartRefused:
        return Writes()
    if not engine.wait_for_exit(container, request.limit_s):
        engine.kill_container(container)
        engine.wait_for_exit(container, _KILL_S)
    return program_writes(change.path for change in engine.changes(container))


def _spec(names: PartNames, request: DiagnosingPass) -> EntrantSpec:
    return EntrantSpec(
        run_id=request.run_id,
        image_id=request.identity.engine_image_id,
        platform=request.identity.platform,
        input_volume=names.input,
        output_volume=names.output,
        profile=request.profile,
        covered_volumes=neutralise(request.image_config).covered_volumes,
    )
