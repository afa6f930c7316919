"""Run the command line: the one place where errors become exit codes."""

from __future__ import annotations

import atexit
import gc
import json
import signal
import sys
from types import FrameType

from manifests.errors import PisteError
from orchestrator.cli.app import app
from orchestrator.cli.commands import load_commands

EXIT_INTERRUPTED = 130
_COLLECT_AFTER = 50_000
"""New objects between two looks for garbage: what an import or a command makes has few cycles."""


class Interrupted(KeyboardInterrupt):
    """SIGTERM or SIGHUP: handled like Ctrl+C, so that everything is cleaned up."""


_INTERRUPTED = "piste: interrupted; nothing is left half done\n"


def _interrupt(signum: int, _frame: FrameType | None) -> None:
    raise Interrupted(signal.Signals(signum).name)


def _report(error: PisteError) -> None:
    if "--json" in sys.argv[1:]:
        document = {"error": {"kind": type(error).__name__, "message": str(error)}}
        sys.stdout.write(json.dumps(document | {"exit_code": error.exit_code}) + "\n")
    sys.stderr.write(f"piste: {error}\n")


def _spare_the_collector() -> None:
    """Let what the imports make, which lives to the end, be looked through less often.

    Without it the last collection alone takes a command of half a second some 0.2 s.
    """
    gc.set_threshold(_COLLECT_AFTER, 20, 50)
    atexit.register(gc.freeze)


def main() -> None:
    """Run the command line; every deliberate error ends as one line and its exit code."""
    _spare_the_collector()
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _interrupt)
    load_commands()
    try:
        app(prog_name="piste")
    except PisteError as error:
        _report(error)
        raise SystemExit(error.exit_code) from error
    except SystemExit as ended:
        if ended.code == EXIT_INTERRUPTED:  # Typer makes this of a Ctrl+C, and says nothing
            sys.stderr.write(_INTERRUPTED)
        raise
    except KeyboardInterrupt:
        sys.stderr.write(_INTERRUPTED)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
