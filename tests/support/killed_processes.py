"""Processes that die by SIGKILL in the middle of their work.

They are forked from a server that has imported the product once, and has no threads: a new
interpreter for each would cost a second.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any, NoReturn

import orchestrator.wiring.workspaces

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__, "tests.support.synthetic_ledger", "pytest"])
assert orchestrator.wiring.workspaces  # imported for the server's sake


def die(*_: object, **__: object) -> NoReturn:
    """End this process as a power failure would."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def die_before(owner: Any, name: str) -> None:
    """Let this process die when `owner.name` is called. For child processes alone."""
    setattr(owner, name, die)


def die_after(owner: Any, name: str) -> None:
    """Let this process die when `owner.name` has returned. For child processes alone."""
    real = getattr(owner, name)

    def wrapped(*arguments: object, **options: object) -> None:
        real(*arguments, **options)
        die()

    setattr(owner, name, wrapped)


def exit_code(target: Callable[..., object], *arguments: object) -> int | None:
    """Run `target` in a process of its own; return its exit code, -9 after SIGKILL."""
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    process.join()
    return process.exitcode
