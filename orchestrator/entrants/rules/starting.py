"""Programs that do not start: missing, not executable, for another processor, no interpreter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from manifests.names import ENTRANT_ID
from manifests.outcomes import Diagnostic
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.log_reading import shown
from orchestrator.entrants.rules.observations import ImageFacts, Observation
from orchestrator.entrants.rules.programs import FileKind, ImageFile, Program, read_program

_EXECUTE: Final = 1
_NOT_STARTED: Final = frozenset(
    {Diagnostic.START_REFUSED, Diagnostic.EXIT_NOT_EXECUTABLE, Diagnostic.EXIT_NOT_FOUND}
)
_SCRIPT_MISSING: Final = re.compile(
    r"can't open file '?\"?([^'\":]+)|Cannot find module '([^']+)'|Can't open perl script"
    r"|: 0: (?:cannot|Can't) open (\S+)|: (\S+): No such file or directory$"
)
_COMMAND_MISSING: Final = re.compile(r"(\S+): (?:command )?not found")
_BAD_INTERPRETER: Final = re.compile(r"bad interpreter|/usr/bin/env: .*No such file", re.IGNORECASE)
_ARGV: Final = "ENTRYPOINT and CMD together are "


def starting(seen: Observation) -> Iterator[Finding]:
    """Find out why the image's program did not start."""
    if _NOT_STARTED.isdisjoint(seen.diagnostics):
        yield from _script_that_is_missing(seen)
        return
    image = seen.image
    if image is None:
        yield _of_the_exit_code(seen)
        return
    if not _blames_the_entrypoint(seen, image):
        yield _of_the_exit_code(seen)
        return
    yield _of_the_image(seen, image)


def _blames_the_entrypoint(seen: Observation, image: ImageFacts) -> bool:
    """Tell whether the entrypoint itself cannot start, and no program that it calls."""
    file = _file(image, image.program)
    if file is None or not file.permits(_EXECUTE, user_id=ENTRANT_ID):
        return True
    if Diagnostic.START_REFUSED in seen.diagnostics or file.kind is not FileKind.FILE:
        return True
    program = read_program(file.head)
    return program is None or _lacks_interpreter(image, program) or not seen.log.lines


def _of_the_image(seen: Observation, image: ImageFacts) -> Finding:
    argv = (_ARGV + shown(" ".join(image.argv)),)
    name = shown(image.argv[0]) if image.argv else "nothing"
    file = _file(image, image.program)
    if file is None:
        return _finding(
            Cause.ENTRYPOINT_MISSING,
            f"the image has no program {name}",
            "correct ENTRYPOINT or COPY in the Dockerfile; a relative name needs a PATH",
            argv,
        )
    program = read_program(file.head)
    if program is not None and _lacks_interpreter(image, program):
        return _interpreter(name, program)
    if file.kind is FileKind.DIRECTORY or not file.permits(_EXECUTE, user_id=ENTRANT_ID):
        kind = "a folder" if file.kind is FileKind.DIRECTORY else f"mode {file.mode & 0o7777:04o}"
        return _finding(
            Cause.ENTRYPOINT_NOT_EXECUTABLE,
            f"user {ENTRANT_ID} may not execute {name} ({kind})",
            f"add to the Dockerfile: RUN chmod 0755 {name}",
            argv,
        )
    return _format(seen, name, program)


def _format(seen: Observation, name: str, program: Program | None) -> Finding:
    if program is None:
        return _finding(
            Cause.INTERPRETER_MISSING,
            f"{name} is neither a program nor begins with #! and an interpreter",
            "begin it with, for example, #!/usr/bin/env python3, or name the interpreter in "
            "ENTRYPOINT",
        )
    words = seen.engine_message or seen.log.last_line() or "no reason was given"
    return _finding(
        Cause.WRONG_PLATFORM,
        f"{name} cannot be executed here; it is made for {program.machine}",
        "build the image for this platform: docker build --platform linux/amd64 …",
        (shown(words),),
    )


def _interpreter(name: str, program: Program) -> Finding:
    interpreter = shown(program.interpreter or "nothing")
    if program.has_carriage_return:
        return _finding(
            Cause.INTERPRETER_MISSING,
            f"the first line of {name} ends as on Windows, so its interpreter is not found",
            "store the script with Unix line ends (dos2unix, or .gitattributes with eol=lf)",
            (f"#!{interpreter}\\r",),
        )
    what = "the first line of" if program.is_script else "the program"
    return _finding(
        Cause.INTERPRETER_MISSING,
        f"{what} {name} needs {interpreter}, which the image does not have",
        "install it in the image, or build the program statically"
        if not program.is_script
        else "install it in the image, or correct the script's first line",
    )


def _lacks_interpreter(image: ImageFacts, program: Program) -> bool:
    wanted = program.interpreter
    return wanted is not None and (
        program.has_carriage_return or (wanted in image.files and image.files[wanted] is None)
    )


def _file(image: ImageFacts, path: str | None) -> ImageFile | None:
    return None if path is None else image.files.get(path)


def _of_the_exit_code(seen: Observation) -> Finding:
    """Judge a 126 or 127 of a program that did start: it called another one."""
    said = seen.log.find(_BAD_INTERPRETER)
    if said is not None:
        fact, remedy = "a script's interpreter is not in the image", "install it in the image"
        return _finding(Cause.INTERPRETER_MISSING, fact, remedy, (said.line,))
    said = seen.log.find(_COMMAND_MISSING)
    details = tuple(line for line in (seen.log.last_line(),) if line)
    if Diagnostic.EXIT_NOT_EXECUTABLE in seen.diagnostics:
        fact = "a program that it calls is not executable (exit code 126)"
        return _finding(
            Cause.ENTRYPOINT_NOT_EXECUTABLE, fact, "chmod it in the Dockerfile", details
        )
    command = f"{shown(said.groups[0])}, " if said is not None else "a program "
    fact = f"{command}which it calls, is not in the image (exit code 127)"
    return _finding(Cause.ENTRYPOINT_MISSING, fact, "install it in the image", details)


def _script_that_is_missing(seen: Observation) -> Iterator[Finding]:
    """Find an interpreter that started and did not find its script."""
    said = seen.log.find(_SCRIPT_MISSING)
    if said is None or seen.completed or len(seen.log.lines) > 3:
        return
    script = next((group for group in said.groups if group), "its script")
    yield Finding(
        cause=Cause.ENTRYPOINT_MISSING,
        certainty=said.certainty,
        fact=f"the entrypoint names {shown(script)}, which the image does not have",
        remedy="correct COPY, WORKDIR or ENTRYPOINT in the Dockerfile; use absolute paths",
        details=(said.line,),
    )


def _finding(cause: Cause, fact: str, remedy: str, details: tuple[str, ...] = ()) -> Finding:
    return Finding(
        cause=cause, certainty=Certainty.PROVEN, fact=fact, remedy=remedy, details=details
    )
