"""A dry run foretells the certified run: the same outcome, codes and refusals, image by image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.errors import PisteError
from manifests.outcomes import Outcome
from orchestrator.cli.views.dry_run_view import QuietDisplay
from orchestrator.editions.epee.epee_folder import EpeeFolder
from orchestrator.entrants.dry_run import DryRunTools, dry_run
from orchestrator.entrants.dry_run_input import DryRunInput, read_dry_run_input
from orchestrator.entrants.dry_run_report import DryRunRefusal, DryRunReport
from orchestrator.entrants.proc.container_window import ProcWindows
from orchestrator.runs.run_host import RunHost
from orchestrator.support.files.input_files import read_input_file
from orchestrator.support.system_clock import SystemClock
from orchestrator.wiring import samples as sample_wiring
from sandbox_profiles.profile import SandboxProfile
from tests.support.certify_fixtures import EDITION, HASTY_EDITION, Organizer
from tests.support.clumsy_image import ClumsyImage
from tests.support.clumsy_images import CLUMSY
from tests.support.hostile_image import HASTY_PROFILE, HostileImage
from tests.support.hostile_images import HOSTILE

pytestmark = pytest.mark.docker

Image = ClumsyImage | HostileImage
End = tuple[Outcome | None, tuple[str, ...], int]
"""Outcome, codes and exit code."""


@pytest.fixture(scope="module")
def host(organizer: Organizer) -> RunHost:
    """This machine; each profile's self-test is made once, not for every image."""
    made = organizer.host()
    passed: set[str] = set()

    def once(profile: SandboxProfile, run_id: str) -> None:
        if profile.sha256() not in passed:
            made.self_test(profile, run_id)
            passed.add(profile.sha256())

    return replace(made, self_test=once)


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> DryRunInput:
    """Three open clips: others than the sealed ones, of the same kind."""
    root = tmp_path_factory.mktemp("open") / "clips"
    sample_wiring.make_sample(
        root, track="recognition", clips=3, seed=7, edition="open-2026", consumer=None
    )
    return read_dry_run_input(
        EpeeFolder(root), lambda name: read_input_file(root / name), track=None, labels=None
    )


DryRun = Callable[..., DryRunReport | DryRunRefusal]


@pytest.fixture
def run_dry(host: RunHost, exam: DryRunInput) -> DryRun:
    def run(archive: Path, image: Image) -> DryRunReport | DryRunRefusal:
        tools = DryRunTools(
            host=host, clock=SystemClock(), windows=ProcWindows(), display=QuietDisplay()
        )
        request = exam.request(str(archive), profile=image.profile, repeat=_repeat(image))
        return dry_run(tools, exam, request)

    return run


def _repeat(image: Image) -> int:
    return image.repeat if isinstance(image, ClumsyImage) else 1


def _end_of(done: DryRunReport | DryRunRefusal) -> End:
    if isinstance(done, DryRunRefusal):
        return None, (type(done.error).__name__,), done.exit_code
    return done.outcome, tuple(sorted(done.diagnostics)), done.exit_code


def _certified_end(organizer: Organizer, host: RunHost, archive: Path, image: Image) -> End:
    edition = HASTY_EDITION if image.profile == HASTY_PROFILE else EDITION
    team = organizer.new_team()
    try:
        run = organizer.certify(
            archive, team=team, edition=edition, host=host, repeat=_repeat(image)
        )
    except PisteError as error:
        assert organizer.quota(team, edition).used == 0
        return None, (type(error).__name__,), error.exit_code
    outcome = run.record.outcome
    code = 0 if outcome is Outcome.COMPLETED else 4 if outcome is Outcome.PLATFORM_FAULT else 1
    return outcome, tuple(sorted(run.record.diagnostics)), code


@pytest.mark.parametrize("image", [*CLUMSY, *HOSTILE], ids=lambda image: image.name)
def test_a_dry_run_foretells_the_certified_run_and_names_the_cause_first(
    image: Image,
    organizer: Organizer,
    host: RunHost,
    run_dry: DryRun,
    image_cache: Path,
    tmp_path: Path,
) -> None:
    if isinstance(image, ClumsyImage) and image.missing is not None:
        pytest.skip(f"needs {image.missing} in this Python: pip install {image.missing}")
    built = image.build(tmp_path / f"{image.name}.tar", cache=image_cache)
    foretold = run_dry(built.path, image)
    assert host.engine.inspect_image(built.image_id) is None
    if isinstance(image, ClumsyImage):
        _check_diagnosis(image, foretold)
    assert _certified_end(organizer, host, built.path, image) == _end_of(foretold)


def _check_diagnosis(image: ClumsyImage, done: DryRunReport | DryRunRefusal) -> None:
    said = "\n".join(f"{one.cause}: {one.fact} {one.details}" for one in done.findings)
    log = (
        "" if isinstance(done, DryRunRefusal) else done.executed.first.sandbox.log[-2000:].decode()
    )
    outcome = None if isinstance(done, DryRunRefusal) else done.outcome
    assert outcome is image.outcome, (said, log)
    first = done.findings[0].cause if done.findings else None
    assert first is image.cause, (said, log)
    if image.remedy:
        assert image.remedy in done.findings[0].remedy
