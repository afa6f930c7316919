"""An edition is read strictly: every fault has its line, its field and a next step."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.editions import Edition, parse_edition
from manifests.errors import MalformedDocument
from manifests.examples import ExampleName, read_example

RECOGNITION = read_example("recognition-final")
TRANSLATION = read_example("translation-final")
SEGMENTATION = read_example("segmentation-final")

DIGEST = "sha256:" + "a" * 64


def parsed(data: bytes) -> Edition:
    return parse_edition(data, source="edition.yaml")


def refusal(data: bytes) -> str:
    with pytest.raises(MalformedDocument) as caught:
        parsed(data)
    return str(caught.value)


def changed(base: bytes, path: str, value: Any) -> bytes:
    """Return `base` with the field at the dotted `path` set, in block style."""
    values = yaml.safe_load(base)
    *outer, last = path.split(".")
    inner = values
    for name in outer:
        inner = inner.setdefault(name, {})
    inner[last] = value
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True).encode()


def line_of(data: bytes, path: str) -> int:
    """Return the line of the field at the dotted `path`, found as a reader would find it."""
    number, lines = 0, data.splitlines()
    for name in path.split("."):
        pattern = re.compile(rb"\s*" + re.escape(name.encode()) + rb":")
        number = next(i for i, line in enumerate(lines, 1) if i > number and pattern.match(line))
    return number


@pytest.mark.parametrize("name", get_args(ExampleName))
def test_a_shipped_example_is_a_valid_edition(name: ExampleName) -> None:
    edition = parse_edition(read_example(name), source=name)
    assert f"{edition.track}-{edition.round}" == name


def test_the_example_says_what_the_design_says() -> None:
    edition = parsed(RECOGNITION)
    assert edition.quota.certified_runs == 3
    assert edition.quota.attempts == 10
    assert edition.scorer.version == "2.1"
    assert edition.opens == datetime(2026, 12, 1, tzinfo=UTC)
    assert edition.held_out_signer == "ECHO"
    assert edition.consumer is None
    assert edition.title == "Épée 200 · Final"


def test_what_is_left_out_has_the_published_defaults() -> None:
    values = yaml.safe_load(RECOGNITION)
    for name in ("profile", "gpu", "quota", "submissions", "held_out_signer", "consumer"):
        del values[name]
    edition = parsed(yaml.safe_dump(values).encode())
    assert (edition.profile, edition.gpu) == ("certified", "optional")
    assert (edition.quota.certified_runs, edition.quota.attempts) == (3, 10)
    assert (edition.submissions.per_hour, edition.submissions.per_day) == (5, 20)


WRONG: list[tuple[str, Any]] = [
    ("edition", "Épée"),
    ("edition", "ab"),
    ("edition", "../escape"),
    ("edition", 2026),
    ("edition", "a" * 65),
    ("title", ""),
    ("title", "two\nlines"),
    ("title", "bell\x07"),
    ("title", "x" * 201),
    ("title", None),
    ("track", "karaoke"),
    ("track", None),
    ("round", "semifinal"),
    ("exam_version", 1.0),
    ("exam_version", "one"),
    ("layout", "openpose-137"),
    ("layout", 128),
    ("source", ""),
    ("source", ["clips/"]),
    ("expected_clips", 0),
    ("expected_clips", -1),
    ("expected_clips", "200"),
    ("expected_clips", 200.0),
    ("expected_clips", True),
    ("vocabulary", None),
    ("vocabulary", 7),
    ("labels", "labels-v1.jsonl"),
    ("labels.version", "Labels v1"),
    ("labels.path", ""),
    ("labels.note", 3),
    ("labels.sha256", "a" * 64),
    ("profile", ""),
    ("profile", {"name": "certified"}),
    ("gpu", "maybe"),
    ("gpu", True),
    ("quota", 3),
    ("quota.certified_runs", 0),
    ("quota.certified_runs", "3"),
    ("quota.certified_runs", 101),
    ("quota.attempts", 2),
    ("quota.attempts", None),
    ("quota.unlimited", True),
    ("submissions.per_hour", 0),
    ("submissions.per_day", 4),
    ("submissions.per_week", 4),
    ("scorer.name", "signet"),
    ("scorer.name", "bleu"),
    ("scorer.version", 2.1),
    ("scorer.resamples", 1),
    ("scorer.resamples", 1e3),
    ("scorer.seed", -1),
    ("scorer.gate_threshold", 2.0),
    ("held_out_signer", ""),
    ("held_out_signer", 5),
    ("opens", "tomorrow"),
    ("opens", "2026-12-01T00:00:00Z"),
    ("opens", None),
    ("closes", datetime(2020, 1, 1, tzinfo=UTC)),
    ("closes", datetime(2027, 3, 1)),  # noqa: DTZ001 - a time without a zone is what is refused
    ("organizer.name", ""),
    ("organizer.contact", None),
    ("organizer.phone", "1"),
    ("consumer", f"registry.example.org/x@{DIGEST}"),
    ("consumer", "registry.example.org/x:latest"),
    ("bleurt", {"checkpoint": "c"}),
    ("bleurt.sha256", "a"),
    ("gloss_map", {"TWO WORDS": "ONE"}),
    ("gloss_map", {"A": "B", "B": "C"}),
    ("gloss_map", ["A"]),
    ("gloss_map", {"A": "UNKNOWN"}),
    ("engine_minimum.docker", 25),
    ("engine_minimum.runc", "newest"),
    ("engine_minimum.podman", "5.0"),
    ("network", "bridge"),
    ("read_only", False),
]


@pytest.mark.parametrize(("path", "value"), WRONG, ids=[f"{p}={v!r:.30}" for p, v in WRONG])
def test_a_wrong_field_is_refused_at_its_line(path: str, value: Any) -> None:
    data = changed(RECOGNITION, path, value)
    first = refusal(data).splitlines()
    head = path.partition(".")[0]
    named = [line for line in first if f"field {head}" in line]
    assert named, first
    assert int(named[0].split(":")[1]) in {line_of(data, head), line_of(data, path)}


@pytest.mark.parametrize("field", [n for n, f in Edition.model_fields.items() if f.is_required()])
def test_a_missing_field_is_named(field: str) -> None:
    values = yaml.safe_load(RECOGNITION)
    del values[field]
    assert f"field {field}: is missing; write " in refusal(yaml.safe_dump(values).encode())


@pytest.mark.parametrize(
    ("base", "path", "value", "fact"),
    [
        (TRANSLATION, "vocabulary", "v.txt", "translation has none"),
        (TRANSLATION, "held_out_signer", "ECHO", "only recognition has one"),
        (TRANSLATION, "consumer", f"r@{DIGEST}", "only segmentation has one"),
        (TRANSLATION, "gloss_map", {"A": "B"}, "translation has no glosses"),
        (TRANSLATION, "scorer.name", "epee200", "the scorer of translation is signet"),
        (TRANSLATION, "scorer.gate_threshold", 0.0, "greater than 0"),
        (TRANSLATION, "bleurt.checkpoint", "", "one line"),
        (SEGMENTATION, "consumer", None, "segmentation needs one"),
        (SEGMENTATION, "consumer", "clerc/recognizer:latest", "match pattern"),
        (SEGMENTATION, "consumer", "clerc/recognizer@sha256:abc", "match pattern"),
        (SEGMENTATION, "vocabulary", None, "segmentation needs one"),
        (SEGMENTATION, "bleurt", {"checkpoint": "x"}, "only translation has one"),
        (SEGMENTATION, "held_out_signer", "ECHO", "only recognition has one"),
    ],
)
def test_fields_of_another_track_are_refused(base: bytes, path: str, value: Any, fact: str) -> None:
    message = refusal(changed(base, path, value))
    assert f"field {path.partition('.')[0]}" in message
    assert fact in message


def test_several_faults_are_told_at_once() -> None:
    data = changed(changed(RECOGNITION, "gpu", "maybe"), "round", "semifinal")
    assert len(refusal(data).splitlines()) == 2


def test_no_more_than_ten_faults_are_told_in_full() -> None:
    message = refusal(RECOGNITION + b"".join(b"extra_%d: 1\n" % n for n in range(12)))
    assert len(message.splitlines()) == 11
    assert message.endswith("\nand 2 more")


def test_a_long_gloss_and_a_backslash_survive_the_reading() -> None:
    long = "X" * 64
    edition = parsed(changed(RECOGNITION, "gloss_map", {long: "A\\B"}))
    assert edition.gloss_map == {long: "A\\B"}
    assert parsed(changed(RECOGNITION, "gloss_map", {"A\\B": long})).mapped_gloss("A\\B") == long


def test_a_fault_states_place_fact_and_next_step() -> None:
    data = RECOGNITION.replace(b"attempts: 10", b"attempts: 2")
    place = f"edition.yaml:{line_of(data, 'quota')}"
    assert refusal(data) == (
        f"{place}: field quota.attempts: 2 attempts cannot hold 3 certified runs; "
        "allow at least as many"
    )


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (RECOGNITION + b"gpu: required\n", "stands twice"),
        (RECOGNITION.replace(b"seed: 200", b"seed: 200, seed: 1"), "stands twice"),
        (b"a: &a [x]\nb: [*a, *a]\n", "anchors and aliases"),
        (b"<<: {a: 1}\n", "a field's name must be text"),
        (b"title: !!python/name:os.system x\n", "is not allowed"),
        (b"title: !!binary aGk=\n", "is not allowed"),
        (b"? [1]\n: 2\n", "a field's name must be text"),
        (b"1: 2\n", "a field's name must be text"),
        (b"title: \xff\n", "not UTF-8 at byte 7"),
        (b"", "write a mapping"),
        (b"- a\n", "write a mapping"),
        (b"a: 1\n---\nb: 2\n", "not YAML"),
        (b"a: [1\n", "not YAML"),
        (b"a: \x00\n", "not YAML"),
        (b'a: "\\U00FFFFFF"\n', "not YAML"),
        (b"a: 2026-13-41\n", "cannot be read as its type"),
        (b"a: !!int x\n", "cannot be read as its type"),
        (b"a: !!map x\n", "is not a plain value"),
        (b"a: !!bool x\n", "cannot be read as its type"),
        (b"a: !!timestamp x\n", "cannot be read as its type"),
        (b"a: " + b"9" * 5000 + b"\n", "cannot be read as its type"),
        (b"a: " + b"[" * 9 + b"]" * 9, "nested more than 8 deep"),
        (b"a: " + b"[" * 20_000, "nested more than 8 deep"),
        (b"#" * 65_537, "at most 65536"),
    ],
)
def test_yaml_that_could_mislead_is_refused(data: bytes, fact: str) -> None:
    assert fact in refusal(data)


def test_an_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a: &a [x, x]"] + [f"{n}: &{n} [*{p}, *{p}]" for p, n in pairwise("abcdefg")]
    assert "anchors and aliases" in refusal("\n".join(lines).encode())


def test_control_characters_of_the_file_never_reach_the_message() -> None:
    message = refusal(changed(RECOGNITION, "\x1b[31mred", 1))
    assert "\x1b" not in message
    assert "\\x1b[31mred" in message


def test_a_gloss_map_counts_variants_as_their_sign() -> None:
    edition = parsed(changed(RECOGNITION, "gloss_map", {"SIGN_2": "SIGN"}))
    assert edition.mapped_gloss("SIGN_2") == "SIGN"
    assert edition.mapped_gloss("POINTER_RIGHT") == "POINTER_RIGHT"


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "ignore")))
def test_arbitrary_bytes_raise_nothing_but_malformed_document(data: bytes) -> None:
    with pytest.raises(MalformedDocument):
        parsed(data)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(RECOGNITION) - 1), st.integers(0, 255))
def test_one_changed_byte_is_read_or_refused_cleanly(position: int, byte: int) -> None:
    data = RECOGNITION[:position] + bytes([byte]) + RECOGNITION[position + 1 :]
    try:
        edition = parsed(data)
    except MalformedDocument:
        return
    assert edition.track == "recognition"
