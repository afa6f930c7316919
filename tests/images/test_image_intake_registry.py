"""Images come from a real registry by digest, into a real engine, and leave it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from manifests.digests import oci_digest
from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.images import Transport
from manifests.oci import OCI_MANIFEST
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.bring_in_image import bring_in
from orchestrator.images.files.archive_file import ArchiveFile
from orchestrator.images.http.registry import HttpRegistry
from orchestrator.images.remove_image import remove_image_with_proof
from orchestrator.images.resolve_image import ImageSources, resolve_image
from orchestrator.support.reporter import SilentReporter

pytestmark = pytest.mark.docker

AMD64 = "linux/amd64"


@pytest.fixture
def sources(engine: DockerEngine) -> ImageSources:
    return ImageSources(engine=engine, registry=HttpRegistry(), open_archive=ArchiveFile)


def intake(sources: ImageSources, text: str, platform: str = AMD64) -> Any:
    resolved = resolve_image(text, sources=sources, platform=platform, allow_tag=False)
    return bring_in(
        resolved, sources=sources, free_bytes=lambda path: None, reporter=SilentReporter()
    )


def child(digest: str, size: int, platform: str, **fields: object) -> dict[str, object]:
    system, architecture = platform.split("/")
    return {
        "mediaType": OCI_MANIFEST,
        "digest": digest,
        "size": size,
        "platform": {"os": system, "architecture": architecture},
    } | fields


def test_a_manifest_digest_brings_in_exactly_that_image_and_its_removal_is_seen(
    sources: ImageSources,
    engine: DockerEngine,
    registry: Any,
    small_image: Callable[..., Any],
    brought_in: list[str],
) -> None:
    image = small_image(extra_layers=2)
    digest = registry.push_image(image)
    identity = intake(sources, f"{registry.name}@{digest}")
    brought_in.append(identity.engine_image_id)
    assert identity.reference == f"{registry.name}@{digest}"
    assert identity.transport is Transport.REGISTRY
    assert (identity.manifest_digest, identity.index_digest) == (digest, None)
    assert identity.config_digest == identity.engine_image_id == image.image_id
    assert identity.diff_ids == tuple(layer.diff_id for layer in image.layers)
    assert (identity.platform, identity.archive_sha256) == (AMD64, None)
    assert identity.store == engine.describe().store

    removal = remove_image_with_proof(engine, identity)
    assert removal.gone
    assert removal.detail == ""
    assert engine.inspect_image(image.image_id) is None


def test_an_index_digest_leads_to_the_platforms_child_past_attestations(
    sources: ImageSources,
    registry: Any,
    small_image: Callable[..., Any],
    brought_in: list[str],
) -> None:
    ours, theirs, statement = small_image(), small_image("linux/arm64"), small_image()
    digests = {image.image_id: registry.push_image(image) for image in (ours, theirs, statement)}
    index = registry.push_index(
        [
            child(
                digests[statement.image_id],
                1,
                "unknown/unknown",
                annotations={"vnd.docker.reference.type": "attestation-manifest"},
            ),
            child(digests[theirs.image_id], 1, "linux/arm64"),
            child(digests[ours.image_id], 1, AMD64),
        ]
    )
    identity = intake(sources, f"{registry.name}@{index}")
    brought_in.append(identity.engine_image_id)
    assert identity.index_digest == index
    assert identity.manifest_digest == digests[ours.image_id]
    assert identity.config_digest == ours.image_id


def test_a_tag_is_refused_with_the_digest_to_use_and_resolved_for_a_dry_run(
    sources: ImageSources,
    engine: DockerEngine,
    registry: Any,
    small_image: Callable[..., Any],
) -> None:
    image = small_image()
    digest = registry.push_image(image, tag="v1")
    with pytest.raises(RefusedByPolicy, match=f"it now means {registry.name}@{digest}"):
        resolve_image(f"{registry.name}:v1", sources=sources, platform=AMD64, allow_tag=False)
    shown = resolve_image(f"{registry.name}:v1", sources=sources, platform=AMD64, allow_tag=True)
    assert shown.reference == f"{registry.name}@{digest}"
    assert engine.inspect_image(shown.config_digest) is None


@pytest.mark.parametrize("by_index", [True, False])
def test_another_platform_is_refused_before_anything_is_pulled(
    sources: ImageSources,
    engine: DockerEngine,
    registry: Any,
    small_image: Callable[..., Any],
    by_index: bool,
) -> None:
    image = small_image("linux/arm64")
    digest = registry.push_image(image)
    if by_index:
        digest = registry.push_index([child(digest, 1, "linux/arm64")])
    with pytest.raises(RefusedByPolicy, match="linux/arm64"):
        intake(sources, f"{registry.name}@{digest}")
    assert engine.inspect_image(image.image_id) is None


def test_a_digest_that_nobody_pushed_quotes_the_registry(
    sources: ImageSources, registry: Any
) -> None:
    with pytest.raises(MalformedDocument, match=r"404 .*check the name"):
        intake(sources, f"{registry.name}@{oci_digest(b'nothing')}")


def test_too_little_space_is_said_before_the_pull(
    sources: ImageSources,
    engine: DockerEngine,
    registry: Any,
    small_image: Callable[..., Any],
) -> None:
    image = small_image()
    text = f"{registry.name}@{registry.push_image(image)}"
    resolved = resolve_image(text, sources=sources, platform=AMD64, allow_tag=False)
    asked: list[str] = []

    def nearly_nothing(path: str) -> int:
        asked.append(path)
        return 1000

    with pytest.raises(PlatformFault, match="1000 are free"):
        bring_in(resolved, sources=sources, free_bytes=nearly_nothing, reporter=SilentReporter())
    assert asked == [engine.describe().data_root]
    assert engine.inspect_image(image.image_id) is None


def test_the_removal_says_so_when_a_container_keeps_the_layers(
    sources: ImageSources,
    engine: DockerEngine,
    registry: Any,
    small_image: Callable[..., Any],
    brought_in: list[str],
) -> None:
    image = small_image()
    identity = intake(sources, f"{registry.name}@{registry.push_image(image)}")
    brought_in.append(identity.engine_image_id)
    name = f"piste-test-{image.image_id[7:19]}"
    engine.create_container(name, {"Image": image.image_id})
    try:
        removal = remove_image_with_proof(engine, identity)
        assert not removal.gone
        assert name in removal.detail
    finally:
        engine.remove_container(name)
    assert remove_image_with_proof(engine, identity).gone
