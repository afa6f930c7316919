"""The machine's clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Reads the machine's wall and monotonic clocks."""

    def now(self) -> datetime:
        """Return the UTC time with whole seconds."""
        return datetime.now(UTC).replace(microsecond=0)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()
