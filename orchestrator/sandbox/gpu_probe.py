"""Ask `nvidia-smi` inside a container which GPUs a run would see: lists of the host lie."""

from __future__ import annotations

from typing import Any, Final

from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.names import container_name
from manifests.text import escape_untrusted
from orchestrator.engine.ports import ContainerEngine, StartRefused
from orchestrator.sandbox.rules.container_options import EntrantSpec, entrant_options
from orchestrator.sandbox.rules.gpu import (
    QUERY_COMMAND,
    GpuFacts,
    is_gpu_error,
    parse_nvidia_smi,
)
from orchestrator.support.interruption import termination_ignored

_PART: Final = "gpu"
_TIMEOUT_S: Final = 60.0
_ANSWER_BYTES: Final = 64 * 1024


class GpuUnavailable(RefusedByPolicy):
    """The engine gives a container no GPU; never is a CPU used instead."""


def gpu_probe_options(spec: EntrantSpec) -> dict[str, Any]:
    """Return an entrant's options with `nvidia-smi` as the program and without the clips."""
    options = entrant_options(spec)
    host = {**options["HostConfig"], "Mounts": []}
    program, *arguments = QUERY_COMMAND
    return {**options, "Entrypoint": [program], "Cmd": arguments, "HostConfig": host}


def _answer(engine: ContainerEngine, container: str) -> str:
    try:
        engine.start_container(container)
    except StartRefused as error:
        if not is_gpu_error(error.engine_message):
            raise
        words = escape_untrusted(" ".join(error.engine_message.split()), 200)
        raise GpuUnavailable(
            f"the engine gives a container no GPU: {words}; install the vendor's container "
            "toolkit, see `piste doctor`; nothing was spent"
        ) from error
    if not engine.wait_for_exit(container, _TIMEOUT_S):
        raise PlatformFault(f"nvidia-smi did not end within {_TIMEOUT_S:.0f} s; restart the driver")
    answer = engine.read_log(container, _ANSWER_BYTES).decode("utf-8", "replace")
    inspected = engine.inspect_container(container) or {"State": {"ExitCode": 1}}
    code = inspected["State"]["ExitCode"]
    if code != 0:
        raise GpuUnavailable(
            f"nvidia-smi ended with {code} inside a container: {escape_untrusted(answer, 200)}; "
            "see `piste doctor`; nothing was spent"
        )
    return answer


def probe_gpus(engine: ContainerEngine, spec: EntrantSpec) -> tuple[GpuFacts, ...]:
    """Return the GPUs that a container of `spec.image_id`, a helper image with a libc, sees.

    Raises:
        GpuUnavailable: when the container gets none.
        PlatformFault: when the probe itself fails.

    """
    name = container_name(spec.run_id, _PART)
    try:
        container = engine.create_container(name, gpu_probe_options(spec))
        try:
            found = parse_nvidia_smi(_answer(engine, container))
        except MalformedDocument as error:
            raise PlatformFault(f"{error}; see `piste doctor`") from error
    finally:
        with termination_ignored():
            engine.remove_container(name)
    if not found:
        raise GpuUnavailable("nvidia-smi lists no GPU inside a container; nothing was spent")
    return found
