"""`piste replay`: the same image on the same sealed clips, outside quota and log."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from manifests.clips import parse_keypoints
from manifests.digests import sha256_hex
from manifests.encoding import Json, parse_json_object, readable_json
from manifests.errors import RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.runs import RunRecord
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.images.borrowed_image import borrowed_image
from orchestrator.keys.sealing_port import Purpose
from orchestrator.runs.admission import sealed_request
from orchestrator.runs.execute_run import ExecutedRun, RunHooks, execute_run
from orchestrator.runs.list_runs import require_run
from orchestrator.runs.prepare_run import PreparedRun, RunRequest, prepare_run
from orchestrator.runs.recover_runs import (
    RunIntent,
    forget_run,
    recover_runs,
    remember_run,
)
from orchestrator.runs.retained_runs import find_retained
from orchestrator.runs.rules.replay_comparison import (
    PredictionDifference,
    compare_environments,
    compare_figures,
    compare_poses,
    compare_predictions,
)
from orchestrator.runs.rules.run_files import (
    CONSUMER_ANSWERS,
    PREDICTIONS,
    PUBLIC_CARD,
    pose_clip,
    run_folder,
)
from orchestrator.runs.rules.verdict import Verdict
from orchestrator.runs.run_evidence import load_record
from orchestrator.runs.run_host import HOST_LOCK, RunHost
from orchestrator.runs.scoring_materials import (
    open_materials,
    pose_opener,
    scoring_task,
)
from orchestrator.scoring.rules.scoring import ScoringTask, score
from orchestrator.support.reporter import Reporter, Step
from orchestrator.workspace.workspace import Workspace
from scorers.translation import Poses


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay found; `figures` is None where the labels cannot be opened here."""

    record: RunRecord
    outcome: Outcome
    predictions: PredictionDifference
    consumer: PredictionDifference | None
    """Segmentation: the frozen consumer's answers; None where the edition has no consumer."""
    poses: PredictionDifference | None
    """Translation: predicted poses; None on the other tracks."""
    figures: Mapping[str, tuple[Json, Json]] | None
    environment: Mapping[str, tuple[object, object]]

    @property
    def holds(self) -> bool:
        """Tell whether the replay ended as the run did, with the same output and figures."""
        compared = (self.predictions, self.consumer, self.poses)
        return (
            self.outcome is self.record.outcome
            and all(each.agrees for each in compared if each is not None)
            and not self.figures
        )


def replay(
    workspace: Workspace, host: RunHost, run_id: str, image: str, reporter: Reporter
) -> Replay:
    """Run the image of a recorded run again and compare; nothing is written to log or quota.

    Raises:
        RefusedByPolicy: another image than the record's, or a profile that is not the recorded one.

    """
    require_run(workspace, run_id)
    with workspace.store.lock_run(HOST_LOCK):
        recover_runs(workspace, host.engine, reporter)
        reporter.step(Step.LOAD)
        record = load_record(workspace, run_id)
        sealed = load_sealed_edition(record.edition, store=workspace.store, ledger=workspace.ledger)
        request = sealed_request(workspace, sealed, image, reporter)
        executed = _execute(workspace, host, record, request, reporter)
    return _compare(workspace, record, sealed, *executed)


def _require_same(record: RunRecord, prepared: PreparedRun) -> None:
    found, recorded = prepared.image, record.image
    if (found.config_digest, found.config.diff_ids) != (recorded.config_digest, recorded.diff_ids):
        raise RefusedByPolicy(
            f"this image is {found.config_digest}, run {record.run_id} ran "
            f"{recorded.config_digest}; replay that one"
        )
    profile = prepared.request.profile.sha256()
    if profile != record.profile_sha256:
        raise RefusedByPolicy(
            f"the edition's profile is {profile[:16]}…, run {record.run_id} ran "
            f"under {record.profile_sha256[:16]}…; restore the edition's folder"
        )


def _execute(
    workspace: Workspace,
    host: RunHost,
    record: RunRecord,
    request: RunRequest,
    reporter: Reporter,
) -> tuple[PreparedRun, ExecutedRun]:
    """Run it under a name that the ledger never hears of, and that recovery finds after a kill."""
    name = secrets.token_hex(8)
    with workspace.store.lock_run(name):
        remember_run(workspace, RunIntent.begun(name, engine=host.engine))
        try:
            prepared = prepare_run(request, host=host, reporter=reporter, run_id=name)
            _require_same(record, prepared)
            remember_run(workspace, RunIntent.of(name, prepared.image, engine=host.engine))
            with borrowed_image(host.engine, prepared.image, reporter) as held:
                return prepared, execute_run(
                    prepared,
                    host=host,
                    clock=workspace.clock,
                    reporter=reporter,
                    hooks=RunHooks(brought_in=lambda images: held.came_as(images.entrant)),
                )
        finally:
            forget_run(workspace, name)


def _compare(
    workspace: Workspace,
    record: RunRecord,
    sealed: SealedEdition,
    prepared: PreparedRun,
    executed: ExecutedRun,
) -> Replay:
    folder = run_folder(record.run_id)
    verdict = executed.verdict
    retained = workspace.store.read_optional(f"{folder}/{PREDICTIONS}")
    answers = workspace.store.read_optional(f"{folder}/{CONSUMER_ANSWERS}")
    return Replay(
        record=record,
        outcome=verdict.outcome,
        predictions=compare_predictions(retained, raw=verdict.raw, canonical=verdict.canonical),
        consumer=None
        if prepared.consumer is None
        else compare_predictions(answers, raw=executed.consumer, canonical=executed.consumer),
        poses=_compare_poses(workspace, record, sealed, verdict),
        figures=_figures(workspace, record, verdict, executed.consumer),
        environment=compare_environments(record.environment, prepared.environment()),
    )


def _compare_poses(
    workspace: Workspace, record: RunRecord, sealed: SealedEdition, verdict: Verdict
) -> PredictionDifference | None:
    """Compare what the kept poses hold, not how they were sealed; None on the other tracks."""
    if sealed.edition.track != "translation":
        return None
    open_pose = pose_opener(sealed, workspace)
    kept = {}
    for name in record.files:
        clip = pose_clip(name)
        if clip is not None:
            path = f"{run_folder(record.run_id)}/{name}"
            kept[clip] = sha256_hex(open_pose(workspace.store.read(path), path))
    return compare_poses(kept, {clip: sha256_hex(data) for clip, data in _replayed(verdict)})


def _replayed(verdict: Verdict) -> Iterator[tuple[str, bytes]]:
    for name, data in (verdict.poses or {}).items():
        clip = pose_clip(name)
        if clip is not None:
            yield clip, data


def _with_replayed(task: ScoringTask, verdict: Verdict, consumer: bytes | None) -> ScoringTask:
    """Return the run's task with what the replay wrote in the place of what was retained."""
    poses = task.poses
    if poses is not None:
        replayed = {clip: parse_keypoints(data, source=clip) for clip, data in _replayed(verdict)}
        poses = Poses(hypothesis=replayed, reference=poses.reference)
    predictions = verdict.canonical or b""
    return replace(task, predictions=predictions, consumer=consumer, poses=poses)


def _figures(
    workspace: Workspace, record: RunRecord, verdict: Verdict, consumer: bytes | None
) -> dict[str, tuple[Json, Json]] | None:
    """Score the replay as the run was scored and return what differs."""
    card_file = f"{run_folder(record.run_id)}/{PUBLIC_CARD}"
    card = workspace.store.read_optional(card_file)
    scored = card is not None and verdict.outcome is Outcome.COMPLETED
    if not scored or not workspace.keyring.holds(Purpose.LABELS):
        return None
    document = parse_json_object(card or b"", source=card_file)
    materials = open_materials(workspace, record.edition, str(document["labels"]))
    retained = find_retained(record.run_id, ledger=workspace.ledger)
    task = scoring_task(materials, retained, store=workspace.store)
    again = score(_with_replayed(task, verdict, consumer))
    recorded = document["public"]
    assert isinstance(recorded, dict)
    found = parse_json_object(
        readable_json(again.public_document()["public"]), source="the replay's card"
    )
    return compare_figures(recorded, found)
