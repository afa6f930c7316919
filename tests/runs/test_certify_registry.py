"""Certified runs of images that a real registry holds."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from manifests.oci import OCI_MANIFEST
from manifests.outcomes import Outcome
from orchestrator.images.python.python_image import BuiltImage
from orchestrator.images.rules.image_archive import layer_from_chunks
from tests.support.certify_fixtures import EDITION, Organizer, piste
from tests.support.hostile_image import ELSEWHERE, HERE

pytestmark = pytest.mark.docker

ATTESTATION = {"vnd.docker.reference.type": "attestation-manifest"}


def pushable(archive: Path) -> Any:
    """Take config and layers out of a docker-archive, as the registry fixture pushes them."""
    with tarfile.open(archive) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
    (entry,) = json.loads(members["manifest.json"])
    layers = [members[name] for name in entry["Layers"]]
    return SimpleNamespace(
        config=members[entry["Config"]],
        layers=[layer_from_chunks(partial(iter, (data,)), len(data)) for data in layers],
        image_id=f"sha256:{entry['Config'].removesuffix('.json')}",
    )


def child(registry: Any, digest: str, platform: str, **fields: object) -> dict[str, object]:
    """Describe a pushed manifest as an index does."""
    url = f"http://{registry.host}/v2/{registry.repository}/manifests/{digest}"
    body = requests.get(url, headers={"Accept": OCI_MANIFEST}, timeout=10).content
    system, architecture = platform.split("/")
    return {
        "mediaType": OCI_MANIFEST,
        "digest": digest,
        "size": len(body),
        "platform": {"os": system, "architecture": architecture},
    } | fields


def test_an_image_is_certified_by_digest_from_one_platform_and_from_an_index(
    organizer: Organizer,
    registry: Any,
    honest_archive: BuiltImage,
    small_image: Callable[..., Any],
) -> None:
    image = pushable(honest_archive.path)
    manifest = registry.push_image(image)
    team = organizer.new_team()
    run = organizer.certify(f"{registry.name}@{manifest}", team=team)
    assert run.record.outcome is Outcome.COMPLETED
    assert run.card is not None
    identity = run.record.image
    assert (identity.manifest_digest, identity.index_digest) == (manifest, None)
    assert identity.config_digest == honest_archive.image_id
    assert identity.reference == f"{registry.name}@{manifest}"
    assert organizer.leftovers(team, honest_archive.image_id) == []

    other = registry.push_image(small_image(ELSEWHERE))
    attestation = registry.push_image(small_image())
    index = registry.push_index(
        [
            child(registry, attestation, "unknown/unknown", annotations=ATTESTATION),
            child(registry, other, ELSEWHERE),
            child(registry, manifest, HERE),
        ]
    )
    again = organizer.certify(f"{registry.name}@{index}", team=team)
    identity = again.record.image
    assert (identity.index_digest, identity.manifest_digest) == (index, manifest)
    assert identity.config_digest == honest_archive.image_id
    assert again.record.outcome is Outcome.COMPLETED
    assert again.record.predictions_sha256 == run.record.predictions_sha256
    assert (run.quota.used, again.quota.used) == (1, 2)
    assert organizer.leftovers(team, honest_archive.image_id) == []


def test_a_tag_is_refused_with_the_digest_that_it_means_and_nothing_is_spent(
    organizer: Organizer, registry: Any, small_image: Callable[..., Any]
) -> None:
    digest = registry.push_image(small_image(HERE), tag="v1")
    team = organizer.new_team()
    arguments = ("certify", "--edition", EDITION, "--team", team)
    refused = piste(*arguments, f"{registry.name}:v1", workspace=organizer.root)
    assert refused.returncode == 3
    assert f"{registry.name}@{digest}" in refused.stderr
    unknown = piste(*arguments, f"{registry.name}@sha256:{'0' * 64}", workspace=organizer.root)
    assert unknown.returncode == 2
    assert "MANIFEST_UNKNOWN" in unknown.stderr
    assert organizer.story(team) == []
    assert (organizer.quota(team).left, organizer.quota(team).attempts_used) == (90, 0)
    assert organizer.leftovers(team) == []
