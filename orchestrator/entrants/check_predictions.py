"""Check a predictions file against a folder of clips, without Docker, as a run would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from manifests.annotations import parse_epee_annotation
from manifests.digests import sha256_hex
from manifests.editions import Track
from manifests.encoding import Json, parse_json_object
from manifests.errors import MalformedDocument
from manifests.outcomes import Diagnostic
from manifests.predictions.lines import ClipExpectation, PredictionLimits
from manifests.predictions.problems import PredictionProblem
from manifests.predictions.translation import pose_problem
from manifests.text import escape_untrusted
from orchestrator.editions.ports import ClipFolder
from orchestrator.scoring.rules.assessment import Assessment, assess_predictions

MAX_PROBLEMS: Final = 10_000
"""Beyond these nobody reads on; a dry run stops at twenty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionsReport:
    """What a run with these predictions would record, and every reason for it."""

    track: Track
    clips: int
    problems: tuple[PredictionProblem, ...]
    missing: tuple[str, ...]
    """Clips without a line; known only of a file that is valid otherwise."""
    notes: tuple[str, ...]
    """What is allowed and still may not be meant."""
    diagnostic: Diagnostic | None
    predictions_sha256: str | None
    """Of the canonical form, as the record would have it; None where the file is invalid."""

    @property
    def holds(self) -> bool:
        """Tell whether the predictions would be scored."""
        return self.diagnostic is None


def check_predictions(
    data: bytes,
    folder: ClipFolder,
    *,
    track: Track,
    source: str,
    poses: Iterable[tuple[str, bytes]] = (),
) -> PredictionsReport:
    """Judge the bytes of a predictions file, and translation's `poses` as (file name, bytes).

    Raises:
        MalformedDocument: the folder is not in the Épée layout; never for what `data` holds.

    """
    clips = {clip_id: _expectation(folder, clip_id, track) for clip_id in folder.clip_ids()}
    limits = PredictionLimits(max_problems=MAX_PROBLEMS)
    assessment = assess_predictions(track, data, clips=clips, limits=limits, source=source)
    wrong_poses = tuple(_pose_problems(poses, clips))
    entries = _entries(assessment)
    return PredictionsReport(
        track=track,
        clips=len(clips),
        problems=(*assessment.problems, *wrong_poses),
        missing=tuple(sorted(clips.keys() - entries.keys())) if entries is not None else (),
        notes=tuple(_notes(track, entries or {}, clips)),
        diagnostic=Diagnostic.PREDICTIONS_FORMAT if wrong_poses else assessment.diagnostic,
        predictions_sha256=None
        if assessment.canonical is None
        else sha256_hex(assessment.canonical),
    )


def _expectation(folder: ClipFolder, clip_id: str, track: Track) -> ClipExpectation:
    place = f"{folder.place}/annotations/{clip_id}.json"
    clip = parse_epee_annotation(folder.annotation(clip_id), source=place)
    if clip.clip_id != clip_id:
        shown = escape_untrusted(clip.clip_id, 64)
        raise MalformedDocument(f"{place}: says clip_id {shown}; name file and clip alike")
    if track == "recognition" and not clip.segments:
        raise MalformedDocument(f"{place}: no segments; recognition needs one sign at least")
    return ClipExpectation(n_segments=len(clip.segments), n_frames=clip.n_frames)


def _pose_problems(
    poses: Iterable[tuple[str, bytes]], clips: Mapping[str, ClipExpectation]
) -> Iterator[PredictionProblem]:
    for name, data in poses:
        problem = pose_problem(name, data, clips=clips)
        if problem is not None:
            yield problem


def _entries(assessment: Assessment) -> dict[str, dict[str, Json]] | None:
    """Return the canonical entries by clip, or None for an invalid file."""
    if assessment.canonical is None:
        return None
    lines = assessment.canonical.splitlines()
    entries = (parse_json_object(line, source="canonical predictions") for line in lines)
    return {str(entry["clip_id"]): entry for entry in entries}


def _notes(
    track: Track,
    entries: Mapping[str, Mapping[str, Json]],
    clips: Mapping[str, ClipExpectation],
) -> Iterator[str]:
    match track:
        case "recognition":
            short = [
                clip_id
                for clip_id, entry in entries.items()
                if len(_list(entry["signs"])) < (clips[clip_id].n_segments or 0)
            ]
            yield from _note(short, entries, "has fewer signs than segments", "the rest is wrong")
        case "translation":
            empty = [clip_id for clip_id, entry in entries.items() if not entry["text"]]
            yield from _note(empty, entries, "has an empty text", "it is scored as it is")
        case "segmentation":
            none = [clip_id for clip_id, entry in entries.items() if not entry["segments"]]
            yield from _note(none, entries, "has no segment", "every sign in it is missed")
        case _:
            assert_never(track)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _note(
    clips: list[str], entries: Mapping[str, object], fact: str, consequence: str
) -> Iterator[str]:
    if clips:
        yield (
            f"{len(clips)} of {len(entries)} answered clips: each {fact}, the first is {clips[0]}; "
            f"{consequence}"
        )
