"""Show what a replay found."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from manifests.text import escape_untrusted
from orchestrator.runs.replay import Replay
from orchestrator.runs.rules.replay_comparison import PredictionDifference


def _difference(found: PredictionDifference | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "agreement": found.agreement.value,
        "positions": found.positions,
        "differing": found.differing,
        "clips": list(found.clips),
    }


def replay_document(found: Replay) -> dict[str, object]:
    """Return a replay as one JSON document."""
    figures = None
    if found.figures is not None:
        figures = {name: list(pair) for name, pair in found.figures.items()}
    return {
        "run_id": found.record.run_id,
        "holds": found.holds,
        "outcome": {"recorded": found.record.outcome.value, "replayed": found.outcome.value},
        "predictions": _difference(found.predictions),
        "consumer": _difference(found.consumer),
        "poses": _difference(found.poses),
        "figures": figures,
        "environment": {name: list(pair) for name, pair in found.environment.items()},
    }


def _shown(value: object) -> str:
    return escape_untrusted(str(value), 60)


def _predictions_line(found: PredictionDifference) -> str:
    if not found.differing:
        return found.agreement.value
    clips = ", ".join(found.clips[:5]) + (" …" if len(found.clips) > 5 else "")
    return f"{found.differing} of {found.positions} positions differ, in {clips}"


def replay_summary(found: Replay) -> RenderableType:
    """Return what agrees and what does not."""
    verdict = ("the replay agrees", "bold green") if found.holds else ("it differs", "bold red")
    grid = Table.grid(padding=(0, 2))
    grid.add_row("outcome", f"{found.outcome.value}, recorded {found.record.outcome.value}")
    grid.add_row("predictions", _predictions_line(found.predictions))
    if found.consumer is not None:
        grid.add_row("consumer", _predictions_line(found.consumer))
    if found.poses is not None:
        grid.add_row("poses", _predictions_line(found.poses))
    if found.figures is None:
        grid.add_row("figures", "not compared: no card, or no label identity here")
    elif not found.figures:
        grid.add_row("figures", "equal to the last digit")
    for name, (recorded, replayed) in (found.figures or {}).items():
        grid.add_row(name, f"{_shown(recorded)} then, {_shown(replayed)} now")
    for name, (before, now) in found.environment.items():
        grid.add_row(f"environment: {name}", f"{_shown(before)} then, {_shown(now)} now")
    return Group(Text(*verdict), grid)
