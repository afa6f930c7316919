"""Tell a person what is going on, without knowing how it is shown."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Step(StrEnum):
    """The steps of a run's life, in order (design, section 3)."""

    LOAD = "load the edition"
    SELF_TEST = "test the sandbox"
    PULL = "bring in the image"
    RESOLVE = "identify the image"
    RESERVE = "reserve the run"
    CREATE = "create the containers"
    PROVIDE = "decrypt the clips into memory"
    AUDIT = "compare the effective configuration"
    START = "record the start"
    RUN = "run"
    CLASSIFY = "judge the outcome"
    COLLECT = "collect the output"
    VALIDATE = "validate the predictions"
    KEEP = "keep the predictions"
    RECHECK = "check inputs, engine and GPU again"
    FINISH = "record the end"
    REMOVE_IMAGE = "remove the image"
    SCORE = "score the predictions"
    EVIDENCE = "write the evidence"
    SEAL = "seal"
    REVEAL = "open what was sealed, and compare it with what was committed"


class Reporter(Protocol):
    """Receives what happens. A test may also stop the world at a step."""

    def step(self, step: Step) -> None:
        """Say that `step` begins, and that everything before it is done."""

    def progress(self, step: Step, done: float, total: float | None, unit: str) -> None:
        """Say that `done` of `total` (None: unknown) `unit` (`bytes`, `clips`, `s`) are done."""

    def note(self, text: str) -> None:
        """Say something worth reading."""

    def warn(self, text: str) -> None:
        """Say something to act on."""


class SilentReporter:
    """Shows nothing: the null default."""

    def step(self, step: Step) -> None:
        """Ignore the step."""

    def progress(self, step: Step, done: float, total: float | None, unit: str) -> None:
        """Ignore the progress."""

    def note(self, text: str) -> None:
        """Ignore the note."""

    def warn(self, text: str) -> None:
        """Ignore the warning."""
