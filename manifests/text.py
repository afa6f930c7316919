"""Show text that came from outside: bounded, with control characters escaped."""

from __future__ import annotations

import unicodedata

_SHOWN_CATEGORIES = frozenset("LMNPSZ")


def _escape(character: str) -> str:
    category = unicodedata.category(character)
    if character != "\\" and category[0] in _SHOWN_CATEGORIES and category not in {"Zl", "Zp"}:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def escape_untrusted(text: str, limit: int = 120) -> str:
    """Return `text` as one harmless line of at most `limit` characters.

    Control, format, surrogate and unassigned characters and backslashes become Python escapes, so
    that neither a terminal nor a log reader acts on them. A longer text is cut and ends in `…`.
    """
    shown = "".join(_escape(character) for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
