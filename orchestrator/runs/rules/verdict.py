"""From an execution to a verdict: what a certified run records and a dry run foretells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manifests.editions import Track
from manifests.encoding import parse_json_object
from manifests.outcomes import Diagnostic, Outcome
from manifests.predictions.lines import ClipExpectation
from manifests.predictions.problems import PredictionProblem
from manifests.predictions.translation import pose_problem
from orchestrator.scoring.rules.assessment import PREDICTIONS_FILE, Assessment, assess_predictions


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a run ends once its predictions were read.

    `canonical` are the bytes to keep, hash and score, None for an invalid file; `raw` is the file
    as it came. `poses` maps `pose/<clip>.npy` to valid files. `problems` are for a dry run's eyes.
    """

    outcome: Outcome
    diagnostics: tuple[Diagnostic, ...]
    canonical: bytes | None = None
    raw: bytes | None = None
    poses: Mapping[str, bytes] | None = None
    problems: tuple[PredictionProblem, ...] = ()


def judge_output(
    track: Track,
    *,
    outcome: Outcome,
    diagnostics: tuple[Diagnostic, ...],
    files: Mapping[str, bytes],
    clips: Mapping[str, ClipExpectation],
) -> Verdict:
    """Validate what was collected, whatever the outcome: predictions are kept of every run.

    Only a `completed` execution can still become `invalid-predictions`.
    """
    data = files.get(PREDICTIONS_FILE)
    if data is None:
        return Verdict(outcome=outcome, diagnostics=diagnostics)
    assessment = assess_predictions(track, data, clips=clips)
    poses, pose_problems = _poses(track, files, clips)
    problems = (*assessment.problems, *pose_problems)
    code = _code(assessment, pose_problems)
    if outcome is Outcome.COMPLETED and code is not None:
        outcome, diagnostics = Outcome.INVALID_PREDICTIONS, (*diagnostics, code)
    return Verdict(
        outcome=outcome,
        diagnostics=diagnostics,
        canonical=assessment.canonical,
        raw=data,
        poses=poses,
        problems=problems,
    )


def _code(
    assessment: Assessment, pose_problems: tuple[PredictionProblem, ...]
) -> Diagnostic | None:
    if pose_problems:
        return Diagnostic.PREDICTIONS_FORMAT
    return assessment.diagnostic


def _poses(
    track: Track, files: Mapping[str, bytes], clips: Mapping[str, ClipExpectation]
) -> tuple[dict[str, bytes], tuple[PredictionProblem, ...]]:
    if track != "translation":
        return {}, ()
    named = {name: data for name, data in files.items() if name.startswith("pose/")}
    found = {
        name: pose_problem(name.removeprefix("pose/"), data, clips=clips)
        for name, data in named.items()
    }
    problems = tuple(problem for problem in found.values() if problem is not None)
    return {name: named[name] for name, problem in found.items() if problem is None}, problems


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
