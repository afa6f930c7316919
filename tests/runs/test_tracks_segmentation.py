"""A certified segmentation run has two stages: the entrant's intervals, then the frozen consumer."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from manifests.digests import sha256_hex
from manifests.errors import PlatformFault
from manifests.outcomes import Diagnostic, Outcome
from manifests.statements import RunReserved, RunScored
from orchestrator.board.rescore import rescore
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.python.python_image import BuiltImage, build_python_image, python_program
from orchestrator.images.rules.image_archive import ImageSettings
from orchestrator.runs.replay import replay
from orchestrator.runs.rules.replay_comparison import Agreement
from orchestrator.runs.run_host import RunHost
from orchestrator.support.reporter import SilentReporter
from orchestrator.wiring import workspaces as wiring
from tests.support.certify_fixtures import Organizer, clip_mark
from tests.support.engine_fixtures import LocalRegistry
from tests.support.hostile_image import PRELUDE
from tests.support.track_editions import (
    CLIPS,
    baseline_archive,
    forget_manifest,
    push_archive,
    quick_host,
    seal_edition,
    write_edition,
)

pytestmark = pytest.mark.docker

EDITION = "segments-2026"


@dataclass(frozen=True, slots=True)
class Exam:
    """A sealed segmentation edition with its frozen consumer, and an entrant's image."""

    organizer: Organizer
    host: RunHost
    consumer: BuiltImage
    consumer_reference: str
    entrant: BuiltImage


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def exam(
    warm_engine: DockerEngine,
    registry_host: str,
    image_cache: Path,
    images: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Exam]:
    consumer = baseline_archive("recognition", images / "consumer.tar", cache=image_cache)
    reference = push_archive(LocalRegistry(registry_host), consumer.path)
    entrant = baseline_archive("segmentation", images / "entrant.tar", cache=image_cache)
    organizer = _organizer(tmp_path_factory.mktemp("segments"), warm_engine, reference, EDITION)
    yield Exam(organizer, quick_host(organizer), consumer, reference, entrant)
    warm_engine.remove_image(consumer.image_id)


def _organizer(root: Path, engine: DockerEngine, consumer: str, edition: str) -> Organizer:
    workspace = root / "workspace"
    wiring.create_workspace(workspace, origin="example.org/piste")
    file = write_edition(root / "sample", track="segmentation", edition=edition, consumer=consumer)
    seal_edition(workspace, file)
    return Organizer(root=workspace, engine=engine, mark=clip_mark(root / "sample"))


@pytest.fixture(scope="module")
def run(exam: Exam) -> tuple[str, Path]:
    """Certify the baseline segmenter once; return its team and the run's folder."""
    team = exam.organizer.new_team()
    done = exam.organizer.certify(exam.entrant.path, team=team, edition=EDITION, host=exam.host)
    assert done.record.outcome is Outcome.COMPLETED, done.record.diagnostics
    return team, Path(done.folder)


def test_both_images_identities_stand_in_the_record(exam: Exam, run: tuple[str, Path]) -> None:
    record = json.loads((run[1] / "run.json").read_bytes())
    assert record["image"]["config_digest"] == exam.entrant.image_id
    assert record["consumer"]["config_digest"] == exam.consumer.image_id
    assert record["consumer"]["reference"] == exam.consumer_reference
    assert exam.consumer_reference.endswith(record["consumer"]["manifest_digest"])
    reserved = exam.organizer.statements(run[0])[0]
    assert isinstance(reserved, RunReserved)
    assert reserved.consumer is not None
    assert reserved.consumer.config_digest == exam.consumer.image_id


def test_the_consumers_answers_are_retained_hashed_and_aligned_with_the_intervals(
    run: tuple[str, Path],
) -> None:
    folder = run[1]
    answers = (folder / "consumer.jsonl").read_bytes()
    record = json.loads((folder / "run.json").read_bytes())
    assert record["files"]["consumer.jsonl"] == sha256_hex(answers)
    assert f"{sha256_hex(answers)}  consumer.jsonl" in (folder / "SHA256SUMS").read_text()
    predicted = _rows(folder / "predictions.jsonl", "segments")
    answered = _rows(folder / "consumer.jsonl", "signs")
    assert len(predicted) == CLIPS
    assert {clip: len(rows) for clip, rows in answered.items()} == {
        clip: len(rows) for clip, rows in predicted.items()
    }
    assert sum(map(len, predicted.values())) > CLIPS


def _rows(path: Path, field: str) -> dict[str, list[object]]:
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    return {row["clip_id"]: row[field] for row in rows}


def test_the_card_holds_localisation_recognition_and_word_error_figures(
    exam: Exam, run: tuple[str, Path]
) -> None:
    card = json.loads((run[1] / "score.json").read_bytes())
    public = card["public"]
    assert card["complete"] is True
    assert public["mf1s"] > 0.3
    assert 0 < public["all_reference_accuracy"] <= 1
    assert 0 < public["auc_ru"] <= 1
    for rate in ("wer_all", "wer_iv"):
        errors = public[rate]
        assert errors["wer"] == (errors["s"] + errors["d"] + errors["i"]) / errors["n"]
    assert card["provenance"]["image"] == exam.entrant.image_id
    assert card["provenance"]["consumer_image"] == exam.consumer.image_id


def test_the_run_counts_once_and_leaves_nothing(exam: Exam, run: tuple[str, Path]) -> None:
    quota = exam.organizer.quota(run[0], EDITION)
    assert (quota.used, quota.voided) == (1, 0)
    assert exam.organizer.leftovers(run[0], exam.entrant.image_id) == []


def test_a_replay_runs_both_stages_and_agrees(exam: Exam, run: tuple[str, Path]) -> None:
    before = list(exam.organizer.workspace.ledger.entries())
    found = replay(
        exam.organizer.workspace,
        exam.host,
        exam.organizer.run_ids(run[0])[0],
        str(exam.entrant.path),
        SilentReporter(),
    )
    assert found.holds
    assert found.consumer is not None
    assert found.consumer.agreement is Agreement.BYTE_IDENTICAL
    assert found.poses is None
    assert found.figures == {}
    assert list(exam.organizer.workspace.ledger.entries()) == before


def test_a_rescore_reads_the_retained_answers_and_runs_nothing(
    exam: Exam, run: tuple[str, Path]
) -> None:
    again = rescore(exam.organizer.workspace, EDITION)
    assert [(one.team, one.known) for one in again] == [(run[0], True)]
    public = json.loads((run[1] / "score.json").read_bytes())["public"]
    assert again[0].card.public_document()["public"] == public
    rows = [s for s in exam.organizer.statements(run[0]) if isinstance(s, RunScored)]
    assert len(rows) == 1


FAILING = {
    "exits with 3": ("raise SystemExit(3)", Diagnostic.CONSUMER_FAILED),
    "answers too much": (
        """
exam = json.load(open("/input/exam.json"))
with open("/output/predictions.jsonl", "w") as out:
    for clip in exam["clips"]:
        out.write(json.dumps({"clip_id": clip, "signs": ["WHO"] * 99}) + "\\n")
""",
        Diagnostic.PREDICTIONS_FORMAT,
    ),
}


@pytest.mark.parametrize("fault", FAILING)
def test_a_consumer_that_fails_is_our_fault_voided_and_refunded(
    fault: str,
    exam: Exam,
    registry: LocalRegistry,
    image_cache: Path,
    tmp_path: Path,
    warm_engine: DockerEngine,
    brought_in: list[str],
) -> None:
    source, code = FAILING[fault]
    settings = ImageSettings(labels={"test": uuid.uuid4().hex})
    program = python_program(PRELUDE + source, settings=settings)
    broken = build_python_image(program, tmp_path / "broken.tar", cache=image_cache)
    brought_in.append(broken.image_id)
    reference = push_archive(registry, broken.path)
    organizer = _organizer(tmp_path, warm_engine, reference, "broken-2026")
    team = organizer.new_team()
    done = organizer.certify(exam.entrant.path, team=team, edition="broken-2026", host=exam.host)
    assert done.record.outcome is Outcome.PLATFORM_FAULT
    assert {Diagnostic.CONSUMER_FAILED, code} <= set(done.record.diagnostics)
    assert done.record.voided is not None
    assert done.record.voided.by == "tool"
    assert (done.quota.used, done.quota.voided, done.quota.left) == (0, 1, 3)
    assert done.card is None
    assert (Path(done.folder) / "predictions.jsonl").exists()
    assert not (Path(done.folder) / "consumer.jsonl").exists()
    assert organizer.leftovers(team, exam.entrant.image_id) == []


def test_a_consumer_that_the_registry_lost_is_found_before_anything_is_spent(
    exam: Exam,
    registry: LocalRegistry,
    image_cache: Path,
    tmp_path: Path,
    warm_engine: DockerEngine,
) -> None:
    lost = baseline_archive("recognition", tmp_path / "lost.tar", cache=image_cache)
    reference = push_archive(registry, lost.path)
    organizer = _organizer(tmp_path, warm_engine, reference, "lost-2026")
    forget_manifest(reference)
    team = organizer.new_team()
    with pytest.raises(PlatformFault, match=r"frozen consumer of lost-2026.*nothing was spent"):
        organizer.certify(exam.entrant.path, team=team, edition="lost-2026", host=exam.host)
    assert organizer.story(team) == []
    quota = organizer.quota(team, "lost-2026")
    assert (quota.used, quota.attempts_left) == (0, quota.attempts)
    assert organizer.leftovers(team, exam.entrant.image_id) == []
