"""A folder becomes an image without any registry, and the GPU probe's image starts programs."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from manifests.digests import oci_digest
from manifests.errors import MalformedDocument
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.build_image import build_image
from orchestrator.images.python.image_builder import PythonImageBuilder
from orchestrator.images.rules.image_archive import (
    ImageSettings,
    TarEntry,
    config_document,
    docker_archive_chunks,
    docker_archive_size,
    layer_from_entries,
)
from orchestrator.sandbox.nvidia.probe_image import gpu_probe_image
from orchestrator.support.reporter import SilentReporter

pytestmark = pytest.mark.docker


def output_of(engine: DockerEngine, image_id: str, **options: object) -> str:
    name = f"piste-test-{image_id[7:19]}"
    body = {"Image": image_id, "HostConfig": {"NetworkMode": "none", "ReadonlyRootfs": True}}
    engine.create_container(name, body | options)
    try:
        engine.start_container(name)
        assert engine.wait_for_exit(name, 60)
        return engine.read_log(name, 1 << 16).decode()
    finally:
        engine.remove_container(name)


def load(engine: DockerEngine, archive: bytes, image_id: str, brought_in: list[str]) -> None:
    engine.load_archive([archive], len(archive), SilentReporter())
    brought_in.append(image_id)
    assert engine.inspect_image(image_id) is not None


def test_a_folder_with_a_main_program_becomes_an_image_that_runs(
    engine: DockerEngine, image_cache: Path, tmp_path: Path, brought_in: list[str]
) -> None:
    folder = tmp_path / "app"
    (folder / "lib" / "__pycache__").mkdir(parents=True)
    (folder / "lib" / "answer.py").write_text("ANSWER = 42\n")
    (folder / "lib" / "__pycache__" / "stale.pyc").write_bytes(b"x")
    (folder / "main.py").write_text(
        "import os\nfrom lib.answer import ANSWER\nprint(ANSWER, os.getuid(), os.getcwd())\n"
    )
    built = build_image(folder, tmp_path / "image.tar", builder=PythonImageBuilder(image_cache))
    assert built.files == 2
    load(engine, built.path.read_bytes(), built.image_id, brought_in)
    assert output_of(engine, built.image_id) == "42 65532 /app\n"


def test_a_folder_without_its_program_or_with_a_link_builds_nothing(
    image_cache: Path, tmp_path: Path
) -> None:
    builder = PythonImageBuilder(image_cache)
    (tmp_path / "app").mkdir()
    with pytest.raises(MalformedDocument, match=r"holds no main\.py"):
        build_image(tmp_path / "app", tmp_path / "image.tar", builder=builder)
    (tmp_path / "app" / "main.py").symlink_to("/etc/passwd")
    with pytest.raises(MalformedDocument, match="a link or special file"):
        build_image(tmp_path / "app", tmp_path / "image.tar", builder=builder)
    with pytest.raises(MalformedDocument, match="no such folder"):
        build_image(tmp_path / "none", tmp_path / "image.tar", builder=builder)
    assert not (tmp_path / "image.tar").exists()


def test_a_distribution_that_is_not_installed_is_named(image_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("")
    builder = PythonImageBuilder(image_cache)
    for name, fact in (("not-installed-anywhere", "is not installed"), ("../x", "no distribution")):
        with pytest.raises(MalformedDocument, match=fact):
            build_image(tmp_path, tmp_path / "image.tar", builder=builder, distributions=(name,))


def test_the_probe_image_lets_a_dynamically_linked_program_start(
    engine: DockerEngine, brought_in: list[str]
) -> None:
    """The toolkit injects nvidia-smi into the image; here /bin/true's neighbour stands for it."""
    _, base = gpu_probe_image()
    tool = layer_from_entries(
        [TarEntry(path="usr/bin/injected", data=Path("/bin/echo").read_bytes(), mode=0o755)]
    )
    config = config_document(ImageSettings(), [base.diff_id, tool.diff_id])
    archive = b"".join(docker_archive_chunks(config, [base, tool]))
    load(engine, archive, oci_digest(config), brought_in)
    shown = output_of(engine, oci_digest(config), Cmd=["/usr/bin/injected", "GPU-0, driver 1"])
    assert shown == "GPU-0, driver 1\n"


def test_the_probe_image_holds_the_c_library_and_nothing_that_runs_by_itself() -> None:
    config, layer = gpu_probe_image()
    archive = b"".join(docker_archive_chunks(config, [layer]))
    assert len(archive) == docker_archive_size(config, [layer])
    assert len(archive) < 8 << 20
    assert b"Entrypoint" not in config
    with tarfile.open(fileobj=io.BytesIO(b"".join(layer.chunks()))) as tar:
        names = [member.name for member in tar if member.isreg()]
    assert all(".so" in name for name in names)
    assert any(name.endswith("/libc.so.6") for name in names)
