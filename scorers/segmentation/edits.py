"""Controlled boundary edits: gold segments with one known error, as a segmenter would emit them.

Pure functions of a clip's reference frames. Every edited segment carries its achieved overlap as
integers, and whether the edit could be carried out as asked: rounding, short signs and the edges
of the clip break equality, and a strict analysis keeps only the exact ones (scoring notes, 1.4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from scorers.segmentation.documents import FrameSpan, SegmentationLabel, reference_spans


@dataclass(frozen=True, slots=True)
class EditedSegment:
    """One window of frames and the references that it stands for.

    ``sources`` are places among the clip's references. ``intersection_frames`` and
    ``union_frames`` compare the window with the frames of all its sources. ``exact`` tells that
    neither rounding nor the clip's edge nor a neighbour changed what was asked for.
    """

    start_frame: int
    end_frame: int
    sources: tuple[int, ...]
    intersection_frames: int
    union_frames: int
    exact: bool


@dataclass(frozen=True, slots=True)
class EditedClip:
    """A clip's edited segmentation; ``edit`` names edit and size."""

    clip_id: str
    n_frames: int
    edit: str
    segments: tuple[EditedSegment, ...]

    @property
    def spans(self) -> tuple[FrameSpan, ...]:
        """Return the windows as a prediction has them."""
        return tuple((segment.start_frame, segment.end_frame) for segment in self.segments)


def erosion(label: SegmentationLabel, frames: int) -> EditedClip:
    """Take ``frames`` frames off each sign, half at each end; one frame always stays."""
    _check_size("erosion", frames)
    spans = reference_spans(label)
    windows = [shrunk(span, frames) for span in spans]
    exact = [end - start > frames for start, end in spans]
    return _edited(label, f"erosion-{frames}", spans, windows, exact)


def dilation(label: SegmentationLabel, frames: int) -> EditedClip:
    """Add ``frames`` frames to each sign, half at each end, up to the middle of each gap.

    So the result is a segmentation again: neighbours never overlap, and what would is not exact.
    """
    _check_size("dilation", frames)
    spans = reference_spans(label)
    asked = [grown(span, frames) for span in spans]
    windows = [
        (max(start, low), min(end, high))
        for (start, end), (low, high) in zip(asked, _rooms(spans, label.n_frames), strict=True)
    ]
    exact = [window == wish for window, wish in zip(windows, asked, strict=True)]
    return _edited(label, f"dilation-{frames}", spans, windows, exact)


def jitter(label: SegmentationLabel, frames: int, *, seed: int) -> EditedClip:
    """Move each start and each end by -frames to frames, uniformly and independently.

    A boundary stays on its side of the middle of each gap, and a sign keeps one frame.
    """
    _check_size("jitter", frames)
    edit = f"jitter-{frames}"
    spans = reference_spans(label)
    width = 2 * frames + 1
    shifts = (_draws(seed, label.clip_id, edit, 2 * len(spans)) % np.uint64(width)).astype(np.int64)
    moves = (shifts - frames).reshape(-1, 2).tolist()
    rooms = _rooms(spans, label.n_frames)
    windows, exact = [], []
    for (start, end), (left, right), room in zip(spans, moves, rooms, strict=True):
        window = _within(start + left, end + right, room)
        windows.append(window)
        exact.append(window == (start + left, end + right))
    return _edited(label, edit, spans, windows, exact)


def deletion(label: SegmentationLabel, percent: int, *, seed: int) -> EditedClip:
    """Leave out ``percent`` of the signs, drawn without replacement, rounded half up."""
    edit = f"deletion-{percent}"
    spans = reference_spans(label)
    gone = set(_chosen(label, edit, len(spans), percent, seed))
    kept = [place for place in range(len(spans)) if place not in gone]
    segments = tuple(_segment(spans, spans[place], (place,), exact=True) for place in kept)
    return EditedClip(label.clip_id, label.n_frames, edit, segments)


def merge(label: SegmentationLabel, percent: int, *, seed: int) -> EditedClip:
    """Join neighbouring signs in pairs, gap included; no sign joins twice.

    100% asks for floor(n / 2) pairs of a clip of n signs; a share of them is rounded half up.
    Pairs are taken in a random order where both signs are still single. Where that order leaves
    room for fewer pairs than asked, nothing in the clip is exact.
    """
    edit = f"merge-{percent}"
    spans = reference_spans(label)
    wanted = _rounded_share(len(spans) // 2, percent)
    order = _permutation(label, edit, max(len(spans) - 1, 0), seed)
    joined = _disjoint_neighbours(order, wanted)
    segments: list[EditedSegment] = []
    place = 0
    while place < len(spans):
        last = place + (place in joined)
        window = spans[place][0], spans[last][1]
        sources = tuple(range(place, last + 1))
        segments.append(_segment(spans, window, sources, exact=len(joined) == wanted))
        place = last + 1
    return EditedClip(label.clip_id, label.n_frames, edit, tuple(segments))


def split(label: SegmentationLabel, percent: int, *, seed: int) -> EditedClip:
    """Cut ``percent`` of the signs in two at their middle, the earlier half the shorter one.

    A sign of one frame cannot be cut; it stays whole and is not exact.
    """
    edit = f"split-{percent}"
    spans = reference_spans(label)
    cut = set(_chosen(label, edit, len(spans), percent, seed))
    segments: list[EditedSegment] = []
    for place, (start, end) in enumerate(spans):
        middle = start + (end - start) // 2
        whole = place not in cut or middle == start
        parts = [(start, end)] if whole else [(start, middle), (middle, end)]
        exact = place not in cut or not whole
        segments.extend(_segment(spans, part, (place,), exact=exact) for part in parts)
    return EditedClip(label.clip_id, label.n_frames, edit, tuple(segments))


def shrunk(span: FrameSpan, frames: int) -> FrameSpan:
    """Take frames off an interval, floor(frames / 2) of them at its start; one frame stays."""
    start, end = span
    taken = min(frames, end - start - 1)
    return start + taken // 2, end - (taken - taken // 2)


def grown(span: FrameSpan, frames: int) -> FrameSpan:
    """Add frames to an interval, floor(frames / 2) of them before its start."""
    start, end = span
    return start - frames // 2, end + (frames - frames // 2)


def edit_generator(seed: int, clip_id: str, edit: str) -> np.random.PCG64:
    """Return PCG64 seeded by SHA-256(seed NUL clip NUL edit), the three as UTF-8, seed decimal.

    Only raw 64-bit draws of it are used: NumPy promises their stream across versions.
    """
    digest = hashlib.sha256(f"{seed}\0{clip_id}\0{edit}".encode()).digest()
    return np.random.PCG64(int.from_bytes(digest, "big"))


def compared(spans: Sequence[FrameSpan], window: FrameSpan, sources: tuple[int, ...]) -> FrameSpan:
    """Return intersection and union, in frames, of a window and its sources."""
    shared = sum(
        max(0, min(window[1], spans[place][1]) - max(window[0], spans[place][0]))
        for place in sources
    )
    reference = sum(spans[place][1] - spans[place][0] for place in sources)
    return shared, window[1] - window[0] + reference - shared


def _segment(
    spans: Sequence[FrameSpan], window: FrameSpan, sources: tuple[int, ...], *, exact: bool
) -> EditedSegment:
    return EditedSegment(*window, sources, *compared(spans, window, sources), exact)


def _edited(
    label: SegmentationLabel,
    edit: str,
    spans: Sequence[FrameSpan],
    windows: Sequence[FrameSpan],
    exact: Sequence[bool],
) -> EditedClip:
    segments = tuple(
        _segment(spans, window, (place,), exact=flag)
        for place, (window, flag) in enumerate(zip(windows, exact, strict=True))
    )
    return EditedClip(label.clip_id, label.n_frames, edit, segments)


def _rooms(spans: Sequence[FrameSpan], n_frames: int) -> list[FrameSpan]:
    """Return how far each sign may reach: to the middle of each gap, rounded down."""
    middles = [(earlier[1] + later[0]) // 2 for earlier, later in pairwise(spans)]
    return list(zip([0, *middles], [*middles, n_frames], strict=True)) if spans else []


def _within(start: int, end: int, room: FrameSpan) -> FrameSpan:
    low, high = room
    start = min(max(start, low), high - 1)
    return start, min(max(end, start + 1), high)


def _draws(seed: int, clip_id: str, edit: str, count: int) -> NDArray[np.uint64]:
    return np.asarray(edit_generator(seed, clip_id, edit).random_raw(count), np.uint64)


def _permutation(label: SegmentationLabel, edit: str, count: int, seed: int) -> list[int]:
    draws = _draws(seed, label.clip_id, edit, count)
    return [int(place) for place in np.argsort(draws, kind="stable")]


def _chosen(label: SegmentationLabel, edit: str, count: int, percent: int, seed: int) -> list[int]:
    return _permutation(label, edit, count, seed)[: _rounded_share(count, percent)]


def _rounded_share(count: int, percent: int) -> int:
    if not 0 <= percent <= 100:
        raise MalformedDocument(f"edit: {percent}% is outside 0 to 100")
    return (2 * count * percent + 100) // 200


def _disjoint_neighbours(order: Sequence[int], wanted: int) -> set[int]:
    joined: set[int] = set()
    for place in order:
        if len(joined) < wanted and not joined & {place - 1, place, place + 1}:
            joined.add(place)
    return joined


def _check_size(edit: str, frames: int) -> None:
    if frames < 1:
        raise MalformedDocument(f"edit: {edit} by {frames} frames; it must be 1 or more")
