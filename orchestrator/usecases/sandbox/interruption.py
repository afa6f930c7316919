"""Turn the signals that end a program into an error, so that every `finally` runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from manifests.errors import PisteError

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(PisteError):  # noqa: N818
    """Somebody or something asked the program to end; a run in progress is refunded.

    It is no PlatformFault, so that code which turns those into facts lets it through.
    """

    exit_code = 4


def _raise_interrupted(number: int, _frame: FrameType | None) -> NoReturn:
    name = signal.Signals(number).name
    raise Interrupted(f"interrupted by {name}; containers and volumes of the run are removed")


def _in_main_thread() -> bool:
    """Only the main thread may set handlers, and only it receives signals."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _handlers(handler: signal.Handlers | object) -> Iterator[None]:
    if not _in_main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        signal.signal(number, handler)  # type: ignore[arg-type] # a handler or a constant
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@contextmanager
def termination_as_error() -> Iterator[None]:
    """Raise Interrupted where SIGINT, SIGTERM or SIGHUP arrives in this block."""
    with _handlers(_raise_interrupted):
        yield


@contextmanager
def termination_ignored() -> Iterator[None]:
    """Let a block of cleaning up end: a second Ctrl+C must not leave plaintext behind."""
    with _handlers(signal.SIG_IGN):
        yield
