"""The kit's Dockerfile builds with `docker build`: here upon a base that stands for the public one.

The base has what the public image has and the Dockerfile uses: Python, pip, a shell, chmod; numpy
too, so that pip finds the requirement met and asks no registry.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.python.python_image import PythonImage, build_python_image
from orchestrator.images.rules.image_archive import ImageSettings, TarEntry
from orchestrator.samples.new_kit import new_kit
from orchestrator.support.files.new_folder import create_folder

pytestmark = pytest.mark.docker

PUBLIC_BASE = "FROM python:3.12-slim\n"
PIP = (
    "#!/usr/local/bin/python3\nfrom pip._internal.cli.main import main\nraise SystemExit(main())\n"
)
PISTE = Path(sys.executable).with_name("piste")


def shell(*words: str, folder: Path) -> str:
    environment = os.environ | {"PATH": f"{PISTE.parent}:{os.environ['PATH']}", "COLUMNS": "100"}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[str]:
    """Load a base image and tag it; return the tag."""
    if shutil.which("docker") is None:
        pytest.skip("needs the docker command (apt-get install docker.io)")
    folder = tmp_path_factory.mktemp("base")
    image = PythonImage(
        entries=(TarEntry(path="/usr/local/bin/pip", data=PIP.encode(), mode=0o755),),
        distributions=("pip", "numpy"),
        programs=("/bin/sh", "/bin/chmod"),
        settings=ImageSettings(
            entrypoint=("/usr/local/bin/python3",),
            user="0:0",
            labels={"test": uuid.uuid4().hex},
        ),
    )
    built = build_python_image(image, folder / "base.tar", cache=image_cache)
    tag = f"piste-test-base:{uuid.uuid4().hex[:12]}"
    shell("docker", "load", "--quiet", "--input", str(built.path), folder=folder)
    shell("docker", "tag", built.image_id, tag, folder=folder)
    yield tag
    subprocess.run(["docker", "rmi", "--force", tag], capture_output=True, check=False)


def test_the_dockerfile_builds_and_its_saved_image_passes_a_dry_run(
    base: str, engine: DockerEngine, tmp_path: Path
) -> None:
    name = f"kit-{uuid.uuid4().hex[:12]}"
    kit = new_kit(tmp_path, name, "recognition", create=create_folder).folder
    dockerfile = kit / "Dockerfile"
    text = dockerfile.read_text()
    assert text.count(PUBLIC_BASE) == 1
    dockerfile.write_text(text.replace(PUBLIC_BASE, f"FROM {base}\n"))
    (kit / "app" / "main.py").chmod(0o600)  # as under a strict umask
    try:
        shell("make", "save", folder=kit)
        said = shell("piste", "dry-run", "image.tar", "--json", folder=kit)
        assert json.loads(said)["outcome"] == "completed"
        image = json.loads(shell("docker", "image", "inspect", name, folder=kit))[0]["Config"]
        assert image["User"] == "65532:65532"
        assert image["Entrypoint"] == ["python", "/app/main.py"]
    finally:
        subprocess.run(["docker", "rmi", "--force", name], capture_output=True, check=False)


def test_the_image_holds_the_program_and_no_archive_of_an_earlier_build(
    base: str, tmp_path: Path
) -> None:
    name = f"kit-{uuid.uuid4().hex[:12]}"
    kit = new_kit(tmp_path, name, "translation", create=create_folder).folder
    (kit / "image.tar").write_bytes(bytes(2**20))
    (kit / "Dockerfile").write_text(f"FROM {base}\nCOPY . /everything\n")
    try:
        shell("docker", "build", "--quiet", "--tag", name, ".", folder=kit)
        listing = shell(
            *("docker", "run", "--rm", "--network", "none", "--entrypoint", "python", name),
            *("-c", "import os; print(sorted(os.listdir('/everything')))"),
            folder=kit,
        )
        assert "'app'" in listing
        assert "image.tar" not in listing
    finally:
        subprocess.run(["docker", "rmi", "--force", name], capture_output=True, check=False)
