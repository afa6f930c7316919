"""A dry run on the simulated engine: what it tells, what it leaves, and what it may not say."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from manifests.errors import MalformedDocument
from manifests.outcomes import Diagnostic, Outcome
from orchestrator.editions.epee.epee_folder import EpeeFolder
from orchestrator.engine.ports import UsageSample
from orchestrator.entrants.dry_run import DryRunTools, dry_run
from orchestrator.entrants.dry_run_input import DryRunInput, read_dry_run_input
from orchestrator.entrants.dry_run_report import DryRunRefusal, DryRunReport
from orchestrator.entrants.ports import ContainerWindow, NetworkAttempts, SpaceUse
from orchestrator.entrants.rules.findings import Cause
from orchestrator.images.files.archive_file import ArchiveFile
from orchestrator.images.http.registry import HttpRegistry
from orchestrator.images.resolve_image import ImageSources
from orchestrator.runs.run_host import RunHost
from orchestrator.samples.files.sample_folder import SampleFolder
from orchestrator.samples.sample_edition import SampleRequest, make_sample_edition
from orchestrator.sandbox.parts import list_leftovers
from orchestrator.sandbox.ports import NoGpus
from orchestrator.sandbox.rules.elf import Architecture
from orchestrator.sandbox.rules.gpu import GpuPolicy
from orchestrator.sandbox.rules.tiny_image import TinyImage, tiny_image
from orchestrator.scoring.score_files import InputFile
from orchestrator.support.interruption import Interrupted
from orchestrator.support.reporter import SilentReporter, Step
from sandbox_profiles.profile import load_profile
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import Entrant, SimulatedClock, SimulatedEnd

ROOT = Path(__file__).parents[2]
PROFILE = load_profile("certified")
IMAGE = tiny_image({"run": b"x"}, entrypoint=("/run",), architecture=Architecture.AMD64)
FOREIGN = tiny_image({"run": b"x"}, entrypoint=("/run",), architecture=Architecture.ARM64)


@dataclass
class Display(SilentReporter):
    """Remembers what is shown, and may do something at a step."""

    pieces: list[bytes] = field(default_factory=list)
    samples: list[tuple[UsageSample, SpaceUse]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    interrupt_at: Step | None = None

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def step(self, step: Step) -> None:
        if step is self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)

    def log(self, piece: bytes) -> None:
        self.pieces.append(piece)

    def usage(self, sample: UsageSample, space: SpaceUse) -> None:
        self.samples.append((sample, space))


@dataclass
class Window:
    attempts: NetworkAttempts | str = field(
        default_factory=lambda: NetworkAttempts(unroutable=2, unanswered=1)
    )
    closed: bool = False

    def space(self) -> SpaceUse:
        return SpaceUse(tmp_bytes=4096, tmp_files=2, shm_bytes=0)

    def network(self) -> NetworkAttempts | str:
        return self.attempts

    def close(self) -> None:
        self.closed = True


@dataclass
class Windows:
    window: Window | str = "looking into a container needs root"

    def open_window(self, container_id: str, pid: int) -> ContainerWindow | str:
        return self.window


@dataclass
class Bench:
    """A simulated host, an archive on disk and an exam of three clips."""

    folder: Path
    engine: EngineSimulator
    exam: DryRunInput
    display: Display = field(default_factory=Display)
    windows: Windows = field(default_factory=Windows)
    free_bytes: int | None = None

    def archive(self, image: TinyImage) -> Path:
        path = self.folder / "image.tar"
        path.write_bytes(image.archive)
        return path

    def run(
        self,
        script: Entrant,
        *,
        image: TinyImage = IMAGE,
        repeat: int = 1,
        second_pass: bool = True,
        gpu: GpuPolicy = GpuPolicy.OPTIONAL,
    ) -> DryRunReport | DryRunRefusal:
        self.engine.script(image.image_id, script)
        host = RunHost(
            name="here",
            sources=ImageSources(
                engine=self.engine, registry=HttpRegistry(), open_archive=ArchiveFile
            ),
            free_bytes=lambda _folder: self.free_bytes,
            gpus=NoGpus(),
            self_test=lambda _profile, _run_id: None,
        )
        tools = DryRunTools(
            host=host, clock=self.engine.clock, windows=self.windows, display=self.display
        )
        request = self.exam.request(
            str(self.archive(image)), profile=PROFILE, repeat=repeat, gpu=gpu
        )
        return dry_run(tools, self.exam, request, second_pass=second_pass)

    def report(self, script: Entrant, **fields: object) -> DryRunReport:
        done = self.run(script, **fields)  # type: ignore[arg-type]
        assert isinstance(done, DryRunReport)
        return done

    def nothing_left(self) -> bool:
        kept = self.engine.inspect_image(IMAGE.image_id)
        return kept is None and list_leftovers(self.engine) == {}


def sample(root: Path, *, track: str = "recognition") -> Path:
    request = SampleRequest(
        edition="open-2026",
        opens=datetime(2026, 1, 1, tzinfo=UTC),
        closes=datetime(2026, 7, 1, tzinfo=UTC),
        track=track,  # type: ignore[arg-type]
        clips=3,
        seed=7,
    )
    make_sample_edition(SampleFolder(root), request)
    return root


def read(root: Path, **fields: object) -> DryRunInput:
    def beside(name: str) -> bytes | None:
        path = root / name
        return path.read_bytes() if path.is_file() else None

    values = {"track": None, "labels": None} | fields
    return read_dry_run_input(EpeeFolder(root), beside, **values)  # type: ignore[arg-type]


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    return sample(tmp_path / "clips")


@pytest.fixture
def bench(tmp_path: Path, clips: Path) -> Bench:
    return Bench(tmp_path, EngineSimulator(SimulatedClock()), read(clips))


def answers(files: Mapping[str, bytes], *, sign: str = "YOU", runs_s: float = 2.0) -> SimulatedEnd:
    lines = []
    for clip in json.loads(files["exam.json"])["clips"]:
        known = json.loads(files[f"annotations/{clip}.json"])
        lines.append(json.dumps({"clip_id": clip, "signs": [sign] * len(known["segments"])}))
    data = "".join(line + "\n" for line in lines).encode()
    return SimulatedEnd(files={"predictions.jsonl": data}, runs_s=runs_s, log=b"clip\x1b[2J 1\n")


def test_a_good_image_would_be_scored_and_leaves_nothing(bench: Bench) -> None:
    bench.windows.window = window = Window()
    done = bench.report(answers)
    assert (done.outcome, done.exit_code, done.diagnostics) == (Outcome.COMPLETED, 0, ())
    assert done.card is not None
    assert done.card.complete
    assert done.image_removed
    assert bench.nothing_left()
    assert b"".join(bench.display.pieces) == b"clip\x1b[2J 1\n"
    assert bench.display.samples[0][1].tmp_bytes == 4096
    assert window.closed
    assert [one.cause for one in done.findings] == [Cause.NETWORK]


def test_the_document_holds_the_verdict_the_peaks_and_the_score(bench: Bench) -> None:
    bench.windows.window = Window()
    document = bench.report(answers, repeat=2).document()
    parsed = json.loads(json.dumps(document, allow_nan=False))
    assert parsed["would_be_scored"] is True
    assert parsed["network"] == {"attempts": 3, "unmeasured": None}
    assert parsed["peaks"]["memory_bytes"] == {"peak": 2**21, "limit": PROFILE.memory_bytes}
    assert parsed["time"] == {"elapsed_s": 2.0, "deadline_s": 3600}
    assert (parsed["repeat"], parsed["repeats_agree"], parsed["differing_clips"]) == (2, True, [])
    assert parsed["score"]["public"]["macro_f1"] is not None
    assert parsed["image"]["config_digest"] == IMAGE.image_id


def test_what_cannot_be_measured_is_said_with_its_reason(bench: Bench) -> None:
    document = bench.report(answers).document()
    assert document["network"] == {
        "attempts": None,
        "unmeasured": "looking into a container needs root",
    }


def test_an_image_that_was_there_before_stays(bench: Bench) -> None:
    bench.engine.load_archive([IMAGE.archive], len(IMAGE.archive), SilentReporter())
    assert not bench.report(answers).image_removed
    assert bench.engine.inspect_image(IMAGE.image_id) is not None
    assert list_leftovers(bench.engine) == {}


def test_a_failure_is_looked_at_again_with_a_writable_root(bench: Bench) -> None:
    end = SimulatedEnd(
        exit_code=1,
        runs_s=1.0,
        log=b"failed\n",
        changed=("/app/state.db", "/etc/hosts", "/tmp/x", "/app"),
    )
    done = bench.report(lambda _files: end)
    assert (done.outcome, done.exit_code) == (Outcome.NONZERO_EXIT, 1)
    assert done.seen.outside_writes == ("/app/state.db",)
    assert Cause.WRITES_OUTSIDE in [one.cause for one in done.findings]
    assert bench.nothing_left()
    assert done.card is None
    assert bench.report(lambda _files: end, second_pass=False).seen.outside_writes is None


def test_repeats_that_differ_are_named_clip_by_clip(bench: Bench) -> None:
    signs = iter(["YOU", "OLD", "YOU"])
    done = bench.report(lambda files: answers(files, sign=next(signs)), repeat=2)
    assert done.outcome is Outcome.COMPLETED
    assert done.diagnostics == (Diagnostic.PREDICTIONS_DISAGREE,)
    assert done.executed.differing == tuple(bench.exam.clips.exam.exam.clips)
    assert done.findings[0].cause is Cause.NON_DETERMINISTIC


def test_another_platform_is_a_refusal_with_its_remedy(bench: Bench) -> None:
    done = bench.run(answers, image=FOREIGN)
    assert isinstance(done, DryRunRefusal)
    assert done.exit_code == 3
    assert done.findings[0].cause is Cause.WRONG_PLATFORM
    assert "--platform linux/amd64" in done.findings[0].remedy
    assert done.document()["refused"] == {"kind": "WrongPlatform", "message": str(done.error)}


def test_too_little_room_for_the_image_is_told_before_it_is_loaded(bench: Bench) -> None:
    bench.free_bytes = 1000
    done = bench.run(answers)
    assert isinstance(done, DryRunRefusal)
    assert done.exit_code == 4
    assert done.findings[0].cause is Cause.IMAGE_TOO_LARGE
    assert "load_archive" not in bench.engine.calls


def test_a_required_gpu_that_is_absent_is_refused_as_certify_refuses_it(bench: Bench) -> None:
    done = bench.run(answers, gpu=GpuPolicy.REQUIRED)
    assert isinstance(done, DryRunRefusal)
    assert done.exit_code == 3
    assert "GPU" in str(done.error)


@pytest.mark.parametrize("step", [Step.PULL, Step.PROVIDE, Step.RUN, Step.VALIDATE])
def test_an_interruption_at_any_step_leaves_nothing(bench: Bench, step: Step) -> None:
    bench.display.interrupt_at = step
    with pytest.raises(Interrupted):
        bench.run(answers)
    assert bench.nothing_left()


def test_labels_of_other_clips_are_refused_before_anything_runs(clips: Path) -> None:
    labels = (clips / "labels-v1.jsonl").read_bytes()
    short = b"".join(labels.splitlines(keepends=True)[:2])
    with pytest.raises(MalformedDocument, match="has no label"):
        read(clips, labels=InputFile("mine.jsonl", short))


def test_a_folder_without_edition_and_labels_is_an_exam_without_a_score(
    clips: Path, bench: Bench
) -> None:
    for name in ("edition.yaml", "labels-v1.jsonl", "vocabulary.txt"):
        (clips / name).unlink()
    exam = read(clips)
    assert (exam.track, exam.scoring) == ("recognition", None)
    bench.exam = exam
    done = bench.report(answers)
    assert done.would_be_scored
    assert done.unscored == "there are no labels"


def test_another_track_than_the_editions_takes_nothing_from_it(clips: Path) -> None:
    exam = read(clips, track="translation")
    assert exam.track == "translation"
    assert exam.scoring is None


def test_the_editions_track_scorer_and_labels_are_used(tmp_path: Path) -> None:
    exam = read(sample(tmp_path / "signet", track="translation"))
    assert exam.track == "translation"
    assert exam.scoring is not None
    assert exam.scoring.labels.track == "translation"


def test_an_image_of_the_same_layers_that_came_meanwhile_is_left_alone(bench: Bench) -> None:
    other = tiny_image({"run": b"x"}, entrypoint=("/run", "1"), architecture=Architecture.AMD64)
    assert other.image_id != IMAGE.image_id
    seen: list[object] = []

    def script(files: Mapping[str, bytes]) -> SimulatedEnd:
        bench.engine.load_archive([other.archive], len(other.archive), SilentReporter())
        both = (other.image_id, IMAGE.image_id)
        seen.extend((bench.engine.inspect_image(each) or {})["RootFS"] for each in both)
        return answers(files)

    assert bench.report(script).image_removed
    assert seen[0] == seen[1]
    assert bench.engine.inspect_image(other.image_id) is not None
    assert bench.nothing_left()


def test_an_image_that_another_run_holds_stays_and_the_report_says_so(bench: Bench) -> None:
    def script(files: Mapping[str, bytes]) -> SimulatedEnd:
        options = {"Image": IMAGE.image_id, "HostConfig": {}}
        bench.engine.create_container("piste-another-runs", options)
        return answers(files)

    done = bench.report(script)
    assert (done.outcome, done.image_removed) == (Outcome.COMPLETED, False)
    assert "piste-another-runs" in bench.display.warnings[-1]
    assert bench.engine.inspect_image(IMAGE.image_id) is not None


def test_answers_in_tmp_are_found_though_nobody_saw_the_run_itself(bench: Bench) -> None:
    end = SimulatedEnd(changed=("/tmp/run/predictions.jsonl",))
    done = bench.report(lambda _files: end)
    assert done.outcome is Outcome.NO_PREDICTIONS
    assert done.findings[0].cause is Cause.OUTPUT_ELSEWHERE
    assert done.findings[0].details == ("/tmp/run/predictions.jsonl",)
    assert done.seen.outside_writes == ()


def test_a_report_of_our_own_failure_ends_with_4(bench: Bench) -> None:
    done = bench.report(answers)
    verdict = replace(done.executed.verdict, outcome=Outcome.PLATFORM_FAULT)
    fault = replace(done, executed=replace(done.executed, verdict=verdict))
    assert (fault.exit_code, fault.would_be_scored) == (4, False)
