"""Version numbers as engines report them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.rules.versions import is_older, version_numbers

NUMBERS = st.lists(st.integers(0, 99), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("20.10.24+dfsg1", (20, 10, 24)),
        ("1.1.5+ds1", (1, 1, 5)),
        ("v1.2.8", (1, 2, 8)),
        ("28.5.2", (28, 5, 2)),
        ("1.2.0-rc.1", (1, 2, 0)),
        ("", ()),
        ("unknown", ()),
    ],
)
def test_the_leading_numbers_are_read(text: str, numbers: tuple[int, ...]) -> None:
    assert version_numbers(text) == numbers


@pytest.mark.parametrize(
    ("found", "minimum", "older"),
    [
        ("20.10.24+dfsg1", "20.10.24", False),
        ("20.9.0", "20.10", True),
        ("1.10.0", "1.9.9", False),
        ("28", "28.0.0", False),
        ("28.0.0", "28", False),
        ("28.5", "28.5.1", True),
    ],
)
def test_numbers_are_compared_as_numbers_and_missing_ones_are_0(
    found: str, minimum: str, older: bool
) -> None:
    assert is_older(found, minimum) is older


def test_a_version_that_cannot_be_read_is_older_than_any() -> None:
    assert is_older("unknown", "0")
    assert is_older("", "1.0")


@given(NUMBERS, NUMBERS)
def test_of_two_versions_at_most_one_is_older(first: list[int], second: list[int]) -> None:
    a, b = (".".join(map(str, numbers)) for numbers in (first, second))
    padded = [tuple(numbers + [0] * (4 - len(numbers))) for numbers in (first, second)]
    assert is_older(a, b) is (padded[0] < padded[1])
    assert not (is_older(a, b) and is_older(b, a))
