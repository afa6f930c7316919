"""Attempts to reach a network, of which there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from manifests.outcomes import Outcome
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.log_reading import Match
from orchestrator.entrants.rules.observations import Observation

_SYMPTOM: Final = re.compile(
    r"gaierror|Temporary failure in name resolution|Name or service not known"
    r"|Network is unreachable|No route to host|Could not resolve host|Max retries exceeded"
    r"|NameResolutionError|LocalEntryNotFoundError|OfflineModeIsEnabled|offline mode is enabled"
    r"|URLError|bad address|Cannot assign requested address",
    re.IGNORECASE,
)
_HUB: Final = re.compile(
    r"huggingface|hf_hub|transformers|LocalEntryNotFound|offline", re.IGNORECASE
)


def network(seen: Observation) -> Iterator[Finding]:
    """Find attempts by the log's words and by the namespace's own counters."""
    said, count = seen.log.find(_SYMPTOM), seen.network_attempts
    if said is None and not count:
        return
    counted = "" if not count else f" ({count} attempts counted)"
    yield Finding(
        cause=Cause.NETWORK,
        certainty=_certainty(seen, said, count),
        fact=f"it tried to reach a network; a run has none{counted}",
        remedy=_remedy(said),
        details=() if said is None else (said.line,),
    )


def _certainty(seen: Observation, said: Match | None, count: int | None) -> Certainty:
    """Tell how sure it is: what waits for a server until it is killed is the network's matter."""
    if said is None:
        waited = seen.outcome is Outcome.TIMED_OUT and bool(count)
        return Certainty.PROVEN if waited else Certainty.SAID
    if count and (said.certainty is Certainty.LAST_WORDS or seen.outcome is Outcome.TIMED_OUT):
        return Certainty.PROVEN
    return said.certainty


def _remedy(said: Match | None) -> str:
    remedy = "put weights and data into the image when it is built, and load them by their path"
    if said is not None and _HUB.search(said.line):
        return (
            f"{remedy}; for the Hugging Face hub set ENV HF_HOME=/opt/hf in the Dockerfile and "
            "download there during the build"
        )
    return f"{remedy}; switch telemetry and version checks off"
