"""Programs that end by themselves: missing modules and files, wrong calls, signals, exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.log_reading import shown
from orchestrator.entrants.rules.observations import Observation

_MODULE: Final = re.compile(r"No module named '?([\w.]+)")
_LIBRARY: Final = re.compile(r"(\S+): cannot open shared object file|GLIBC_[\d.]+' not found")
_INPUT: Final = re.compile(
    r"No such file or directory: '(/input/[^']*)'|(/input/\S+): No such file"
)
_USAGE: Final = re.compile(
    r"^usage: |required: |Missing (?:argument|option)|too few arguments", re.IGNORECASE
)
_EXCEPTION: Final = re.compile(r"^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b")
_SIGNALS: Final = {
    4: "an instruction that this processor does not have (SIGILL)",
    6: "an abort (SIGABRT)",
    8: "an arithmetic fault (SIGFPE)",
    9: "a kill (SIGKILL)",
    11: "a memory fault (SIGSEGV)",
    15: "a request to end (SIGTERM)",
    31: "a system call that the sandbox does not allow (SIGSYS)",
}
_REMEDIES: Final = {
    4: "build libraries for x86-64 or x86-64-v2, not for the building machine",
    9: "the engine told of no memory kill; if the peak memory is near the limit, need less of it",
}


def missing_parts(seen: Observation) -> Iterator[Finding]:
    """Find modules, libraries and input files that are not there."""
    if seen.completed:
        return
    module = seen.log.find(_MODULE)
    if module is not None:
        yield Finding(
            cause=Cause.MODULE_MISSING,
            certainty=module.certainty,
            fact=f"the image has no Python module {shown(module.groups[0])}",
            remedy="install it in the Dockerfile, for the interpreter that ENTRYPOINT runs",
            details=(module.line,),
        )
    library = seen.log.find(_LIBRARY)
    if library is not None:
        yield Finding(
            cause=Cause.LIBRARY_MISSING,
            certainty=library.certainty,
            fact="a shared library is missing in the image, or too old",
            remedy="install the system package that holds it, for example libgl1 or libglib2.0-0",
            details=(library.line,),
        )
    absent = seen.log.find(_INPUT)
    if absent is not None:
        yield Finding(
            cause=Cause.INPUT_NAME,
            certainty=absent.certainty,
            fact="it reads a file that /input does not have",
            remedy=(
                "read /input/exam.json first: keypoints/<clip>.npy and annotations/<clip>.json are "
                "there for each of its clips, and nothing else"
            ),
            details=(absent.line,),
        )


def wrong_call(seen: Observation) -> Iterator[Finding]:
    """Find a program that wants arguments: it is run without any."""
    said = seen.log.find(_USAGE)
    if said is None or seen.exit_code != 2:
        return
    yield Finding(
        cause=Cause.ARGUMENTS_EXPECTED,
        certainty=said.certainty,
        fact="it expects arguments, and is run without any",
        remedy='put them into the image: CMD ["--input", "/input", "--output", "/output"]',
        details=(said.line,),
    )


def signals(seen: Observation) -> Iterator[Finding]:
    """Name the signal that ended the program."""
    code = seen.exit_code
    if Diagnostic.EXIT_ON_SIGNAL not in seen.diagnostics or code is None:
        return
    name = _SIGNALS.get(code - 128, f"signal {code - 128}")
    remedy = _REMEDIES.get(
        code - 128, "run it under faulthandler (ENV PYTHONFAULTHANDLER=1) to see where"
    )
    yield Finding(
        cause=Cause.CRASH,
        certainty=Certainty.SAID,
        fact=f"it ended by {name}",
        remedy=remedy,
        details=tuple(line for line in (seen.log.last_line(),) if line),
    )


def exceptions(seen: Observation) -> Iterator[Finding]:
    """Quote the program's last words where it failed: nothing else may fit."""
    if seen.outcome is not Outcome.NONZERO_EXIT:
        return
    said = seen.log.find(_EXCEPTION)
    last = seen.log.last_line()
    line = last if said is None else said.line
    yield Finding(
        cause=Cause.PROGRAM_ERROR,
        certainty=Certainty.POSSIBLE,
        fact=f"the program itself failed, with exit code {seen.exit_code}",
        remedy="its log above says where; end with exit code 0 once all answers are written",
        details=(line,) if line else ("it wrote nothing to its log",),
    )


def our_side(seen: Observation) -> Iterator[Finding]:
    """Say that the engine or this machine failed."""
    if seen.outcome is not Outcome.PLATFORM_FAULT:
        return
    words = seen.engine_message
    yield Finding(
        cause=Cause.OUR_SIDE,
        certainty=Certainty.PROVEN,
        fact="the engine or this machine failed, not the image; a certified run is refunded",
        remedy="see `piste doctor`, and run it again",
        details=() if words is None else (shown(words),),
    )
