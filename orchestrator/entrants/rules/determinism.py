"""Answers that differ from one execution to the next."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.observations import Observation

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
