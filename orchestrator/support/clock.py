"""The time, as an argument."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for records, monotonic time for deadlines."""

    def now(self) -> datetime:
        """Return the UTC time with whole seconds."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
