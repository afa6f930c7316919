"""A signal ends a block as one of our errors, whatever library it meets on its way."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from orchestrator.support.interruption import (
    Interrupted,
    raise_if_interrupted,
    termination_as_error,
    termination_ignored,
)

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


class _Finalized:
    """Its finalizer is at work when the signal comes, as a connection's may be."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


def swallow_within_a_block(number: signal.Signals) -> None:
    with termination_as_error():
        with suppress(Exception):
            signal.raise_signal(number)
        pytest.fail("it went on")


def drop_within_a_block(number: signal.Signals) -> None:
    with termination_as_error():
        with termination_as_error():
            passing = _Finalized(number)
            del passing
        raise_if_interrupted()
        pytest.fail("it went on")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_catch_all_of_a_library_does_not_swallow_a_signal(number: signal.Signals) -> None:
    with pytest.raises(Interrupted, match=number.name) as raised:
        swallow_within_a_block(number)
    assert raised.value.exit_code == 4


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_a_finalizer_dropped_is_raised_where_the_block_asks(
    number: signal.Signals,
) -> None:
    with pytest.raises(Interrupted, match=number.name):
        drop_within_a_block(number)


def test_an_interruption_ends_with_its_block() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with suppress(Interrupted), termination_as_error():
        signal.raise_signal(signal.SIGTERM)
    with termination_as_error():
        raise_if_interrupted()
        with termination_ignored():
            signal.raise_signal(signal.SIGTERM)
        raise_if_interrupted()
    assert [signal.getsignal(number) for number in SIGNALS] == before
