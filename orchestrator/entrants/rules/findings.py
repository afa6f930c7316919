"""What a diagnosis says: a cause out of a closed set, how sure it is, a fact and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Cause(StrEnum):
    """Why a run failed, or may fail. Among equally certain ones, the first is the more probable."""

    WRONG_PLATFORM = "wrong-platform"
    IMAGE_TOO_LARGE = "image-too-large"
    OUT_OF_MEMORY = "out-of-memory"
    ENTRYPOINT_MISSING = "entrypoint-missing"
    ENTRYPOINT_NOT_EXECUTABLE = "entrypoint-not-executable"
    INTERPRETER_MISSING = "interpreter-missing"
    FILE_TOO_LARGE = "file-too-large"
    SHARED_MEMORY = "shared-memory"
    TMP_FULL = "tmp-full"
    OUTPUT_FULL = "output-full"
    PROCESS_LIMIT = "process-limit"
    OPEN_FILES = "open-files"
    NETWORK = "network"
    NO_PASSWD_ENTRY = "no-passwd-entry"  # noqa: S105 - a cause
    ROOT_ONLY_FILES = "root-only-files"
    GPU_ABSENT = "gpu-absent"
    HOME_OR_CACHE = "home-or-cache"
    OUTPUT_ELSEWHERE = "output-elsewhere"
    WRITES_OUTSIDE = "writes-outside"
    OUTPUT_NOT_ACCEPTED = "output-not-accepted"
    INPUT_NAME = "input-name"
    MODULE_MISSING = "module-missing"
    LIBRARY_MISSING = "library-missing"
    ARGUMENTS_EXPECTED = "arguments-expected"
    DEADLINE = "deadline"
    INVALID_PREDICTIONS = "invalid-predictions"
    INCOMPLETE_PREDICTIONS = "incomplete-predictions"
    NO_OUTPUT = "no-output"
    NON_DETERMINISTIC = "non-deterministic"
    CRASH = "crash"
    PROGRAM_ERROR = "program-error"
    OUR_SIDE = "our-side"


class Certainty(IntEnum):
    """What a finding rests on; the higher one is shown first."""

    POSSIBLE = 1
    """It fits, and nothing speaks for it in particular."""
    SAID = 2
    """The log says it somewhere, or a counter does."""
    LAST_WORDS = 3
    """The program's last words say it."""
    PROVEN = 4
    """The engine, the kernel or the collected output shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause. All texts are safe to show."""

    cause: Cause
    certainty: Certainty
    fact: str
    remedy: str
    details: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """Return the finding as JSON shows it."""
        return {
            "cause": self.cause.value,
            "certainty": self.certainty.name.lower().replace("_", "-"),
            "fact": self.fact,
            "remedy": self.remedy,
            "details": list(self.details),
        }
