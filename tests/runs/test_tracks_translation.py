"""A certified translation run keeps predicted poses and scores them against the sealed clips."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from manifests.digests import sha256_hex
from manifests.outcomes import Diagnostic, Outcome
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.python.python_image import BuiltImage
from orchestrator.runs.certify import CertifiedRun
from orchestrator.runs.replay import replay
from orchestrator.runs.rules.replay_comparison import Agreement
from orchestrator.runs.run_host import RunHost
from orchestrator.support.reporter import SilentReporter
from orchestrator.wiring import workspaces as wiring
from tests.support.certify_fixtures import Organizer, clip_mark, piste
from tests.support.track_editions import (
    CLIPS,
    baseline_archive,
    quick_host,
    seal_edition,
    write_edition,
)

pytestmark = pytest.mark.docker

EDITION = "sentences-2026"
BLEURT_EDITION = "sentences-bleurt-2026"
MAIN_CLIPS = CLIPS * 3 // 4

WRITES_POSES = """
import json, shutil
from pathlib import Path
Path("/output/pose").mkdir()
for clip in json.load(open("/input/exam.json"))["clips"][1:]:
    shutil.copyfile(f"/input/keypoints/{clip}.npy", f"/output/pose/{clip}.npy")
"""
"""Signs each clip back as it was signed, all but the exam's first one."""

WRITES_A_BROKEN_POSE = """
import json
import tarfile
from pathlib import Path
Path("/output/pose").mkdir()
clip = json.load(open("/input/exam.json"))["clips"][0]
Path(f"/output/pose/{clip}.npy").write_bytes(b"no pose")
"""

WRITES_OTHER_POSES_EACH_TIME = """
import json, os
from pathlib import Path
Path("/output/pose").mkdir()
clip = json.load(open("/input/exam.json"))["clips"][0]
data = bytearray(Path(f"/input/keypoints/{clip}.npy").read_bytes())
data[-4:-2] = os.urandom(2)
Path(f"/output/pose/{clip}.npy").write_bytes(data)
"""


@dataclass(frozen=True, slots=True)
class Exam:
    """A sealed translation edition, and an entrant's image that writes poses."""

    organizer: Organizer
    host: RunHost
    entrant: BuiltImage


@pytest.fixture(scope="module")
def exam(
    warm_engine: DockerEngine, image_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Exam:
    root = tmp_path_factory.mktemp("sentences")
    workspace = root / "workspace"
    wiring.create_workspace(workspace, origin="example.org/piste")
    seal_edition(workspace, write_edition(root / "sample", track="translation", edition=EDITION))
    entrant = baseline_archive(
        "translation", root / "entrant.tar", cache=image_cache, around=WRITES_POSES
    )
    organizer = Organizer(root=workspace, engine=warm_engine, mark=clip_mark(root / "sample"))
    return Exam(organizer, quick_host(organizer), entrant)


@pytest.fixture(scope="module")
def run(exam: Exam) -> CertifiedRun:
    """Certify the translator once."""
    team = exam.organizer.new_team()
    done = exam.organizer.certify(exam.entrant.path, team=team, edition=EDITION, host=exam.host)
    assert done.record.outcome is Outcome.COMPLETED, done.record.diagnostics
    return done


def _card(run: CertifiedRun, name: str = "score.json") -> dict[str, dict[str, object]]:
    document = json.loads((Path(run.folder) / name).read_bytes())
    assert isinstance(document, dict)
    return document


def test_poses_are_retained_and_hashed_but_sealed_as_the_clips_that_they_may_copy(
    exam: Exam, run: CertifiedRun
) -> None:
    poses = sorted((Path(run.folder) / "pose").iterdir())
    assert len(poses) == CLIPS - 1
    private = (Path(run.folder) / "private.sha256").read_text()
    public = (Path(run.folder) / "SHA256SUMS").read_text()
    for path in poses:
        digest = sha256_hex(path.read_bytes())
        assert path.suffix == ".age"
        assert run.record.files[f"pose/{path.name}"] == digest
        assert f"{digest}  pose/{path.name}" in private
        assert path.name not in public
    assert list(exam.organizer.files_with(exam.organizer.mark)) == []


def test_an_exported_bundle_holds_no_pose(exam: Exam, run: CertifiedRun, tmp_path: Path) -> None:
    bundle = tmp_path / "run.tar"
    done = piste("export", run.record.run_id, "-o", bundle, workspace=exam.organizer.root)
    assert done.returncode == 0, done.stderr
    with tarfile.open(bundle) as tar:
        names = tar.getnames()
    assert any(name.endswith("predictions.jsonl") for name in names)
    assert [name for name in names if "pose" in name] == []
    assert exam.organizer.mark not in bundle.read_bytes()


def test_a_pose_is_scored_against_the_sealed_clip_and_a_missing_one_is_nothing(
    run: CertifiedRun,
) -> None:
    by_clip = _card(run, "score.private.json")["private"]["by_clip"]
    assert isinstance(by_clip, list)
    kept = {path.name.partition(".")[0] for path in (Path(run.folder) / "pose").iterdir()}
    main = {row["clip_id"]: row["s_pose"] for row in by_clip if row["slice"] != "canary"}
    assert len(main) == MAIN_CLIPS
    for clip, score in main.items():
        assert score == pytest.approx(1.0 if clip in kept else 0.0, abs=1e-6)
    public = _card(run)["public"]
    assert public["s_pose"] == pytest.approx(len(kept & main.keys()) / MAIN_CLIPS, abs=1e-6)


def test_without_a_checkpoint_the_totals_are_null_and_the_partial_has_its_own_name(
    run: CertifiedRun,
) -> None:
    public = _card(run)["public"]
    for name in ("s_total", "s_translation", "bleurt", "s_generalization"):
        assert public[name] is None
    reasons = public["reasons"]
    assert isinstance(reasons, dict)
    assert {"s_total", "s_translation", "bleurt", "s_generalization"} <= set(reasons)
    chrf, bleu = public["chrf"], public["bleu"]
    assert isinstance(chrf, float)
    assert isinstance(bleu, float)
    assert public["s_translation_partial"] == pytest.approx((0.3 * chrf + 0.2 * bleu) / 0.5)


def test_the_run_leaves_nothing_of_itself_at_the_engine(exam: Exam, run: CertifiedRun) -> None:
    assert exam.organizer.leftovers(run.record.team, exam.entrant.image_id) == []


def test_a_replay_compares_the_poses_too(exam: Exam, run: CertifiedRun) -> None:
    found = replay(
        exam.organizer.workspace,
        exam.host,
        run.record.run_id,
        str(exam.entrant.path),
        SilentReporter(),
    )
    assert found.holds
    assert found.poses is not None
    assert (found.poses.agreement, found.poses.positions) == (Agreement.BYTE_IDENTICAL, CLIPS - 1)
    assert found.figures == {}
    assert found.consumer is None


def test_a_replay_with_other_poses_does_not_hold(
    exam: Exam, image_cache: Path, tmp_path: Path
) -> None:
    archive = baseline_archive(
        "translation",
        tmp_path / "moody.tar",
        cache=image_cache,
        around=WRITES_OTHER_POSES_EACH_TIME,
    ).path
    team = exam.organizer.new_team()
    done = exam.organizer.certify(archive, team=team, edition=EDITION, host=exam.host)
    assert done.record.outcome is Outcome.COMPLETED
    found = replay(
        exam.organizer.workspace,
        exam.host,
        done.record.run_id,
        str(archive),
        SilentReporter(),
    )
    assert found.predictions.agrees
    assert found.poses is not None
    assert (found.poses.agreement, found.poses.differing) == (Agreement.DIFFERENT, 1)
    assert not found.holds


def test_a_broken_pose_makes_the_predictions_invalid_and_spends_the_run(
    exam: Exam, image_cache: Path, tmp_path: Path
) -> None:
    broken = baseline_archive(
        "translation", tmp_path / "broken.tar", cache=image_cache, around=WRITES_A_BROKEN_POSE
    )
    team = exam.organizer.new_team()
    done = exam.organizer.certify(broken.path, team=team, edition=EDITION, host=exam.host)
    assert done.record.outcome is Outcome.INVALID_PREDICTIONS
    assert Diagnostic.PREDICTIONS_FORMAT in done.record.diagnostics
    assert (done.quota.used, done.quota.voided) == (1, 0)
    assert done.card is None
    assert not (Path(done.folder) / "pose").exists()


def test_an_edition_with_a_checkpoint_that_is_not_there_keeps_the_run_unscored(
    exam: Exam, tmp_path: Path
) -> None:
    file = write_edition(
        tmp_path / "sample",
        track="translation",
        edition=BLEURT_EDITION,
        extra="bleurt: {checkpoint: models/bleurt-20}\n",
    )
    seal_edition(exam.organizer.root, file)
    team = exam.organizer.new_team()
    done = exam.organizer.certify(
        exam.entrant.path, team=team, edition=BLEURT_EDITION, host=exam.host
    )
    assert done.record.outcome is Outcome.COMPLETED
    assert done.card is None
    assert (done.quota.used, done.quota.voided) == (1, 0)
