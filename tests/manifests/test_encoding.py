"""Strict JSON in, canonical JSON out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.encoding import canonical_json, parse_json, parse_json_object, readable_json
from manifests.errors import MalformedDocument

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b'{"a": 1, "a": 2}', 'the key "a" stands twice'),
        (b'{"a": NaN}', "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e999]", "out of range"),
        (b'"\xff"', "not UTF-8 at byte 1"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"9" * 10_000 + b"]", "not strict JSON"),
        (rb'{"a": "\ud800"}', "half a character"),
        (rb'{"\udfff": 1}', "half a character"),
        (b"{} {}", "Extra data"),
        (b"", "Expecting value"),
        (b'{"\x1b[2J": 1, "\x1b[2J": 1}', "not strict JSON"),
    ],
)
def test_hostile_json_is_refused_with_the_source_and_the_fact(data: bytes, fact: str) -> None:
    with pytest.raises(MalformedDocument) as caught:
        parse_json(data, source="predictions.jsonl:3")
    assert str(caught.value).startswith("predictions.jsonl:3: ")
    assert fact in str(caught.value)
    assert "\x1b" not in str(caught.value)


@given(JSON_VALUES)
def test_canonical_bytes_parse_back_and_do_not_depend_on_key_order(value: object) -> None:
    data = canonical_json(value)
    assert parse_json(data, source="x") == value
    assert canonical_json(json.loads(data)) == data
    assert parse_json(readable_json(value), source="x") == value


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_are_refused_as_malformed(data: bytes) -> None:
    try:
        value = parse_json_object(data, source="x")
    except MalformedDocument:
        return
    assert isinstance(value, dict)


def test_a_document_that_is_no_object_is_refused() -> None:
    with pytest.raises(MalformedDocument, match="expected a JSON object"):
        parse_json_object(b"[]", source="run.json")
