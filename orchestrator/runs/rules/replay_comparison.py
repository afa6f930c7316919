"""Compare a replay with the run it repeats: predictions, figures, environment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from manifests.encoding import Json, parse_json_object

SHOWN_CLIPS = 20
_VOLATILE = frozenset({"engine_id", "advisories"})


class Agreement(StrEnum):
    """How far the replayed predictions agree with the retained ones."""

    BYTE_IDENTICAL = "byte-identical"
    CANONICAL = "equal after canonical form"
    DIFFERENT = "different"
    NOTHING = "no predictions to compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionDifference:
    """How many answers differ: signs, sentences or segments, and in which clips."""

    agreement: Agreement
    positions: int = 0
    differing: int = 0
    clips: tuple[str, ...] = field(default=())
    """The first clips that differ, by name."""

    @property
    def agrees(self) -> bool:
        """Tell whether both sides say the same, however it was written."""
        return self.agreement is not Agreement.DIFFERENT


def compare_predictions(
    retained: bytes | None, *, raw: bytes | None, canonical: bytes | None
) -> PredictionDifference:
    """Compare the retained canonical file with a replay's raw and canonical bytes.

    A position is one sign, one sentence or one segment; answers beyond the shorter list differ.
    """
    if retained is None or canonical is None:
        same = retained is canonical
        return PredictionDifference(agreement=Agreement.NOTHING if same else Agreement.DIFFERENT)
    if raw == retained:
        return PredictionDifference(agreement=Agreement.BYTE_IDENTICAL)
    if canonical == retained:
        return PredictionDifference(agreement=Agreement.CANONICAL)
    return _differences(_answers(retained), _answers(canonical))


def _answers(data: bytes) -> dict[str, list[Json]]:
    """Return each clip's answers in order; a sentence is a list of one."""
    found: dict[str, list[Json]] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        document = parse_json_object(line, source=f"predictions line {number}")
        values = next((v for k, v in document.items() if k != "clip_id"), None)
        found[str(document["clip_id"])] = values if isinstance(values, list) else [values]
    return found


def _differences(
    first: Mapping[str, list[Json]], second: Mapping[str, list[Json]]
) -> PredictionDifference:
    positions = differing = 0
    clips = []
    for clip in sorted(first.keys() | second.keys()):
        ours, theirs = first.get(clip, []), second.get(clip, [])
        longest = max(len(ours), len(theirs))
        equal = sum(a == b for a, b in zip(ours, theirs, strict=False))
        positions += longest
        differing += longest - equal
        if equal != longest:
            clips.append(clip)
    return PredictionDifference(
        agreement=Agreement.DIFFERENT,
        positions=positions,
        differing=differing,
        clips=tuple(clips[:SHOWN_CLIPS]),
    )


def compare_poses(retained: Mapping[str, str], replayed: Mapping[str, str]) -> PredictionDifference:
    """Compare predicted poses; both map a clip to its file's SHA-256. A position is one clip."""
    names = sorted(retained.keys() | replayed.keys())
    if not names:
        return PredictionDifference(agreement=Agreement.NOTHING)
    unequal = [name for name in names if retained.get(name) != replayed.get(name)]
    return PredictionDifference(
        agreement=Agreement.DIFFERENT if unequal else Agreement.BYTE_IDENTICAL,
        positions=len(names),
        differing=len(unequal),
        clips=tuple(unequal[:SHOWN_CLIPS]),
    )


def compare_figures(
    recorded: Mapping[str, Json], replayed: Mapping[str, Json]
) -> dict[str, tuple[Json, Json]]:
    """Return the public figures that differ, each with its recorded and its replayed value."""
    names = sorted(recorded.keys() | replayed.keys())
    return {
        name: (recorded.get(name), replayed.get(name))
        for name in names
        if recorded.get(name) != replayed.get(name)
    }


def compare_environments(
    recorded: Mapping[str, object], found: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Return what differs between the recorded environment and this one, identities left out."""
    names = sorted((recorded.keys() | found.keys()) - _VOLATILE)
    return {
        name: (recorded.get(name), found.get(name))
        for name in names
        if recorded.get(name) != found.get(name)
    }
