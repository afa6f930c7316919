"""Run the command line: the one place where errors become exit codes."""

from __future__ import annotations

import json
import signal
import sys
from types import FrameType

from manifests.errors import PisteError
from orchestrator.cli.app import app
from orchestrator.cli.commands import load_commands

EXIT_INTERRUPTED = 130


class Interrupted(KeyboardInterrupt):
    """SIGTERM or SIGHUP: handled like Ctrl+C, so that everything is cleaned up."""


def _interrupt(signum: int, _frame: FrameType | None) -> None:
    raise Interrupted(signal.Signals(signum).name)


def _report(error: PisteError) -> None:
    if "--json" in sys.argv[1:]:
        document = {"error": {"kind": type(error).__name__, "message": str(error)}}
        sys.stdout.write(json.dumps(document | {"exit_code": error.exit_code}) + "\n")
    sys.stderr.write(f"piste: {error}\n")


def main() -> None:
    """Run the command line; every deliberate error ends as one line and its exit code."""
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _interrupt)
    load_commands()
    try:
        app()
    except PisteError as error:
        _report(error)
        raise SystemExit(error.exit_code) from error
    except KeyboardInterrupt:
        sys.stderr.write("piste: interrupted; cleaned up\n")
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
