"""A whole small workspace with evidence: sealed editions, runs of every kind, later labels.

Everything goes through the product's own use cases but the container itself, whose end is made up.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

from manifests.digests import sha256_hex
from manifests.encoding import canonical_json
from manifests.labels import RecognitionLabel
from manifests.outcomes import Diagnostic, Outcome
from manifests.statements import ImageRemoved, RunFinished, RunReserved, RunStarted, RunVoided
from orchestrator.board.rescore import rescore
from orchestrator.editions.labels_add import LabelTools, add_labels
from orchestrator.editions.open_labels import open_labels, open_salted_labels
from orchestrator.editions.reveal import RevealTools, reveal_edition
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.evidence.export import ExportRequest, export_bundle
from orchestrator.evidence.files.evidence_source import LEDGER_FILE, open_evidence
from orchestrator.evidence.files.staged_tar import stage_tar
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Result
from orchestrator.evidence.verify import Report, VerifyRequest, verify_evidence
from orchestrator.evidence.verify_editions import GivenLabels
from orchestrator.keys.sealing_port import Purpose
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.sql.sql_store import open_sql_ledger
from orchestrator.runs.run_evidence import write_evidence
from orchestrator.runs.score_run import score_run
from orchestrator.samples.files.sample_folder import SampleFolder
from orchestrator.samples.sample_edition import SampleRequest, make_sample_edition
from orchestrator.support.reporter import SilentReporter
from orchestrator.wiring.keys import rotate
from orchestrator.wiring.workspaces import create_workspace, open_workspace, seal
from orchestrator.workspace.add_team import add_team
from orchestrator.workspace.files.workspace_files import open_workspace as open_files
from orchestrator.workspace.workspace import Workspace
from tests.support.synthetic_ledger import image_identity

OPENS = datetime(2026, 1, 1, tzinfo=UTC)
CLOSES = datetime(2026, 7, 1, tzinfo=UTC)
EDITION = "sample-final-2026"
OTHER_EDITION = "sample-other-2026"
SECRET_LOG = b"a line of the log that could carry a clip"
ORIGIN = "example.org/piste"


@dataclass
class SteppingClock:
    """A clock that a scenario sets; each look is one second later."""

    moment: datetime = field(default_factory=lambda: datetime(2026, 3, 1, tzinfo=UTC))

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment

    def monotonic(self) -> float:
        return 0.0


@dataclass
class Scenario:
    """A workspace under construction, and the ids of its runs by name."""

    root: Path
    clock: SteppingClock = field(default_factory=SteppingClock)
    runs: dict[str, str] = field(default_factory=dict)
    retired: SigningKeys | None = None
    """The keys from before a rotation."""

    def open(self) -> Workspace:
        return replace(open_workspace(self.root), clock=self.clock)

    def edition(self, name: str) -> SealedEdition:
        workspace = self.open()
        return load_sealed_edition(name, store=workspace.store, ledger=workspace.ledger)


def new_scenario(root: Path, *, clips: int = 3) -> Scenario:
    """Make a workspace with two teams and the sealed edition `EDITION`."""
    create_workspace(root, origin=ORIGIN)
    scenario = Scenario(root)
    seal_sample(scenario, EDITION, clips=clips)
    workspace = scenario.open()
    for team in ("nova", "lumen"):
        add_team(
            team,
            organizer=False,
            data_track="open-data",
            ledger=workspace.ledger,
            clock=scenario.clock,
        )
    return scenario


def seal_sample(scenario: Scenario, name: str, *, clips: int = 3) -> None:
    """Seal another sample edition into the workspace."""
    source = scenario.root.parent / f"source-{scenario.root.name}-{name}"
    request = SampleRequest(edition=name, opens=OPENS, closes=CLOSES, clips=clips)
    make_sample_edition(SampleFolder(source), request)
    document = source / "edition.yaml"
    text = document.read_text(encoding="utf-8")
    document.write_text(
        text.replace('version: "2.1"}', 'version: "2.1", resamples: 100}'), encoding="utf-8"
    )
    seal(scenario.open(), document, SilentReporter())


def add_run(
    scenario: Scenario,
    name: str,
    *,
    team: str = "nova",
    edition: str = EDITION,
    outcome: Outcome = Outcome.COMPLETED,
    wrong: int = 0,
) -> str:
    """Append a whole run, keep its files, score it, and write its evidence; return its id."""
    run_id = reserve(scenario, name, team=team, edition=edition)
    workspace, folder = scenario.open(), f"runs/{run_id}"
    effective = canonical_json({"HostConfig": {"NetworkMode": "none"}, "run": run_id})
    workspace.store.replace(f"{folder}/effective.json", effective)
    start(scenario, run_id, team=team, edition=edition, effective=effective)
    plan = scenario.edition(edition).seal.recipients.clips
    kept = {"log.age": workspace.sealer.seal(SECRET_LOG, plan)}
    if outcome is Outcome.COMPLETED:
        kept["predictions.jsonl"] = answers(scenario, edition, wrong=wrong)
    for file, data in kept.items():
        workspace.store.replace(f"{folder}/{file}", data)
    kept["effective.json"] = effective
    files = {file: sha256_hex(data) for file, data in kept.items()}
    workspace.ledger.append(
        RunFinished(
            at=scenario.clock.now(),
            run_id=run_id,
            edition=edition,
            team=team,
            outcome=outcome,
            diagnostics=() if outcome is Outcome.COMPLETED else (Diagnostic.EXIT_FAILURE,),
            predictions_sha256=files.get("predictions.jsonl"),
            files=files,
            elapsed_s=12,
        )
    )
    _remove_image(scenario, run_id, team=team, edition=edition)
    if outcome is Outcome.COMPLETED:
        score_run(workspace, run_id)
    write_evidence(workspace, run_id)
    return run_id


def reserve(scenario: Scenario, name: str, *, team: str = "nova", edition: str = EDITION) -> str:
    """Append a reservation alone."""
    run_id = secrets.token_hex(8)
    workspace, sealed = scenario.open(), scenario.edition(edition).statement
    earlier = workspace.ledger.entries(edition=edition, team=team, kind="run-reserved")
    workspace.ledger.append(
        RunReserved(
            at=scenario.clock.now(),
            run_id=run_id,
            edition=edition,
            team=team,
            attempt=sum(1 for _ in earlier) + 1,
            host="host-1",
            image=image_identity(),
            profile_sha256=sealed.profile_sha256,
            clip_set_sha256=sealed.clip_set_sha256,
            deadline_s=3600,
        )
    )
    scenario.runs[name] = run_id
    return run_id


def start(scenario: Scenario, run_id: str, *, team: str, edition: str, effective: bytes) -> None:
    """Append the start of a reserved run: from here it counts."""
    scenario.open().ledger.append(
        RunStarted(
            at=scenario.clock.now(),
            run_id=run_id,
            edition=edition,
            team=team,
            container_id=sha256_hex(run_id.encode()),
            effective_sha256=sha256_hex(effective),
            environment={"docker": "28.5.2", "kernel": "6.1.0-40-amd64", "gpu": None},
        )
    )


def void(scenario: Scenario, name: str, *, team: str = "nova", edition: str = EDITION) -> None:
    """Void a run and write its evidence."""
    workspace, run_id = scenario.open(), scenario.runs[name]
    workspace.ledger.append(
        RunVoided(
            at=scenario.clock.now(),
            run_id=run_id,
            edition=edition,
            team=team,
            reason="the power went",
            by="organizer",
        )
    )
    write_evidence(workspace, run_id)


def _remove_image(scenario: Scenario, run_id: str, *, team: str, edition: str) -> None:
    identity = image_identity()
    scenario.open().ledger.append(
        ImageRemoved(
            at=scenario.clock.now(),
            run_id=run_id,
            edition=edition,
            team=team,
            config_digest=identity.config_digest,
            engine_image_id=identity.engine_image_id,
            gone=True,
            images_before=3,
            images_after=2,
        )
    )


def answers(scenario: Scenario, edition: str, *, wrong: int) -> bytes:
    """Return predictions that are right but for the first sign of `wrong` clips."""
    workspace, sealed = scenario.open(), scenario.edition(edition)
    labels = open_labels(
        sealed,
        sealed.statement.labels,
        store=workspace.store,
        unsealer=workspace.keyring.unsealer(Purpose.LABELS),
    )
    lines = []
    for number, label in enumerate(labels.entries):
        assert isinstance(label, RecognitionLabel)
        signs = [
            {"candidates": [gloss], "confidence": round(0.9 - place / 100, 2)}
            for place, gloss in enumerate(label.glosses)
        ]
        if number < wrong:
            signs[0] = {"candidates": ["UNKNOWN"], "confidence": 0.5}
        lines.append(canonical_json({"clip_id": label.clip_id, "signs": signs}) + b"\n")
    return b"".join(lines)


def salted_labels(scenario: Scenario, *, edition: str = EDITION) -> bytes:
    """Return the edition's first label version as it will be revealed."""
    workspace, sealed = scenario.open(), scenario.edition(edition)
    return open_salted_labels(
        sealed,
        sealed.statement.labels,
        store=workspace.store,
        unsealer=workspace.keyring.unsealer(Purpose.LABELS),
    )


def add_second_labels(scenario: Scenario, *, edition: str = EDITION) -> None:
    """Add `labels-v2`, which differs in one sign, and score every run on it."""
    workspace = scenario.open()
    lines = salted_labels(scenario, edition=edition).splitlines(keepends=True)[1:]
    changed = lines[0].replace(b'"glosses":["', b'"glosses":["NEW-', 1)
    tools = LabelTools(
        store=workspace.store,
        ledger=workspace.ledger,
        sealer=workspace.sealer,
        unsealer=workspace.keyring.unsealer(Purpose.LABELS),
        clock=scenario.clock,
    )
    add_labels(
        edition,
        "labels-v2",
        b"".join([changed, *lines[1:]]),
        source="labels-v2.jsonl",
        note="one sign read again",
        tools=tools,
    )
    rescore(workspace, edition, "labels-v2")


def rotate_run_key(scenario: Scenario) -> None:
    """Let the run key give way to a new one."""
    scenario.retired = scenario.open().signing
    rotate(scenario.root, "run", reason="yearly")


def reveal(scenario: Scenario, *, edition: str = EDITION) -> None:
    """Close the edition and reveal it."""
    scenario.clock.moment = CLOSES + timedelta(days=1)
    workspace = scenario.open()
    tools = RevealTools(
        store=workspace.store,
        ledger=workspace.ledger,
        keyring=workspace.keyring,
        clock=scenario.clock,
    )
    reveal_edition(edition, tools)


def make_story(root: Path) -> Scenario:
    """Make a workspace with everything an auditor can meet."""
    scenario = new_scenario(root)
    add_run(scenario, "first", wrong=1)
    add_run(scenario, "voided", wrong=2)
    void(scenario, "voided")
    add_run(scenario, "crashed", team="lumen", outcome=Outcome.NONZERO_EXIT)
    add_second_labels(scenario)
    rotate_run_key(scenario)
    seal_sample(scenario, OTHER_EDITION)
    add_run(scenario, "second")
    add_run(scenario, "other", edition=OTHER_EDITION)
    reserve(scenario, "pending", team="lumen")
    return scenario


def export(scenario: Scenario, target: str, path: Path, **options: bool) -> Path:
    """Export a run or an edition as the command does."""
    with stage_tar(path) as staged:
        export_bundle(
            ExportRequest(target=target, **options),
            store=open_files(scenario.root),
            ledger=open_sql_ledger(scenario.root / LEDGER_FILE),
            staged=staged,
        )
    return path


def verify(
    path: Path,
    *,
    labels: bytes | None = None,
    older_checkpoint: bytes | None = None,
    key_ids: tuple[str, ...] = (),
    origin: str | None = None,
) -> Report:
    """Verify as the command does, with what the auditor holds from elsewhere."""
    tree, kind, ledger = open_evidence(path)
    return verify_evidence(
        VerifyRequest(
            tree=tree,
            kind=kind,
            ledger=ledger,
            labels=None if labels is None else GivenLabels(source="labels.jsonl", data=labels),
            older_checkpoint=older_checkpoint,
            key_ids=key_ids,
            origin=origin,
        )
    )


def failed(report: Report) -> set[Check]:
    """Return the checks that failed."""
    return {one.check for one in report.results if one.result is Result.FAILED}


_FOLDER = TemporaryDirectory(prefix="piste-story-")


@cache
def shared_story() -> Scenario:
    """Return one story for the whole process; whoever changes it copies its folder first."""
    return make_story(Path(_FOLDER.name) / "workspace")


@cache
def shared_bundle() -> Path:
    """Return the export of the story's first edition."""
    return export(shared_story(), EDITION, Path(_FOLDER.name) / "bundle.tar")


@cache
def shared_revealed_bundle() -> Path:
    """Return the export of the story's first edition after its end."""
    copy = Scenario(Path(copytree(shared_story().root, Path(_FOLDER.name) / "revealed")))
    reveal(copy)
    return export(copy, EDITION, Path(_FOLDER.name) / "revealed.tar")
