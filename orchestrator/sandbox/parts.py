"""The parts of one sandbox at the engine: two memory volumes, the holder, the entrant's container.

All are named after the run, so that whoever knows the run from the ledger finds them again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from manifests.errors import PlatformFault, RefusedByPolicy
from manifests.names import ENTRANT_ID, container_name
from orchestrator.engine.ports import ContainerEngine, StartRefused, VolumeSpec
from orchestrator.sandbox.rules.collector import hash_tree
from orchestrator.sandbox.rules.container_options import INPUT, HolderSpec, holder_options
from orchestrator.sandbox.rules.elf import Architecture, pause_elf
from orchestrator.sandbox.rules.tiny_image import TinyImage, tiny_image
from orchestrator.support.reporter import SilentReporter
from orchestrator.support.tar.tar_stream import TarError
from sandbox_profiles.profile import SandboxProfile

_PREFIX: Final = "piste-"
_NAME: Final = re.compile(r"piste-([0-9a-f]{16})-[a-z]+[0-9]*")
_PAGE_BYTES: Final = 4096
_INPUT_MODE: Final = 0o755
_OUTPUT_MODE: Final = 0o700


@dataclass(frozen=True, slots=True, kw_only=True)
class PartNames:
    """What a run's parts are called."""

    entrant: str
    holder: str
    input: str
    output: str

    @classmethod
    def of(cls, run_id: str, suffix: str) -> PartNames:
        """Name the parts of a run; `suffix` is empty, or the number of a repeat."""
        return cls(
            **{
                part: container_name(run_id, part + suffix)
                for part in ("entrant", "holder", "input", "output")
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A running holder: its container, since when it runs, whether its memory stays off swap."""

    container_id: str
    started_at: str
    noswap: bool


def architecture_of(platform: str) -> Architecture:
    """Return the processor of a platform as `linux/amd64`.

    Raises:
        RefusedByPolicy: for one that the sandbox's own parts are not built for.

    """
    for architecture in Architecture:
        if platform.split("/")[1:2] == [architecture.oci]:
            return architecture
    names = ", ".join(f"linux/{architecture.oci}" for architecture in Architecture)
    raise RefusedByPolicy(f"the platform {platform} is not one of {names}")


def holder_image(architecture: Architecture) -> TinyImage:
    """Return the image of the holder: a program that sleeps."""
    files = {"pause": pause_elf(architecture)}
    return tiny_image(files, entrypoint=("/pause",), architecture=architecture)


def ensure_image(engine: ContainerEngine, image: TinyImage) -> str:
    """Load one of our own images where it is not there yet; return its full id at this engine."""
    if engine.inspect_image(image.image_id) is not None:
        return image.image_id
    loaded = engine.load_archive((image.archive,), len(image.archive), SilentReporter())
    if engine.inspect_image(image.image_id) is not None:
        return image.image_id
    if len(loaded) == 1 and engine.inspect_image(loaded[0]) is not None:
        return loaded[0]
    raise PlatformFault("the engine did not keep an image that it loaded; see `piste doctor`")


def _volumes(
    names: PartNames, profile: SandboxProfile, *, input_bytes: int, input_files: int, noswap: bool
) -> tuple[VolumeSpec, VolumeSpec]:
    """Size the volumes: each file takes whole pages, and an inode as each folder does."""
    room = input_bytes + input_files * _PAGE_BYTES + profile.input_headroom_bytes
    provided = VolumeSpec(
        name=names.input,
        size_bytes=room,
        inodes=2 * input_files + 1024,
        uid=0,
        gid=0,
        mode=_INPUT_MODE,
        noswap=noswap,
    )
    collected = VolumeSpec(
        name=names.output,
        size_bytes=profile.output_bytes,
        inodes=profile.output_inodes,
        uid=ENTRANT_ID,
        gid=ENTRANT_ID,
        mode=_OUTPUT_MODE,
        noswap=noswap,
    )
    return provided, collected


def start_holder(
    engine: ContainerEngine,
    names: PartNames,
    profile: SandboxProfile,
    *,
    run_id: str,
    platform: str,
    input_bytes: int,
    input_files: int,
) -> Holder:
    """Create the volumes and start the holder, without swap where the kernel can (Linux 6.4)."""
    architecture = architecture_of(platform)
    spec = HolderSpec(
        run_id=run_id,
        image_id=ensure_image(engine, holder_image(architecture)),
        platform=f"linux/{architecture.oci}",
        input_volume=names.input,
        output_volume=names.output,
        seccomp=profile.seccomp(),
    )
    for noswap in (True, False):
        for volume in _volumes(
            names, profile, input_bytes=input_bytes, input_files=input_files, noswap=noswap
        ):
            engine.create_volume(volume)
        container = engine.create_container(names.holder, holder_options(spec))
        try:
            engine.start_container(container)
        except StartRefused as error:
            if not noswap or "invalid argument" not in error.engine_message:
                raise
            remove_parts(engine, names)
            continue
        break
    return Holder(container_id=container, started_at=_started_at(engine, container), noswap=noswap)


def _state(engine: ContainerEngine, container: str) -> Mapping[str, object]:
    inspected = engine.inspect_container(container)
    return {} if inspected is None else dict(inspected["State"])


def _started_at(engine: ContainerEngine, container: str) -> str:
    return str(_state(engine, container).get("StartedAt", ""))


def holder_is_alive(engine: ContainerEngine, holder: Holder) -> bool:
    """Tell whether the holder ran all the time: an engine that restarted has killed it."""
    state = _state(engine, holder.container_id)
    return bool(state.get("Running")) and state.get("StartedAt") == holder.started_at


def input_has_changed(engine: ContainerEngine, holder: str, sums: Mapping[str, str]) -> bool:
    """Read the input back from the volume; tell whether it is exactly the files of `sums`.

    `sums` is name → SHA-256.
    """
    wanted = {name.encode(): digest for name, digest in sums.items()}
    try:
        return hash_tree(engine.get_archive(holder, INPUT), b"input") != wanted
    except TarError:
        return True


def _remove_container(engine: ContainerEngine, name: str) -> bool:
    try:
        engine.remove_container(name)
    except PlatformFault:
        return False
    return True


def _remove_volume(engine: ContainerEngine, name: str) -> bool:
    try:
        engine.remove_volume(name)
    except PlatformFault:
        return False
    return True


def remove_parts(engine: ContainerEngine, names: PartNames) -> tuple[str, ...]:
    """Remove a run's parts, the entrant first; return the names of what could not be removed."""
    removed = {name: _remove_container(engine, name) for name in (names.entrant, names.holder)}
    removed |= {name: _remove_volume(engine, name) for name in (names.input, names.output)}
    return tuple(name for name, gone in removed.items() if not gone)


def remove_leftovers(engine: ContainerEngine, run_id: str) -> tuple[str, ...]:
    """Remove everything at the engine that is named after a run; return what remains.

    Call it only for runs of the own ledger. Raises EngineUnavailable when no engine answers.
    """
    prefix = container_name(run_id, "")
    for name in engine.list_containers(prefix):
        _remove_container(engine, name)
    for name in engine.list_volumes(prefix):
        _remove_volume(engine, name)
    return (*engine.list_containers(prefix), *engine.list_volumes(prefix))


def list_leftovers(engine: ContainerEngine) -> dict[str, tuple[str, ...]]:
    """Return run id → names of its containers and volumes at the engine.

    Other workspaces' runs are among them: what may be removed, the ledger says.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in (*engine.list_containers(_PREFIX), *engine.list_volumes(_PREFIX)):
        match = _NAME.fullmatch(name)
        if match is not None:
            found[match[1]] = (*found.get(match[1], ()), name)
    return found
