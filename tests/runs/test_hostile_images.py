"""Every hostile entrant on the real engine, through the real certified run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manifests.errors import RefusedByPolicy
from manifests.outcomes import Outcome
from orchestrator.images.rules.image_archive import ImageSettings
from tests.support.certify_fixtures import EDITION, HASTY_EDITION, Organizer
from tests.support.hostile_image import HASTY_PROFILE, HostileImage
from tests.support.hostile_images import HOSTILE, VOLUME_MARK

pytestmark = pytest.mark.docker

RUNNING = [image for image in HOSTILE if image.refused is None]
REFUSED = [image for image in HOSTILE if image.refused is not None]
FILES = {
    "effective.json",
    "log.age",
    "private.sha256",
    "run.dsse.json",
    "run.json",
    "run.pub",
    "SHA256SUMS",
    "SHA256SUMS.sig",
}
MAY_BE_KEPT = {
    "predictions.jsonl",
    "predictions.raw.age",
    "score.json",
    "score.private.json",
    "score.dsse.json",
    "scores",
}


def edition_for(image: HostileImage) -> str:
    return HASTY_EDITION if image.profile is HASTY_PROFILE else EDITION


@pytest.mark.parametrize("image", RUNNING, ids=lambda image: image.name)
def test_a_hostile_image_ends_as_it_must_and_leaves_nothing(
    image: HostileImage, organizer: Organizer, image_cache: Path, tmp_path: Path
) -> None:
    built = image.build(tmp_path / f"{image.name}.tar", cache=image_cache)
    team, edition = organizer.new_team(), edition_for(image)
    run = organizer.certify(built.path, team=team, edition=edition)
    record = run.record
    assert (record.outcome, set(image.diagnostics) - set(record.diagnostics)) == (
        image.outcome,
        set(),
    ), record.diagnostics
    assert record.voided is None
    assert (run.quota.used, run.quota.voided) == (1, 0)
    assert (run.card is not None) == (image.outcome is Outcome.COMPLETED)
    assert record.image_removed is True
    assert organizer.leftovers(team, built.image_id) == []
    names = {path.name for path in Path(run.folder).iterdir()}
    assert names >= FILES
    assert names <= FILES | MAY_BE_KEPT
    mounts = json.loads((Path(run.folder) / "effective.json").read_bytes())["mounts"]
    assert {
        (mount["name"], mount["writable"]) for mount in mounts if mount["type"] == "volume"
    } == {
        (f"piste-{record.run_id}-input", False),
        (f"piste-{record.run_id}-output", True),
    }
    if image.settings != ImageSettings() and image.settings.volumes:
        assert list(organizer.files_with(VOLUME_MARK.encode())) == []


@pytest.mark.parametrize("image", REFUSED, ids=lambda image: image.name)
def test_an_image_that_cannot_be_run_safely_is_refused_and_nothing_is_spent(
    image: HostileImage, organizer: Organizer, image_cache: Path, tmp_path: Path
) -> None:
    built = image.build(tmp_path / f"{image.name}.tar", cache=image_cache)
    team = organizer.new_team()
    with pytest.raises(RefusedByPolicy) as refusal:
        organizer.certify(built.path, team=team)
    assert image.refused is not None
    assert image.refused in str(refusal.value)
    assert organizer.story(team) == []
    assert organizer.leftovers(team, built.image_id) == []
