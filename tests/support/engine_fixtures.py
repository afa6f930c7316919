"""A real engine, a real registry on loopback, and images made of this machine's own Python."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import requests

from manifests.digests import oci_digest
from manifests.encoding import canonical_json
from manifests.oci import OCI_CONFIG, OCI_INDEX, OCI_LAYER, OCI_MANIFEST
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.engine.ports import EngineUnavailable
from orchestrator.images.python.python_image import (
    BuiltImage,
    PythonImage,
    build_python_image,
    python_program,
)
from orchestrator.images.rules.image_archive import (
    ImageSettings,
    Layer,
    TarEntry,
    config_document,
    layer_from_entries,
)
from orchestrator.sandbox.parts import architecture_of
from orchestrator.sandbox.rules.elf import syscall_probe_elf
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.support.reporter import SilentReporter
from tests.support.certify_fixtures import (
    HASTY_EDITION,
    ROOMY_QUOTA,
    Organizer,
    make_organizer,
    seal_sample,
)
from tests.support.hostile_image import HASTY_PROFILE, HERE
from tests.support.hostile_images import HONEST


@pytest.fixture(scope="session")
def engine() -> DockerEngine:
    """The engine on DOCKER_HOST or the default socket."""
    found = DockerEngine(os.environ)
    try:
        found.describe()
    except EngineUnavailable as error:
        pytest.skip(f"needs a Docker engine: {error}")
    return found


@pytest.fixture
def brought_in(engine: DockerEngine) -> Iterator[list[str]]:
    """Ids of images to remove after the test; nothing else is touched."""
    ids: list[str] = []
    yield ids
    for image_id in ids:
        engine.remove_image(image_id)


@pytest.fixture(scope="session")
def image_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Base layers, shared by all workers of one test run."""
    folder = tmp_path_factory.getbasetemp()
    return (folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder) / "image-cache"


Build = Callable[..., BuiltImage]


@pytest.fixture
def build_image(image_cache: Path, tmp_path: Path) -> Build:
    """Build an archive from a program's source or a PythonImage; every call is another image."""

    def build(
        image: str | PythonImage, *, oci_layout: bool = False, **fields: object
    ) -> BuiltImage:
        made = python_program(image) if isinstance(image, str) else image
        settings = made.settings
        labels = dict(settings.labels) | {"test": uuid.uuid4().hex}
        made = replace(made, settings=replace(settings, labels=labels), **fields)  # type: ignore[arg-type]  # fields of PythonImage
        path = tmp_path / f"{uuid.uuid4().hex[:8]}.tar"
        return build_python_image(made, path, cache=image_cache, oci_layout=oci_layout)

    return build


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallImage:
    """An image of one small layer, for tests that never run it."""

    config: bytes
    layers: tuple[Layer, ...]

    @property
    def image_id(self) -> str:
        return oci_digest(self.config)


MakeSmall = Callable[..., SmallImage]


@pytest.fixture
def small_image() -> MakeSmall:
    """Make a small image for a platform; every call is another one."""

    def make(platform: str = "linux/amd64", *, extra_layers: int = 0) -> SmallImage:
        layers = tuple(
            layer_from_entries([TarEntry(path=f"f{number}", data=uuid.uuid4().bytes)])
            for number in range(1 + extra_layers)
        )
        settings = ImageSettings(entrypoint=("/f0",), platform=platform)
        return SmallImage(
            config=config_document(settings, [layer.diff_id for layer in layers]), layers=layers
        )

    return make


@dataclass(slots=True)
class LocalRegistry:
    """A registry on loopback, filled through its own HTTP API."""

    host: str
    repository: str = field(default_factory=lambda: f"test/{uuid.uuid4().hex[:12]}")

    @property
    def name(self) -> str:
        return f"{self.host}/{self.repository}"

    def push_blob(self, data: bytes) -> None:
        base = f"http://{self.host}"
        begun = requests.post(f"{base}/v2/{self.repository}/blobs/uploads/", timeout=10)
        location = requests.compat.urljoin(base, begun.headers["Location"])
        done = requests.put(location, params={"digest": oci_digest(data)}, data=data, timeout=10)
        assert done.status_code == 201, done.text

    def push_manifest(self, data: bytes, media_type: str, tag: str | None = None) -> str:
        url = f"http://{self.host}/v2/{self.repository}/manifests/{tag or oci_digest(data)}"
        done = requests.put(url, data=data, headers={"Content-Type": media_type}, timeout=10)
        assert done.status_code == 201, done.text
        return oci_digest(data)

    def push_image(self, image: SmallImage, tag: str | None = None) -> str:
        """Push config, layers and manifest; return the manifest digest."""
        self.push_blob(image.config)
        for layer in image.layers:
            self.push_blob(b"".join(layer.chunks()))
        return self.push_manifest(manifest_of(image), OCI_MANIFEST, tag)

    def push_index(self, children: list[dict[str, object]], tag: str | None = None) -> str:
        """Push an index; return its digest."""
        document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children}
        return self.push_manifest(canonical_json(document), OCI_INDEX, tag)


def manifest_of(image: SmallImage) -> bytes:
    layers = [
        {"mediaType": OCI_LAYER, "digest": layer.diff_id, "size": layer.size_bytes}
        for layer in image.layers
    ]
    config = {"mediaType": OCI_CONFIG, "digest": image.image_id, "size": len(image.config)}
    return canonical_json(
        {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers}
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if requests.get(url, timeout=1).status_code == 200:
                return
        except requests.ConnectionError:
            time.sleep(0.05)
    pytest.fail(f"docker-registry did not answer on {url}")


@pytest.fixture(scope="session")
def registry_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Debian's docker-registry on a loopback port; its storage goes with the test run."""
    binary = shutil.which("docker-registry")
    if binary is None:
        pytest.skip("needs docker-registry (apt-get install docker-registry)")
    folder, host = tmp_path_factory.mktemp("registry"), f"127.0.0.1:{_free_port()}"
    config = folder / "config.yml"
    config.write_text(
        "version: 0.1\nlog: {level: error}\n"
        f"storage:\n  filesystem: {{rootdirectory: {folder}/storage}}\n  delete: {{enabled: true}}\n"
        f"http: {{addr: '{host}'}}\n"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([binary, "serve", str(config)], stdout=log, stderr=log)
        try:
            _wait_until_it_answers(f"http://{host}/v2/", process)
            yield host
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture
def registry(registry_host: str) -> LocalRegistry:
    """A repository of its own in the session's registry."""
    return LocalRegistry(registry_host)


@pytest.fixture(scope="session")
def warm_engine(
    engine: DockerEngine, image_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerEngine]:
    """The engine, holding the layer that all images made of this machine's Python share."""
    archive = tmp_path_factory.mktemp("base") / "base.tar"
    built = HONEST.build(archive, cache=image_cache)
    with archive.open("rb") as file:
        chunks = iter(lambda: file.read(2**20), b"")
        engine.load_archive(chunks, built.size_bytes, SilentReporter())
    archive.unlink()
    yield engine
    engine.remove_image(built.image_id)


@pytest.fixture(scope="session")
def organizer(
    warm_engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Organizer]:
    """A workspace of this worker's own, with an edition for each profile of the hostile images."""
    root = tmp_path_factory.mktemp("organizer")
    seed = int.from_bytes(os.urandom(4), "big")
    made = make_organizer(root, warm_engine, seed=seed, quota=ROOMY_QUOTA)
    seal_sample(
        made.root,
        root / "hasty",
        edition=HASTY_EDITION,
        profile=HASTY_PROFILE,
        seed=seed,
        quota=ROOMY_QUOTA,
    )
    yield made
    assert list(made.files_with(made.mark)) == []


@pytest.fixture(scope="session")
def honest_archive(image_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    """An entrant that answers by the contract, as an archive."""
    return HONEST.build(tmp_path_factory.mktemp("honest") / "honest.tar", cache=image_cache)


@pytest.fixture(scope="session")
def silent_archive(tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    """An entrant of a few kilobytes that ends at once and says nothing."""
    architecture = architecture_of(HERE)
    files = {"quit": syscall_probe_elf(architecture, []), "mark": uuid.uuid4().bytes}
    image = tiny_image(files, entrypoint=("/quit",), architecture=architecture)
    path = tmp_path_factory.mktemp("silent") / "silent.tar"
    path.write_bytes(image.archive)
    return BuiltImage(
        path=path, image_id=image.image_id, diff_ids=(), size_bytes=len(image.archive)
    )
