"""Walk through untrusted JSON lines within fixed bounds, one clip per line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from manifests.encoding import Json, parse_json_object
from manifests.errors import MalformedDocument
from manifests.predictions.problems import EntryFault, PredictionProblem, ProblemKind
from manifests.text import escape_untrusted

Entry = TypeVar("Entry")

MIB = 1024 * 1024

_CLIP_ID = re.compile(rb'"clip_id"\s*:\s*"([A-Za-z0-9_-]{1,64})"')
_JSON_PLACE = re.compile(r":? ?(?:starting at)?: line 1 column ([0-9]+) \(char [0-9]+\)\Z")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionLimits:
    """How much of a hostile file is read.

    Memory while reading stays within a small multiple of one line beyond what is kept, and what
    is kept is bounded by the exam: one entry for each of its clips.
    """

    max_bytes: int = 64 * MIB
    max_line_bytes: int = MIB
    max_depth: int = 8
    max_problems: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipExpectation:
    """What is known about a clip before its predictions are read; None where it does not matter."""

    n_segments: int | None = None
    """Recognition: how many segments were given."""
    n_frames: int | None = None
    """Segmentation and poses: how many frames the clip has."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[Entry]):
    """What a file holds: valid entries by rising clip id, and the first problems by line."""

    entries: tuple[Entry, ...]
    problems: tuple[PredictionProblem, ...]

    @property
    def valid(self) -> bool:
        """Tell whether nothing invalidates the file; clips may be missing."""
        return not any(problem.invalidates for problem in self.problems)

    @property
    def complete(self) -> bool:
        """Tell whether the file is valid and no clip is missing."""
        return not self.problems

    def valid_entries(self) -> tuple[Entry, ...]:
        """Return the entries of a valid file, complete or not.

        Raises:
            MalformedDocument: with the message of the first problem that invalidates the file.

        """
        for problem in self.problems:
            if problem.invalidates:
                raise MalformedDocument(problem.message)
        return self.entries


def read_lines(
    data: bytes,
    *,
    source: str,
    clips: Mapping[str, ClipExpectation],
    read_entry: Callable[[str, dict[str, Json]], Entry],
    limits: PredictionLimits,
) -> Reading[Entry]:
    """Read one entry per line with `read_entry`, which raises `EntryFault`.

    Never raises for what `data` holds. Reading stops at `limits.max_problems`; missing clips are
    reported only when the whole file was read.
    """
    if len(data) > limits.max_bytes:
        fact = f"{source}: {len(data)} bytes; at most {limits.max_bytes} are allowed"
        return Reading((), (PredictionProblem(ProblemKind.FILE_TOO_LARGE, None, None, fact),))
    walk = _Walk(source, clips, read_entry, limits)
    for number, line in _lines(data, limits.max_line_bytes):
        walk.take(number, line)
        if len(walk.problems) >= limits.max_problems:
            return walk.reading()
    walk.note_missing()
    return walk.reading()


def _lines(data: bytes, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield line numbers from 1 and lines without their end, one byte beyond the limit at most."""
    position = number = 0
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        number += 1
        yield number, data[position : min(end, position + max_line_bytes + 1)]
        position = end + 1


class _Walk(Generic[Entry]):
    """Gathers entries and problems while lines pass by."""

    def __init__(
        self,
        source: str,
        clips: Mapping[str, ClipExpectation],
        read_entry: Callable[[str, dict[str, Json]], Entry],
        limits: PredictionLimits,
    ) -> None:
        self.problems: list[PredictionProblem] = []
        self._entries: dict[str, Entry] = {}
        self._seen: dict[str, int] = {}
        self._mentioned: set[str] = set()
        self._source, self._clips = source, clips
        self._read_entry, self._limits = read_entry, limits

    def take(self, number: int, line: bytes) -> None:
        """Read one line: it becomes an entry or a problem."""
        clip_id: str | None = None
        try:
            document = self._document(number, line)
            clip_id = self._clip_id(number, document)
            self._entries[clip_id] = self._read_entry(clip_id, document)
        except EntryFault as fault:
            shown = clip_id or _clip_id_within(line)
            named = f", clip {shown}" if shown else ""
            if shown:
                self._mentioned.add(shown)
            message = f"{self._source}:{number}{named}: {fault}"
            self.problems.append(PredictionProblem(fault.kind, shown, number, message))

    def _document(self, number: int, line: bytes) -> dict[str, Json]:
        if len(line) > self._limits.max_line_bytes:
            bound = self._limits.max_line_bytes
            raise EntryFault(ProblemKind.LINE_TOO_LONG, f"more than {bound} bytes in a line")
        if not line.strip():
            raise EntryFault(ProblemKind.BLANK_LINE, "a blank line; write one object per line")
        if _depth(line) > self._limits.max_depth:
            bound = self._limits.max_depth
            raise EntryFault(ProblemKind.TOO_DEEP, f"nested deeper than {bound} levels")
        place = f"{self._source}:{number}"
        try:
            return parse_json_object(line, source=place)
        except MalformedDocument as error:
            fact = _JSON_PLACE.sub(r" at column \1", str(error).removeprefix(f"{place}: "))
            raise EntryFault(ProblemKind.NOT_JSON, fact) from error

    def _clip_id(self, number: int, document: dict[str, Json]) -> str:
        if "clip_id" not in document:
            raise EntryFault(ProblemKind.MISSING_FIELD, "the field clip_id is missing")
        clip_id = document["clip_id"]
        if not isinstance(clip_id, str):
            raise EntryFault(ProblemKind.WRONG_TYPE, "clip_id is not a string; write it in quotes")
        if clip_id not in self._clips:
            shown = escape_untrusted(clip_id, 64)
            fact = f'"{shown}" is not one of the {len(self._clips)} clips asked for (exam.json)'
            raise EntryFault(ProblemKind.UNKNOWN_CLIP, fact)
        if clip_id in self._seen:
            fact = f"clip {clip_id} stands on line {self._seen[clip_id]} already; write it once"
            raise EntryFault(ProblemKind.DUPLICATE_CLIP, fact)
        self._seen[clip_id] = number
        return clip_id

    def note_missing(self) -> None:
        """Record, as one problem, that clips of the exam have no line."""
        missing = sorted(self._clips.keys() - self._seen.keys() - self._mentioned)
        if missing:
            message = (
                f"{self._source}: {len(missing)} of {len(self._clips)} clips have no line, the "
                f"first is {missing[0]}; a run is scored only when every clip has one"
            )
            kind = ProblemKind.MISSING_CLIP
            self.problems.append(PredictionProblem(kind, missing[0], None, message))

    def reading(self) -> Reading[Entry]:
        """Return what was gathered."""
        entries = tuple(self._entries[clip_id] for clip_id in sorted(self._entries))
        return Reading(entries, tuple(self.problems))


def _clip_id_within(line: bytes) -> str | None:
    """Return the clip that a broken line seems to be about, to help its author find it."""
    match = _CLIP_ID.search(line)
    return match[1].decode("ascii") if match else None


def _depth(line: bytes) -> int:
    """Return how deep brackets nest in `line`, those inside strings left out."""
    brackets = _STRING.sub(b"", line).translate(None, delete=_ALL_BUT_BRACKETS)
    codes = np.frombuffer(brackets, dtype=np.uint8)
    steps = np.where((codes == ord("[")) | (codes == ord("{")), 1, -1)
    return int(steps.cumsum().max(initial=0))


def check_fields(document: Mapping[str, Json], *, required: str, optional: str = "") -> None:
    """Raise `EntryFault` unless `document` has the fields `required` and no others.

    Both are names with spaces between them, in the order in which a message lists them.
    """
    names = required.split()
    missing = [name for name in names if name not in document]
    if missing:
        raise EntryFault(ProblemKind.MISSING_FIELD, f"the field {missing[0]} is missing")
    unknown = sorted(document.keys() - {*names, *optional.split()})
    if unknown:
        shown = escape_untrusted(unknown[0], 40)
        allowed = ", ".join([*names, *optional.split()])
        fact = f'the field "{shown}" is unknown; the fields are {allowed}'
        raise EntryFault(ProblemKind.UNKNOWN_FIELD, fact)
