"""How a run ends: one closed set of outcomes, and the fixed codes an entrant is told."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The end of a run. Only `completed` is scored; only `platform-fault` is refunded."""

    COMPLETED = "completed"
    NONZERO_EXIT = "nonzero-exit"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    NO_PREDICTIONS = "no-predictions"
    INVALID_PREDICTIONS = "invalid-predictions"
    OUTPUT_LIMIT = "output-limit"
    PLATFORM_FAULT = "platform-fault"


class Diagnostic(StrEnum):
    """A fixed code beside the outcome; it can carry nothing of a sealed clip."""

    KILLED_AT_DEADLINE = "killed-at-deadline"
    MEMORY_LIMIT = "memory-limit"
    EXIT_NOT_EXECUTABLE = "exit-not-executable"  # 126
    EXIT_NOT_FOUND = "exit-not-found"  # 127
    EXIT_ON_SIGNAL = "exit-on-signal"  # 129-159
    EXIT_FAILURE = "exit-failure"
    START_REFUSED = "start-refused"  # entrypoint missing, not executable or wrong format
    OUTPUT_EMPTY = "output-empty"
    OUTPUT_NAME = "output-name"  # a file name outside the allow-list
    OUTPUT_KIND = "output-kind"  # a link, device, pipe or directory
    OUTPUT_TOO_MANY = "output-too-many"
    OUTPUT_TOO_LARGE = "output-too-large"
    OUTPUT_FULL = "output-full"
    PREDICTIONS_MISSING = "predictions-missing"
    PREDICTIONS_FORMAT = "predictions-format"
    PREDICTIONS_INCOMPLETE = "predictions-incomplete"
    PREDICTIONS_DISAGREE = "predictions-disagree"  # between repeats; not an outcome of its own
    ENGINE_LOST = "engine-lost"
    HOLDER_LOST = "holder-lost"
    INPUT_CHANGED = "input-changed"
    CONSUMER_FAILED = "consumer-failed"  # the frozen recognizer, not the entrant
    GPU_LOST = "gpu-lost"
    GPU_UNAVAILABLE = "gpu-unavailable"
    ORCHESTRATOR_DIED = "orchestrator-died"
    INTERRUPTED = "interrupted"
    DISK_FULL = "disk-full"
    ENGINE_ERROR = "engine-error"
