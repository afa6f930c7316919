"""One probe's container: made as an entrant's, run to its end, removed with all its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from manifests.errors import PlatformFault, RefusedByPolicy
from manifests.names import ENTRANT_ID
from orchestrator.engine.ports import ContainerEngine, EngineError, VolumeSpec
from orchestrator.images.rules.image_config import neutralise
from orchestrator.sandbox.parts import (
    PartNames,
    architecture_of,
    ensure_image,
    remove_parts,
)
from orchestrator.sandbox.rules.container_options import EntrantSpec, entrant_options
from orchestrator.sandbox.rules.effective import differences
from orchestrator.sandbox.rules.elf import parse_probe_report, syscall_probe_elf
from orchestrator.sandbox.rules.probe_checks import OPEN_FOLDER, Check
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.support.interruption import termination_as_error, termination_ignored
from sandbox_profiles.profile import SandboxProfile

_TIMEOUT_S: Final = 30.0
_REPORT_BYTES: Final = 2**20
_SUFFIX: Final = "0"
"""Sets the probe's parts apart from a run's own, which have no number, and its repeats' from 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeEnd:
    """What a probe reported, call by call, and how it ended."""

    results: list[int]
    exit_code: int
    memory_killed: bool


def _create_volumes(
    engine: ContainerEngine, names: PartNames, profile: SandboxProfile, *, noswap: bool
) -> None:
    """Let everybody write to the input, as far as its mode says: only the mount forbids it."""
    for name, uid, mode in ((names.input, 0, 0o777), (names.output, ENTRANT_ID, 0o755)):
        engine.create_volume(
            VolumeSpec(
                name=name,
                size_bytes=profile.output_bytes,
                inodes=64,
                uid=uid,
                gid=uid,
                mode=mode,
                noswap=noswap,
            )
        )


def _create_probe(
    engine: ContainerEngine,
    names: PartNames,
    profile: SandboxProfile,
    *,
    run_id: str,
    platform: str,
    checks: tuple[Check, ...],
) -> str:
    architecture = architecture_of(platform)
    program = syscall_probe_elf(architecture, [call for check in checks for call in check.calls])
    image = tiny_image(
        {"probe": program},
        entrypoint=("/probe",),
        architecture=architecture,
        open_folders=(OPEN_FOLDER,),
    )
    options = entrant_options(
        EntrantSpec(
            run_id=run_id,
            image_id=ensure_image(engine, image),
            platform=image.platform,
            input_volume=names.input,
            output_volume=names.output,
            profile=profile,
        )
    )
    container = engine.create_container(names.entrant, options)
    inspected = engine.inspect_container(container) or {}
    found = differences(options, neutralise({"Entrypoint": ["/probe"]}), inspected)
    if found:
        raise RefusedByPolicy(
            f"this engine does not make the container that the profile {profile.name} asks for: "
            + "; ".join(found)
        )
    return container


def _run_probe(
    engine: ContainerEngine,
    names: PartNames,
    profile: SandboxProfile,
    *,
    run_id: str,
    platform: str,
    checks: tuple[Check, ...],
) -> ProbeEnd:
    """Start the probe and wait for its end."""
    for noswap in (True, False):
        _create_volumes(engine, names, profile, noswap=noswap)
        container = _create_probe(
            engine, names, profile, run_id=run_id, platform=platform, checks=checks
        )
        try:
            engine.start_container(container)
        except EngineError as error:
            if not noswap or "invalid argument" not in error.engine_message:
                raise
            remove_parts(engine, names)
            continue
        break
    if not engine.wait_for_exit(container, _TIMEOUT_S):
        raise PlatformFault("the sandbox's probe did not end; see `piste doctor`")
    inspected = engine.inspect_container(container) or {}
    return ProbeEnd(
        results=parse_probe_report(engine.read_log(container, _REPORT_BYTES)),
        exit_code=int(inspected.get("State", {}).get("ExitCode", 0)),
        memory_killed=engine.saw_oom(container),
    )


def run_probe(
    engine: ContainerEngine,
    profile: SandboxProfile,
    checks: tuple[Check, ...],
    *,
    run_id: str,
    platform: str,
) -> ProbeEnd:
    """Make the checks' calls in one container, and remove its parts whatever happens.

    Raises:
        RefusedByPolicy: when the engine made another container than was asked for.
        PlatformFault: when the engine does not start or end it.

    """
    names = PartNames.of(run_id, _SUFFIX)
    with termination_as_error():
        try:
            return _run_probe(
                engine, names, profile, run_id=run_id, platform=platform, checks=checks
            )
        finally:
            with termination_ignored():
                remove_parts(engine, names)
