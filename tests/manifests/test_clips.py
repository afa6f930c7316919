"""Keypoint files are read without trust: exact type, shape and length, never a pickle."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib import format as npy_format

from manifests import clips
from manifests.clips import parse_keypoints, parse_npy_header, validate_keypoints
from manifests.errors import MalformedDocument

REAL_CLIPS = Path(__file__).parents[3] / "shared" / "data" / "real-clips"


def saved(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    npy_format.write_array(file, array, version=version)
    return file.getvalue()


def clip(n_frames: int = 4) -> np.ndarray:
    values = np.random.default_rng(7).random((n_frames, 128, 3), dtype=np.float32)
    values[0] = 0
    values[1, clips.LEFT_HAND] = 0
    return values


GOOD = saved(clip())


def refusal(data: bytes, n_frames: int | None = None) -> str:
    with pytest.raises(MalformedDocument) as caught:
        validate_keypoints(data, source="0001.npy", n_frames=n_frames)
    return str(caught.value)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_a_file_that_numpy_wrote_is_read_as_numpy_reads_it(version: tuple[int, int]) -> None:
    data = saved(clip(), version)
    ours = parse_keypoints(data, source="0001.npy", n_frames=4)
    np.testing.assert_array_equal(ours, np.load(io.BytesIO(data)))
    assert not ours.flags.writeable


def test_the_facts_count_frames_and_hands() -> None:
    facts = validate_keypoints(GOOD, source="0001.npy", n_frames=4)
    assert (facts.n_frames, facts.size_bytes) == (4, len(GOOD))
    assert facts.detected_frames == 3
    assert facts.left_hand_frames == 2
    assert facts.right_hand_frames == 3


def test_the_parts_of_the_layout_cover_each_point_once() -> None:
    parts = [
        clips.LEFT_HAND,
        clips.RIGHT_HAND,
        clips.UPPER_BODY,
        clips.LOWER_BODY,
        clips.EYES_AND_MOUTH,
        clips.HEAD_OUTLINE,
    ]
    covered = [point for part in parts for point in range(part.start, part.stop)]
    assert covered == list(range(clips.POINTS))


@pytest.mark.parametrize("kept", [0, 5, 6, 9, 50, 127, 128, len(GOOD) - 1])
def test_a_cut_file_is_refused(kept: int) -> None:
    assert "0001.npy: " in refusal(GOOD[:kept])


def test_bytes_behind_the_data_are_refused() -> None:
    assert "has bytes behind its data" in refusal(GOOD + b"\0")


@pytest.mark.parametrize(
    ("array", "fact"),
    [
        (clip().astype("<f8"), "dtype <f8"),
        (clip().astype(">f4"), "dtype >f4"),
        (clip().astype("<f2"), "dtype <f2"),
        (clip().astype("<i4"), "dtype <i4"),
        (np.asfortranarray(clip()), "Fortran order"),
        (clip().reshape(4, 384), "shape (4, 384)"),
        (clip().reshape(4, 3, 128), "shape (4, 3, 128)"),
        (np.zeros((0, 128, 3), "<f4"), "0 frames"),
        (np.zeros((), "<f4"), "shape ()"),
        (np.zeros(3, [("x", "<f4")]), "not a plain array"),
    ],
)
def test_another_type_or_shape_is_refused(array: np.ndarray, fact: str) -> None:
    assert fact in refusal(saved(array))


def test_a_pickled_array_is_refused_and_never_loaded() -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return pytest.fail, ("unpickled",)

    array = np.empty((1, 128, 3), dtype=object)
    array[:] = 0
    assert "pickled Python objects" in refusal(saved(array))
    assert "not an .npy file" in refusal(pickle.dumps(Trap()))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named_with_its_place(value: float) -> None:
    array = clip()
    array[2, 5, 1] = value
    assert "frame 2, point 5, coordinate 1 is" in refusal(saved(array))


def test_opposite_infinities_do_not_cancel() -> None:
    array = clip()
    array[1, 0, 0], array[2, 0, 0] = np.inf, -np.inf
    assert "frame 1, point 0, coordinate 0 is inf" in refusal(saved(array))


def test_large_finite_numbers_are_not_taken_for_infinite() -> None:
    array = np.full((4, 128, 3), np.finfo(np.float32).max, np.float32)
    assert validate_keypoints(saved(array), source="0001.npy").n_frames == 4


def test_the_frames_must_be_those_of_the_annotation() -> None:
    assert "4 frames, but the annotation says 5" in refusal(GOOD, n_frames=5)


def test_a_header_that_promises_more_than_memory_is_refused() -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999, 128, 3), }"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    assert "999999999999 frames" in refusal(data)


@pytest.mark.parametrize(
    ("header", "fact"),
    [
        (b"{'descr': '<f4', 'fortran_order': False}", "not a plain array"),
        (b"{'descr': '<f4', 'descr': '<f4', 'shape': (1, 128, 3)}", "not a plain array"),
        (b"__import__('os')", "not a plain array"),
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,3)}", "whole numbers"),
        (b"{'descr': False, 'fortran_order': False, 'shape': (1, 128, 3)}", "not a plain array"),
        (b"{'descr': '<f4', 'fortran_order': 'x', 'shape': (1, 128, 3)}", "not a plain array"),
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': " + b"(" * 3000, "not a plain array"),
    ],
)
def test_a_strange_header_is_refused(header: bytes, fact: str) -> None:
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    assert fact in refusal(data)


def test_version_three_and_huge_headers_are_refused() -> None:
    assert ".npy version 3.0" in refusal(b"\x93NUMPY\x03\x00" + b"\0" * 100)
    assert "at most 4096" in refusal(b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"\0" * 100)


def test_a_header_is_read_from_a_prefix() -> None:
    header = parse_npy_header(GOOD[:128])
    assert (header.descr, header.shape, header.data_offset) == ("<f4", (4, 128, 3), 128)
    assert not header.fortran_order


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", b"\x93NUMPY\x01\x00", GOOD[:10]]))
def test_arbitrary_bytes_raise_nothing_but_malformed_document(data: bytes, prefix: bytes) -> None:
    with pytest.raises(MalformedDocument):
        validate_keypoints(prefix + data, source="0001.npy")


def test_real_clips_of_a_tracker_are_accepted() -> None:
    files = sorted(REAL_CLIPS.glob("*.npy"))
    if not files:
        pytest.skip("no real clips: the folder ../shared/data/real-clips is absent")
    for file in files:
        assert validate_keypoints(file.read_bytes(), source=file.name).n_frames > 0
