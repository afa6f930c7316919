"""Judge how a run ended (design, section 3): one outcome, and fixed codes beside it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.sandbox.rules.collector import CollectedFiles, OutputViolation
from orchestrator.sandbox.rules.gpu import is_gpu_error

PREDICTIONS_FILE: Final = "predictions.jsonl"

_ENTRANT_START_ERRORS: Final = (
    "executable file not found",
    "no such file or directory",
    "permission denied",
    "exec format error",
    "is a directory",
    "not a directory",
)
_PAGE_BYTES: Final = 4096


class StartFailure(StrEnum):
    """Whose fault it is that a container did not start."""

    ENTRANT = "entrant"
    GPU = "gpu"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFacts:
    """What was seen of one execution. `exit_code` is None when none was learnt."""

    start_failure: StartFailure | None = None
    deadline_fired: bool = False
    out_of_memory: bool = False
    engine_lost: bool = False
    engine_error: bool = False
    holder_lost: bool = False
    input_changed: bool = False
    gpu_lost: bool = False
    exit_code: int | None = None
    output: CollectedFiles | OutputViolation | None = None
    output_limit_bytes: int | None = None


def start_failure(engine_message: str) -> StartFailure:
    """Tell from the engine's own words whose fault a refused start is.

    Only a start of the container's process that fails is the entrant's; mounts, limits and devices
    are ours.
    """
    lowered = engine_message.lower()
    if is_gpu_error(lowered):
        return StartFailure.GPU
    process = "exec:" in lowered or "starting container process" in lowered
    if process and any(error in lowered for error in _ENTRANT_START_ERRORS):
        mounting = "mount" in lowered or "rootfs" in lowered
        return StartFailure.ENGINE if mounting else StartFailure.ENTRANT
    return StartFailure.ENGINE


def _exit_diagnostic(code: int | None) -> Diagnostic:
    if code == 126:
        return Diagnostic.EXIT_NOT_EXECUTABLE
    if code == 127:
        return Diagnostic.EXIT_NOT_FOUND
    if code is not None and 129 <= code <= 159:
        return Diagnostic.EXIT_ON_SIGNAL
    return Diagnostic.EXIT_FAILURE


def _platform_diagnostics(facts: ExecutionFacts) -> tuple[Diagnostic, ...]:
    unexplained = facts.exit_code is None and facts.start_failure is None and not facts.engine_lost
    refused = facts.engine_error or facts.start_failure is StartFailure.ENGINE
    signs = {
        Diagnostic.ENGINE_LOST: facts.engine_lost,
        Diagnostic.HOLDER_LOST: facts.holder_lost,
        Diagnostic.INPUT_CHANGED: facts.input_changed,
        Diagnostic.GPU_LOST: facts.gpu_lost,
        Diagnostic.GPU_UNAVAILABLE: facts.start_failure is StartFailure.GPU,
        Diagnostic.ENGINE_ERROR: refused or unexplained,
    }
    return tuple(code for code, seen in signs.items() if seen)


def _is_full(facts: ExecutionFacts) -> bool:
    """Tell whether `/output` had no page left."""
    if not isinstance(facts.output, CollectedFiles) or facts.output_limit_bytes is None:
        return False
    pages = sum(-(-len(data) // _PAGE_BYTES) for data in facts.output.files.values())
    return (pages + 1) * _PAGE_BYTES > facts.output_limit_bytes


def _output_diagnostics(facts: ExecutionFacts) -> tuple[Diagnostic, ...]:
    if isinstance(facts.output, OutputViolation):
        return (facts.output.diagnostic,)
    full = (Diagnostic.OUTPUT_FULL,) if _is_full(facts) else ()
    if facts.output is None or not facts.output.files:
        return (Diagnostic.OUTPUT_EMPTY, *full)
    if PREDICTIONS_FILE not in facts.output.files:
        return (Diagnostic.PREDICTIONS_MISSING, *full)
    return full


def _output_outcome(facts: ExecutionFacts) -> Outcome:
    if isinstance(facts.output, OutputViolation):
        return Outcome.OUTPUT_LIMIT
    if facts.output is None or PREDICTIONS_FILE not in facts.output.files:
        return Outcome.NO_PREDICTIONS
    return Outcome.COMPLETED


def judge(facts: ExecutionFacts) -> tuple[Outcome, tuple[Diagnostic, ...]]:
    """Return the outcome and its codes.

    In this order: our deadline, out of memory (also with exit code 0), platform lost, exit code,
    output. `completed` still awaits the validation of the predictions.
    """
    platform, output = _platform_diagnostics(facts), _output_diagnostics(facts)
    seen = () if facts.output is None else output
    if facts.deadline_fired:
        return Outcome.TIMED_OUT, (Diagnostic.KILLED_AT_DEADLINE, *platform, *seen)
    if facts.out_of_memory:
        return Outcome.OUT_OF_MEMORY, (Diagnostic.MEMORY_LIMIT, *platform, *seen)
    if platform:
        return Outcome.PLATFORM_FAULT, platform
    if facts.start_failure is StartFailure.ENTRANT:
        return Outcome.NONZERO_EXIT, (Diagnostic.START_REFUSED,)
    if facts.exit_code != 0:
        return Outcome.NONZERO_EXIT, (_exit_diagnostic(facts.exit_code), *seen)
    return _output_outcome(facts), output
