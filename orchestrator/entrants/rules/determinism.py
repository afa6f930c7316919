"""Answers that differ from one execution to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from manifests.encoding import parse_json_object
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.observations import Observation
from orchestrator.runs.rules.verdict import Verdict

_MOST_SHOWN = 8


def determinism(seen: Observation) -> Iterator[Finding]:
    """Find clips whose answers differ between repeats."""
    if not seen.differing_clips:
        return
    clips = seen.differing_clips
    more = "" if len(clips) <= _MOST_SHOWN else f" and {len(clips) - _MOST_SHOWN} more"
    yield Finding(
        cause=Cause.NON_DETERMINISTIC,
        certainty=Certainty.PROVEN,
        fact=f"it answered {len(clips)} clips differently when it was run again",
        remedy=(
            "seed every generator (random, numpy, torch), call model.eval(), and let nothing "
            "depend on time, thread order or the order of a folder's files"
        ),
        details=(f"clips {', '.join(clips[:_MOST_SHOWN])}{more}",),
    )


def differing_clips(first: Verdict, second: Verdict, clips: Sequence[str]) -> tuple[str, ...]:
    """Return the clips that two executions answered differently.

    Where one of them has no valid answers, all `clips` differ unless both ended in the same bytes.
    """
    if first.canonical is None or second.canonical is None:
        same = (first.outcome, first.raw) == (second.outcome, second.raw)
        same = same and first.canonical == second.canonical
        return () if same else tuple(clips)
    one, two = _answers(first), _answers(second)
    if first.outcome is not second.outcome:
        return tuple(clips)
    return tuple(clip for clip in clips if one.get(clip) != two.get(clip))


def _answers(verdict: Verdict) -> dict[str, tuple[bytes, bytes | None]]:
    """Return clip → its canonical line and its pose file."""
    poses = verdict.poses or {}
    found = {}
    for line in (verdict.canonical or b"").splitlines():
        clip = str(parse_json_object(line, source="predictions.jsonl")["clip_id"])
        found[clip] = (line, poses.get(f"pose/{clip}.npy"))
    return found
