"""Labels: each clip once, as many glosses as segments, and a commitment that cannot be guessed."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.editions import Track
from manifests.errors import MalformedDocument
from manifests.labels import (
    LabelledClip,
    Labels,
    RecognitionLabel,
    SegmentationLabel,
    TranslationLabel,
    check_labels_fit,
    labels_commitment,
    parse_labels,
    parse_salted_labels,
    renamed_labels,
    render_salted_labels,
)

SALT = "5" * 64

RECOGNITION: dict[str, Any] = {"clip_id": "a", "signer_id": "ALPHA", "glosses": ["YOU", "OLD"]}
TRANSLATION: dict[str, Any] = {"clip_id": "a", "slice": "studio", "reference": "How old?"}
SEGMENTATION: dict[str, Any] = {
    "clip_id": "a",
    "signer_id": "ALPHA",
    "fps": 25,
    "n_frames": 50,
    "segments": [{"gloss": "YOU", "start": 0.0, "end": 1.0}],
}


def lines(*documents: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def refusal(data: bytes, track: Track) -> str:
    with pytest.raises(MalformedDocument) as caught:
        parse_labels(data, track=track, source="labels.jsonl")
    return str(caught.value)


def test_labels_of_each_track_are_read() -> None:
    recognition = parse_labels(lines(RECOGNITION), track="recognition", source="l")
    assert recognition.entries == (
        RecognitionLabel(clip_id="a", signer_id="ALPHA", glosses=("YOU", "OLD")),
    )
    translation = parse_labels(lines(TRANSLATION), track="translation", source="l")
    assert isinstance(translation.entries[0], TranslationLabel)
    segmentation = parse_labels(lines(SEGMENTATION), track="segmentation", source="l")
    assert isinstance(segmentation.entries[0], SegmentationLabel)
    assert segmentation.by_clip().keys() == {"a"}


@pytest.mark.parametrize(
    ("track", "base", "changes", "fact"),
    [
        ("recognition", RECOGNITION, {"clip_id": ""}, "field clip_id"),
        ("recognition", RECOGNITION, {"signer_id": None}, "field signer_id"),
        ("recognition", RECOGNITION, {"glosses": []}, "field glosses"),
        ("recognition", RECOGNITION, {"glosses": "YOU"}, "field glosses"),
        ("recognition", RECOGNITION, {"glosses": ["YOU", 3]}, "field glosses.1"),
        ("recognition", RECOGNITION, {"glosses": ["A B"]}, "whitespace"),
        ("recognition", RECOGNITION, {"glosses": ["A\u00a0B"]}, "whitespace"),
        ("recognition", RECOGNITION, {"glosses": ["A\u200b"]}, "U+200B"),
        ("recognition", RECOGNITION, {"glosses": ["A\x1b"]}, "U+001B"),
        ("recognition", RECOGNITION, {"glosses": ["\ud800"]}, "an escape spells half a character"),
        ("recognition", RECOGNITION, {"glosses": [""]}, "empty"),
        ("recognition", RECOGNITION, {"glosses": ["X" * 65]}, "at most 64"),
        ("recognition", RECOGNITION, {"glosses": ["UNKNOWN"]}, "UNKNOWN is reserved"),
        ("recognition", RECOGNITION, {"glosses": ["E\u0301"]}, "form NFC"),
        ("recognition", RECOGNITION, {"text": "x"}, "field text: is unknown"),
        ("translation", TRANSLATION, {"slice": "main"}, "field slice"),
        ("translation", TRANSLATION, {"reference": " \n"}, "holds no text"),
        ("translation", TRANSLATION, {"reference": "E\u0301pe\u0301e"}, "form NFC"),
        ("translation", TRANSLATION, {"reference": None}, "field reference"),
        ("translation", TRANSLATION, {"signer_id": "A"}, "field signer_id: is unknown"),
        ("segmentation", SEGMENTATION, {"fps": 0}, "field fps"),
        ("segmentation", SEGMENTATION, {"n_frames": 20}, "leaves the clip of 20 frames"),
        ("segmentation", SEGMENTATION, {"segments": None}, "field segments"),
    ],
)
def test_a_wrong_label_is_refused_with_line_and_clip(
    track: Track, base: dict[str, Any], changes: dict[str, Any], fact: str
) -> None:
    message = refusal(lines(base | {"clip_id": "first"}, base | changes), track)
    assert message.startswith("labels.jsonl:2")
    assert fact in message


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b"", "no clip is labelled"),
        (b"\n", "labels.jsonl:1: a blank line"),
        (lines(RECOGNITION, RECOGNITION), "labels.jsonl:2: clip a is labelled twice"),
        (b'{"clip_id":"a","clip_id":"b"}\n', 'the key "clip_id" stands twice'),
        (b"[]\n", "expected a JSON object"),
        (b"\xff\n", "not UTF-8"),
        (b'{"salt":"' + b"5" * 64 + b'"}\n', "field salt: is unknown"),
    ],
)
def test_a_wrong_label_file_is_refused(data: bytes, fact: str) -> None:
    assert fact in refusal(data, "recognition")


def fit(labels: Labels, **clips: LabelledClip) -> None:
    check_labels_fit(labels, clips, source="labels.jsonl")


def test_labels_must_fit_the_clips() -> None:
    clip = LabelledClip(n_segments=2, n_frames=50, fps=25.0)
    labels = parse_labels(lines(RECOGNITION), track="recognition", source="l")
    fit(labels, a=clip)
    with pytest.raises(MalformedDocument, match=r"labels.jsonl:1, clip a: no such clip among 1"):
        fit(labels, b=clip)
    with pytest.raises(MalformedDocument, match="1 of 2 clips have no label, the first is b"):
        fit(labels, a=clip, b=clip)
    with pytest.raises(MalformedDocument, match="2 glosses for 3 segments"):
        fit(labels, a=LabelledClip(n_segments=3, n_frames=50, fps=25.0))


def test_segment_labels_must_have_the_frames_of_the_annotation() -> None:
    labels = parse_labels(lines(SEGMENTATION), track="segmentation", source="l")
    fit(labels, a=LabelledClip(n_segments=0, n_frames=50, fps=25.0))
    with pytest.raises(MalformedDocument, match=r"50 frames at 25\.0 a second, but the annotation"):
        fit(labels, a=LabelledClip(n_segments=0, n_frames=51, fps=25.0))
    with pytest.raises(MalformedDocument, match=r"says 50 at 30\.0"):
        fit(labels, a=LabelledClip(n_segments=0, n_frames=50, fps=30.0))


def test_lines_of_sealed_labels_count_the_salt() -> None:
    labels = parse_labels(lines(RECOGNITION), track="recognition", source="l")
    sealed = parse_salted_labels(
        render_salted_labels(labels, salt=SALT), track="recognition", source="l"
    )
    with pytest.raises(MalformedDocument, match=r"labels\.jsonl:2, clip a: no such clip"):
        fit(sealed)


def test_the_sealed_file_begins_with_its_salt_and_is_sorted_by_clip() -> None:
    data = lines(RECOGNITION | {"clip_id": "b"}, RECOGNITION)
    labels = parse_labels(data, track="recognition", source="l")
    assert render_salted_labels(labels, salt=SALT).splitlines() == [
        b'{"salt":"' + SALT.encode() + b'"}',
        b'{"clip_id":"a","glosses":["YOU","OLD"],"signer_id":"ALPHA"}',
        b'{"clip_id":"b","glosses":["YOU","OLD"],"signer_id":"ALPHA"}',
    ]


def test_the_commitment_is_the_plain_digest_of_the_salted_file() -> None:
    labels = parse_labels(lines(RECOGNITION), track="recognition", source="l")
    salted = render_salted_labels(labels, salt=SALT)
    commitment = labels_commitment(salted, version="labels-v1", note="n")
    assert commitment.sha256 == hashlib.sha256(salted).hexdigest()
    other = render_salted_labels(labels, salt="6" * 64)
    assert labels_commitment(other, version="labels-v1").sha256 != commitment.sha256


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"{}",
        b'{"salt":5}',
        b'{"salt":"short"}',
        b'{"salt":"' + b"G" * 64 + b'"}',
        b'{"salt":"' + b"5" * 64 + b'","x":1}',
    ],
)
def test_a_missing_or_malformed_salt_is_refused(first: bytes) -> None:
    with pytest.raises(MalformedDocument, match="l:1"):
        parse_salted_labels(first + b"\n" + lines(RECOGNITION), track="recognition", source="l")
    with pytest.raises(MalformedDocument, match="64 hex"):
        render_salted_labels(Labels("recognition", ()), salt=first.decode())


def test_renaming_keeps_the_labels_and_orders_them_by_the_new_names() -> None:
    data = lines(RECOGNITION, RECOGNITION | {"clip_id": "b", "glosses": ["WHO"]})
    labels = parse_labels(data, track="recognition", source="l")
    renamed = renamed_labels(labels, {"a": "0002", "b": "0001"})
    assert [label.clip_id for label in renamed.entries] == ["0001", "0002"]
    first = renamed.by_clip()["0001"]
    assert isinstance(first, RecognitionLabel)
    assert first.glosses == ("WHO",)
    with pytest.raises(MalformedDocument, match="clip b has no opaque name"):
        renamed_labels(labels, {"a": "0002"})


GLOSS = st.from_regex(r"[A-Z#][A-Z0-9_-]{0,8}", fullmatch=True).filter(lambda g: g != "UNKNOWN")
CLIP_ID = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(CLIP_ID, st.lists(GLOSS, min_size=1, max_size=5), min_size=1, max_size=5))
def test_recognition_labels_survive_sealing(glosses: dict[str, list[str]]) -> None:
    entries = tuple(
        RecognitionLabel(clip_id=clip_id, signer_id="A", glosses=tuple(glosses[clip_id]))
        for clip_id in sorted(glosses)
    )
    labels = Labels("recognition", entries, SALT)
    data = render_salted_labels(labels, salt=SALT)
    assert parse_salted_labels(data, track="recognition", source="l") == labels


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(CLIP_ID, st.text(st.characters(codec="utf-8")), min_size=1, max_size=5))
def test_translation_labels_survive_sealing(texts: dict[str, str]) -> None:
    entries = tuple(
        TranslationLabel(
            clip_id=clip_id,
            slice="canary",
            reference=unicodedata.normalize("NFC", texts[clip_id] + "x"),
        )
        for clip_id in sorted(texts)
    )
    labels = Labels("translation", entries, SALT)
    data = render_salted_labels(labels, salt=SALT)
    assert parse_salted_labels(data, track="translation", source="l") == labels


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["recognition", "translation", "segmentation"]))
def test_arbitrary_bytes_raise_nothing_but_malformed_document(data: bytes, track: Track) -> None:
    with pytest.raises(MalformedDocument):
        parse_labels(data, track=track, source="l")
    with pytest.raises(MalformedDocument):
        parse_salted_labels(data, track=track, source="l")
