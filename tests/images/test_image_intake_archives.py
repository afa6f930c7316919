"""Archives go into a real engine without their claims; the machine's own Python runs there."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.images import ImageIdentity, Transport
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.bring_in_image import bring_in
from orchestrator.images.files.archive_file import ArchiveFile
from orchestrator.images.http.registry import HttpRegistry
from orchestrator.images.python.python_image import build_python_image, python_program
from orchestrator.images.resolve_image import ImageSources, resolve_image
from orchestrator.images.rules.image_archive import (
    TarEntry,
    docker_archive_chunks,
    oci_layout_chunks,
    tar_chunks,
)
from orchestrator.support.reporter import SilentReporter

pytestmark = pytest.mark.docker


@pytest.fixture
def sources(engine: DockerEngine) -> ImageSources:
    return ImageSources(engine=engine, registry=HttpRegistry(), open_archive=ArchiveFile)


def intake(sources: ImageSources, text: str, *, allow_tag: bool = False) -> ImageIdentity:
    resolved = resolve_image(text, sources=sources, platform="linux/amd64", allow_tag=allow_tag)
    return bring_in(
        resolved, sources=sources, free_bytes=lambda path: None, reporter=SilentReporter()
    )


def run_once(engine: DockerEngine, image_id: str) -> tuple[int, str]:
    """Run the image as the sandbox's user on a read-only root without network."""
    options = {
        "Image": image_id,
        "User": "65532:65532",
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "Tmpfs": {"/tmp": "rw,exec,size=64m,uid=65532"},
        },
    }
    container = engine.create_container(f"piste-test-{image_id[7:19]}", options)
    try:
        engine.start_container(container)
        assert engine.wait_for_exit(container, 60)
        inspection = engine.inspect_container(container)
        assert inspection is not None
        log = engine.read_log(container, 1 << 20).decode()
        return int(inspection["State"]["ExitCode"]), log
    finally:
        engine.remove_container(container)


PROGRAM = """
import asyncio, bz2, ctypes, decimal, hashlib, json, lzma, multiprocessing, os, sqlite3, ssl, zlib
from concurrent.futures import ProcessPoolExecutor
import numpy
with ProcessPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
assert ctypes.CDLL(None).getpid() == os.getpid()
assert sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)
print(os.getuid(), float((numpy.ones((3, 3)) @ numpy.ones((3, 3))).sum()))
"""


@pytest.mark.parametrize("oci_layout", [False, True])
def test_the_machines_own_python_runs_from_either_layout(
    sources: ImageSources,
    engine: DockerEngine,
    build_image: Callable[..., Any],
    brought_in: list[str],
    oci_layout: bool,
) -> None:
    built = build_image(python_program(PROGRAM, distributions=("numpy",)), oci_layout=oci_layout)
    identity = intake(sources, str(built.path))
    brought_in.append(identity.engine_image_id)
    expected = Transport.OCI_ARCHIVE if oci_layout else Transport.DOCKER_ARCHIVE
    assert identity.transport is expected
    assert (identity.manifest_digest is not None) is oci_layout
    assert identity.engine_image_id == identity.config_digest == built.image_id
    assert identity.diff_ids == built.diff_ids
    assert identity.archive_sha256 == hashlib.sha256(built.path.read_bytes()).hexdigest()
    assert run_once(engine, identity.engine_image_id) == (0, "65532 27.0\n")


def write(path: Path, chunks: Any) -> Path:
    path.write_bytes(b"".join(chunks))
    return path


def test_what_docker_save_wrote_is_taken_with_the_same_id(
    sources: ImageSources,
    engine: DockerEngine,
    small_image: Callable[..., Any],
    brought_in: list[str],
    tmp_path: Path,
) -> None:
    image = small_image(extra_layers=1)
    first = write(tmp_path / "first.tar", docker_archive_chunks(image.config, image.layers))
    identity = intake(sources, str(first))
    brought_in.append(identity.engine_image_id)
    saved = write(tmp_path / "saved.tar", engine.save_image(identity.engine_image_id))
    engine.remove_image(identity.engine_image_id)
    again = intake(sources, str(saved))
    assert again.same_content_as(identity)
    assert again.engine_image_id == image.image_id


def test_an_archive_that_claims_another_images_tag_does_not_move_it(
    sources: ImageSources,
    engine: DockerEngine,
    small_image: Callable[..., Any],
    brought_in: list[str],
    tmp_path: Path,
) -> None:
    trusted, hostile = small_image(), small_image()
    tag = f"piste-test-holder:{trusted.image_id[7:19]}"
    loaded = intake(
        sources,
        str(write(tmp_path / "t.tar", docker_archive_chunks(trusted.config, trusted.layers))),
    )
    brought_in.append(loaded.engine_image_id)
    subprocess.run(["docker", "tag", trusted.image_id, tag], check=True)
    archive = tmp_path / "hostile.tar"
    write(archive, docker_archive_chunks(hostile.config, hostile.layers))
    with tarfile.open(archive) as tar:
        files = [(member.name, tar.extractfile(member)) for member in tar]
        contents = {name: file.read() for name, file in files if file is not None}
    (entry,) = json.loads(contents["manifest.json"])
    contents["manifest.json"] = json.dumps([entry | {"RepoTags": [tag]}]).encode()
    write(archive, tar_chunks(TarEntry(path=name, data=data) for name, data in contents.items()))

    identity = intake(sources, str(archive))
    brought_in.append(identity.engine_image_id)
    assert identity.engine_image_id == hostile.image_id
    tagged = engine.inspect_image(trusted.image_id)
    untagged = engine.inspect_image(hostile.image_id)
    assert tagged is not None
    assert untagged is not None
    assert (tagged["RepoTags"], untagged["RepoTags"]) == ([tag], [])


@pytest.mark.parametrize("layout", ["docker", "oci"])
def test_an_archive_for_another_platform_is_refused_before_it_is_loaded(
    sources: ImageSources,
    engine: DockerEngine,
    small_image: Callable[..., Any],
    tmp_path: Path,
    layout: str,
) -> None:
    image = small_image("linux/arm64")
    chunks = (
        docker_archive_chunks(image.config, image.layers)
        if layout == "docker"
        else oci_layout_chunks(image.config, image.layers, platform="linux/arm64")
    )
    with pytest.raises(RefusedByPolicy, match="linux/arm64"):
        intake(sources, str(write(tmp_path / "arm.tar", chunks)))
    assert engine.inspect_image(image.image_id) is None


def test_a_local_image_is_resolved_to_its_full_id_for_a_dry_run_only(
    sources: ImageSources,
    engine: DockerEngine,
    small_image: Callable[..., Any],
    brought_in: list[str],
    tmp_path: Path,
) -> None:
    image = small_image()
    archive = write(tmp_path / "a.tar", docker_archive_chunks(image.config, image.layers))
    brought_in.append(intake(sources, str(archive)).engine_image_id)
    name = f"piste-test-local:{image.image_id[7:19]}"
    subprocess.run(["docker", "tag", image.image_id, name], check=True)
    for spelling in (name, image.image_id, image.image_id[7:22]):
        identity = intake(sources, f"engine:{spelling}", allow_tag=True)
        assert identity.transport is Transport.ENGINE
        assert identity.reference == f"engine:{image.image_id}"
        assert identity.config_digest == identity.engine_image_id == image.image_id
    with pytest.raises(RefusedByPolicy, match="only this machine knows it"):
        intake(sources, f"engine:{name}")
    with pytest.raises(MalformedDocument, match="no such image"):
        intake(sources, f"engine:{name}-not", allow_tag=True)


def test_an_archive_that_changed_after_it_was_read_is_not_loaded(
    sources: ImageSources,
    engine: DockerEngine,
    small_image: Callable[..., Any],
    tmp_path: Path,
) -> None:
    image, other = small_image(), small_image()
    path = write(tmp_path / "a.tar", docker_archive_chunks(image.config, image.layers))
    resolved = resolve_image(str(path), sources=sources, platform="linux/amd64", allow_tag=False)
    write(path, docker_archive_chunks(other.config, other.layers))
    with pytest.raises(PlatformFault, match="changed while it was read"):
        bring_in(resolved, sources=sources, free_bytes=lambda path: None, reporter=SilentReporter())
    assert engine.inspect_image(image.image_id) is None
    assert engine.inspect_image(other.image_id) is None


def test_the_same_inputs_build_the_same_bytes(image_cache: Path, tmp_path: Path) -> None:
    program = python_program("print(1)")
    one = build_python_image(program, tmp_path / "1.tar", cache=image_cache)
    two = build_python_image(program, tmp_path / "2.tar", cache=image_cache)
    assert one.path.read_bytes() == two.path.read_bytes()
    other = build_python_image(
        replace(program, platform="linux/arm64"), tmp_path / "3.tar", cache=image_cache
    )
    assert other.image_id != one.image_id
    assert other.diff_ids == one.diff_ids
