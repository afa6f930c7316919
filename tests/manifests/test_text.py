"""Text that came from outside cannot act on a terminal."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from manifests.text import escape_untrusted


def test_control_characters_and_direction_marks_become_escapes() -> None:
    assert escape_untrusted("a\x1b[2J\r\n\u202eb") == "a\\x1b[2J\\r\\n\\u202eb"
    assert escape_untrusted("naïve – 手語") == "naïve – 手語"
    assert escape_untrusted("\udcff") == "\\udcff"


@given(st.text(alphabet=st.characters(), max_size=300), st.integers(2, 200))
def test_what_is_shown_is_one_bounded_line(text: str, limit: int) -> None:
    shown = escape_untrusted(text, limit)
    assert len(shown) <= limit
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)
    shown.encode("utf-8")
