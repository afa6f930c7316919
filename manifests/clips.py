"""Clips: the layout `clerc-128`, and `.npy` files read without trust (design, section 5)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted

LAYOUT = "clerc-128"
POINTS = 128
COORDINATES = 3

LEFT_HAND = slice(0, 21)
RIGHT_HAND = slice(21, 42)
UPPER_BODY = slice(42, 54)
"""MediaPipe Pose 11-22; 42 and 43 are the shoulders."""
LOWER_BODY = slice(54, 64)
EYES_AND_MOUTH = slice(64, 92)
HEAD_OUTLINE = slice(92, 128)

MAX_FRAMES = 1_000_000
"""More than nine hours at 30 frames a second; a larger header is a mistake or an attack."""

_FRAME_BYTES = POINTS * COORDINATES * 4
_MAGIC = b"\x93NUMPY"
_MAX_HEADER_BYTES = 4096

_ITEM = r"""'(?:descr|fortran_order|shape)'\s*:\s*(?:'[^'\\]{0,40}'|True|False|\([0-9, ]{0,80}\))"""
_DICTIONARY = re.compile(
    rf"\{{\s*({_ITEM})\s*,\s*({_ITEM})\s*,\s*({_ITEM})\s*,?\s*\}}\s*", re.ASCII
)


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """What the header of an `.npy` file says, and where its data begin."""

    descr: str
    fortran_order: bool
    shape: tuple[int, ...]
    data_offset: int


@dataclass(frozen=True, slots=True)
class ClipFacts:
    """What a valid keypoint file holds.

    The counts tell a clip apart in which a tracker found nothing: frames with at least one
    detected point, and with at least one point of the left and of the right hand.
    """

    n_frames: int
    size_bytes: int
    detected_frames: int
    left_hand_frames: int
    right_hand_frames: int


def parse_npy_header(prefix: bytes, *, source: str = "keypoints") -> NpyHeader:
    """Parse the header of an `.npy` file, version 1 or 2, from its first bytes.

    Own and strict instead of `numpy.load`, which evaluates literals and can unpickle. The header
    must be a plain dictionary of at most 4,096 bytes with `descr`, `fortran_order` and `shape`.

    Raises:
        MalformedDocument: with the fact that is wrong.

    """
    if prefix[:6] != _MAGIC:
        raise MalformedDocument(f"{source}: not an .npy file; write it with numpy.save")
    version = tuple(prefix[6:8])
    if version not in {(1, 0), (2, 0)}:
        shown = ".".join(map(str, version))
        raise MalformedDocument(f"{source}: .npy version {shown}; versions 1.0 and 2.0 are read")
    start = 10 if version == (1, 0) else 12
    length = int.from_bytes(prefix[8:start], "little")
    if length > _MAX_HEADER_BYTES:
        raise MalformedDocument(
            f"{source}: an .npy header of {length} bytes; at most {_MAX_HEADER_BYTES} are read"
        )
    if len(prefix) < start + length:
        raise MalformedDocument(f"{source}: the .npy header is cut after {len(prefix)} bytes")
    return _header(prefix[start : start + length], start + length, source)


def _header(raw: bytes, data_offset: int, source: str) -> NpyHeader:
    match = _DICTIONARY.fullmatch(raw.decode("latin-1"))
    items = dict(re.split(r"\s*:\s*", item, maxsplit=1) for item in match.groups()) if match else {}
    descr, order, shape = (items.get(f"'{key}'", "") for key in ("descr", "fortran_order", "shape"))
    if descr[:1] != "'" or order not in {"True", "False"} or shape[:1] != "(":
        raise MalformedDocument(
            f"{source}: the .npy header is not a plain array's: "
            f"{escape_untrusted(raw.decode('latin-1').strip(), 100)}; write it with numpy.save"
        )
    return NpyHeader(descr[1:-1], order == "True", _shape(shape, source), data_offset)


def _shape(text: str, source: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text[1:-1].split(",")]
    if parts[-1] == "":
        parts.pop()
    if not all(part.isdecimal() and len(part) <= 18 for part in parts):
        raise MalformedDocument(f"{source}: the shape {text} is not a tuple of whole numbers")
    return tuple(int(part) for part in parts)


def parse_keypoints(
    data: bytes, *, source: str, n_frames: int | None = None
) -> NDArray[np.float32]:
    """Return the keypoints of a whole `.npy` file as float32 (frames, 128, 3), read-only.

    The array is a view of `data`. `n_frames` is the number that the annotation states, if any.

    Raises:
        MalformedDocument: unless the file is little-endian float32 in C order, of exactly this
            shape and length, with at least one frame and finite numbers only.

    """
    header = parse_npy_header(data[: 12 + _MAX_HEADER_BYTES], source=source)
    _check_type(header, source)
    _check_shape(header, source, n_frames)
    expected = header.data_offset + header.shape[0] * _FRAME_BYTES
    if len(data) != expected:
        fact = "is cut" if len(data) < expected else "has bytes behind its data"
        raise MalformedDocument(f"{source}: the file {fact}: {len(data)} bytes, not {expected}")
    flat = np.frombuffer(data, dtype="<f4", offset=header.data_offset)
    array = flat.reshape(header.shape)
    _check_finite(array, source)
    return array


def validate_keypoints(data: bytes, *, source: str, n_frames: int | None = None) -> ClipFacts:
    """Check a whole keypoint file as `parse_keypoints` does and return its facts."""
    array = parse_keypoints(data, source=source, n_frames=n_frames)
    present = (array != 0).any(axis=2)
    return ClipFacts(
        n_frames=array.shape[0],
        size_bytes=len(data),
        detected_frames=int(present.any(axis=1).sum()),
        left_hand_frames=int(present[:, LEFT_HAND].any(axis=1).sum()),
        right_hand_frames=int(present[:, RIGHT_HAND].any(axis=1).sum()),
    )


def _check_type(header: NpyHeader, source: str) -> None:
    if "O" in header.descr:
        raise MalformedDocument(
            f"{source}: the array holds pickled Python objects, which are never read; "
            "save it as float32"
        )
    if header.descr != "<f4":
        shown = escape_untrusted(header.descr, 40)
        raise MalformedDocument(f"{source}: dtype {shown}, not little-endian float32 (<f4)")
    if header.fortran_order:
        raise MalformedDocument(f"{source}: the array is in Fortran order; save it in C order")


def _check_shape(header: NpyHeader, source: str, n_frames: int | None) -> None:
    shape = header.shape
    if len(shape) != 3 or shape[1:] != (POINTS, COORDINATES):
        raise MalformedDocument(f"{source}: shape {shape}, not (frames, {POINTS}, {COORDINATES})")
    if not 1 <= shape[0] <= MAX_FRAMES:
        raise MalformedDocument(f"{source}: {shape[0]} frames; 1 to {MAX_FRAMES} are allowed")
    if n_frames is not None and shape[0] != n_frames:
        raise MalformedDocument(f"{source}: {shape[0]} frames, but the annotation says {n_frames}")


def _check_finite(array: NDArray[np.float32], source: str) -> None:
    # Smallest and largest are nan where one number is, and need no mask as large as the clip.
    if math.isfinite(array.min()) and math.isfinite(array.max()):
        return
    frame, point, coordinate = np.argwhere(~np.isfinite(array))[0].tolist()
    value = float(array[frame, point, coordinate])
    raise MalformedDocument(
        f"{source}: frame {frame}, point {point}, coordinate {coordinate} is {value}; "
        "write 0, 0, 0 for a point that was not detected"
    )
