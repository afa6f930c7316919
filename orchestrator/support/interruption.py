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


class _Arrived(KeyboardInterrupt):
    """What a handler raises: unlike an Exception, no library's catch-all takes it for its own."""


_arrived: list[str] = []
"""Signals that came in the present block, by name; a process has one set of handlers."""


def _raise_arrived(number: int, _frame: FrameType | None) -> NoReturn:
    _arrived.append(signal.Signals(number).name)
    raise _Arrived


def raise_if_interrupted() -> None:
    """Raise what came before and went nowhere: Python drops an exception in a finalizer.

    Whatever waits long in a block of `termination_as_error` asks now and then.
    """
    if _arrived:
        raise _Arrived


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
    """Raise Interrupted from this block where SIGINT, SIGTERM or SIGHUP arrives in it.

    Inside the block it is a KeyboardInterrupt.
    """
    outermost = signal.getsignal(signal.SIGINT) is not _raise_arrived
    try:
        with _handlers(_raise_arrived):
            yield
    except _Arrived as error:
        fact = f"interrupted by {_arrived[0]}"
        raise Interrupted(f"{fact}; containers and volumes of the run are removed") from error
    finally:
        if outermost:
            _arrived.clear()


@contextmanager
def termination_ignored() -> Iterator[None]:
    """Let a block of cleaning up end: a second Ctrl+C must not leave plaintext behind."""
    with _handlers(signal.SIG_IGN):
        yield
