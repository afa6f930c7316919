"""Read a program's log for what it says about its end. The text is untrusted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from manifests.text import escape_untrusted
from orchestrator.entrants.rules.findings import Certainty

_LAST_LINES: Final = 12
_MOST_LINES: Final = 20_000
_LONGEST_LINE: Final = 2000
_SHOWN: Final = 150


@dataclass(frozen=True, slots=True)
class Match:
    """A place in the log: the line as it may be shown, what matched, and how much it says."""

    line: str
    groups: tuple[str, ...]
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class LogReading:
    """The log's lines that are not blank, each bounded."""

    lines: tuple[str, ...]

    @classmethod
    def of(cls, log: bytes) -> LogReading:
        """Decode a log, whatever is in it; of a very long one the end counts."""
        text = log.decode("utf-8", "backslashreplace")
        lines = [line[:_LONGEST_LINE] for line in text.splitlines() if line.strip()]
        return cls(tuple(lines[-_MOST_LINES:]))

    def find(self, pattern: re.Pattern[str]) -> Match | None:
        """Return the last line that matches, or None."""
        for distance, line in enumerate(reversed(self.lines)):
            found = pattern.search(line)
            if found is not None:
                certainty = Certainty.LAST_WORDS if distance < _LAST_LINES else Certainty.SAID
                groups = tuple(group or "" for group in found.groups())
                return Match(shown(line), groups, certainty)
        return None

    def find_all(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
        """Return the first group of every match, each once, in the log's order; unescaped."""
        groups = (match[1] for line in self.lines for match in pattern.finditer(line))
        return tuple(dict.fromkeys(groups))

    def last_line(self) -> str | None:
        """Return the last line as it may be shown."""
        return shown(self.lines[-1]) if self.lines else None


def shown(text: str) -> str:
    """Return a piece of the log as it may be shown."""
    return escape_untrusted(text.strip(), _SHOWN)
