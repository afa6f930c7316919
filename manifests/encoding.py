"""JSON in two directions: strict in, canonical out."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""A JSON value as Python holds it."""


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {escape_untrusted(text, 40)} is out of range")
    return value


def _unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    document: dict[str, Json] = {}
    for key, value in pairs:
        if key in document:
            raise ValueError(f'the key "{escape_untrusted(key, 40)}" stands twice')
        document[key] = value
    return document


def _loads(data: bytes) -> Json:
    value: Json = json.loads(
        data.decode("utf-8"),
        parse_constant=_reject_constant,
        parse_float=_finite_float,
        object_pairs_hook=_unique_keys,
    )
    if rb"\u" in data:  # an escape may spell half a character, which no UTF-8 can carry
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def parse_json(data: bytes, *, source: str) -> Json:
    """Parse one strict JSON document.

    Duplicate keys, NaN, infinities, numbers out of range, bytes that are not UTF-8, a byte order
    mark, half a surrogate pair and nesting beyond the interpreter's limit are refused. `source`
    names the file and line.

    Raises:
        MalformedDocument: with `source` and the first fact that is wrong.

    """
    try:
        return _loads(data)
    except RecursionError:
        raise MalformedDocument(f"{source}: nested too deeply to be read") from None
    except UnicodeEncodeError as error:
        raise MalformedDocument(f"{source}: an escape spells half a character") from error
    except UnicodeDecodeError as error:
        raise MalformedDocument(f"{source}: not UTF-8 at byte {error.start}") from error
    except ValueError as error:
        raise MalformedDocument(f"{source}: not strict JSON: {error}") from error


def parse_json_object(data: bytes, *, source: str) -> dict[str, Json]:
    """Parse one strict JSON document whose top level is an object.

    Raises:
        MalformedDocument: as `parse_json`, or when the top level is anything else.

    """
    value = parse_json(data, source=source)
    if not isinstance(value, dict):
        raise MalformedDocument(f"{source}: expected a JSON object")
    return value


def canonical_json(value: object) -> bytes:
    """Encode `value` with sorted keys, no spaces, UTF-8 and no final newline.

    The same value gives the same bytes. NaN and infinities raise ValueError.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8")


def readable_json(value: object) -> bytes:
    """Encode `value` for a file that people open: sorted keys, two spaces, a final newline."""
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"
