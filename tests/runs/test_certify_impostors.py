"""Names and labels that lie: archives that claim tags, images that carry our label."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from manifests.outcomes import Outcome
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.sandbox.parts import architecture_of, holder_image
from orchestrator.sandbox.rules.container_options import RUN_LABEL
from orchestrator.sandbox.rules.elf import pause_elf
from orchestrator.sandbox.rules.tiny_image import TinyImage, tiny_image
from orchestrator.support.reporter import SilentReporter
from tests.support.certify_fixtures import Organizer, piste
from tests.support.hostile_image import HERE, SOMEBODY_ELSE, claim_tags
from tests.support.hostile_images import HONEST, HOSTILE

pytestmark = pytest.mark.docker


@pytest.fixture
def api() -> Iterator[Any]:
    client = docker.APIClient(version="auto")
    yield client
    client.close()


@pytest.fixture
def helper(engine: DockerEngine, api: Any) -> Iterator[tuple[str, str]]:
    """An image of somebody's at the engine: its id and its tag."""
    image = sleeping_image()
    engine.load_archive((image.archive,), len(image.archive), SilentReporter())
    tag = f"piste-holder-{secrets.token_hex(4)}:latest"
    api.tag(image.image_id, *tag.split(":"))
    yield image.image_id, tag
    engine.remove_image(image.image_id)


def sleeping_image() -> TinyImage:
    architecture = architecture_of(HERE)
    files = {"sleep": pause_elf(architecture), "mark": os.urandom(16)}
    return tiny_image(files, entrypoint=("/sleep",), architecture=architecture)


def test_an_archive_that_claims_our_tag_moves_no_tag_and_runs_as_itself(
    organizer: Organizer,
    helper: tuple[str, str],
    api: Any,
    image_cache: Path,
    tmp_path: Path,
) -> None:
    helper_id, tag = helper
    built = HONEST.build(tmp_path / "thief.tar", cache=image_cache)
    claim_tags(built.path, (tag,))
    team = organizer.new_team()
    run = organizer.certify(built.path, team=team)
    assert run.record.outcome is Outcome.COMPLETED
    assert run.record.image.config_digest == built.image_id
    assert run.record.image.engine_image_id == built.image_id
    assert api.inspect_image(tag)["Id"] == helper_id
    assert organizer.leftovers(team, built.image_id) == []
    holder = holder_image(architecture_of(HERE)).image_id
    assert api.inspect_image(holder)["Id"] == holder


def test_containers_that_only_claim_to_be_ours_are_left_alone(
    organizer: Organizer, helper: tuple[str, str], api: Any
) -> None:
    helper_id, _ = helper
    other_run = secrets.token_hex(8)
    made = [
        api.create_container(helper_id, labels={RUN_LABEL: other_run}, name=name)["Id"]
        for name in (f"bystander-{other_run}", f"piste-{other_run}-entrant")
    ]
    try:
        reaped = piste("runs", "reap", workspace=organizer.root)
        assert reaped.returncode == 0
        for container in made:
            assert api.inspect_container(container)["State"]["Status"] == "created"
    finally:
        for container in made:
            api.remove_container(container, force=True)


def test_an_image_with_the_label_of_another_run_is_known_by_its_name(
    organizer: Organizer, engine: DockerEngine, image_cache: Path, tmp_path: Path
) -> None:
    (spoof,) = [image for image in HOSTILE if image.name == "label-spoof"]
    built = spoof.build(tmp_path / "spoof.tar", cache=image_cache)
    team = organizer.new_team()
    run = organizer.certify(built.path, team=team)
    effective = (Path(run.folder) / "effective.json").read_text()
    assert f'"{RUN_LABEL}":"{run.record.run_id}"' in effective
    assert SOMEBODY_ELSE not in effective
