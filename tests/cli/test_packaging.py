"""The wheel holds everything that the tool needs away from its repository."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from configparser import ConfigParser
from email import message_from_bytes
from importlib import metadata
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGES = ("manifests", "sandbox_profiles", "scorers", "orchestrator")
DATA = (
    "manifests/examples/recognition-final.yaml",
    "sandbox_profiles/certified.yaml",
    "sandbox_profiles/strict.yaml",
    "sandbox_profiles/gvisor.yaml",
    "orchestrator/samples/baselines/__init__.py",
    "orchestrator/samples/starter_kits/shared/Dockerfile",
    "orchestrator/samples/starter_kits/shared/dockerignore",
    "orchestrator/samples/starter_kits/recognition/README.md",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as an installer does, but with the backend that is here: no network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel where nothing of the repository is."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(installed: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tool from the unpacked wheel; its path comes before the repository's."""
    script = "import sys; from orchestrator.cli import main; sys.argv[0] = 'piste'; main()"
    environment = {"PATH": os.defpath, "HOME": str(cwd), "PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, check=False, cwd=cwd, env=environment, capture_output=True, text=True
    )


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_beside_them(wheel: Path) -> None:
    written = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == written


@pytest.mark.parametrize("name", DATA)
def test_data_that_the_tool_reads_at_run_time_is_in_the_wheel(wheel: Path, name: str) -> None:
    assert zipfile.ZipFile(wheel).read(name) == (ROOT / name).read_bytes()


def test_every_package_says_that_it_is_typed(wheel: Path) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(zipfile.ZipFile(wheel).namelist())


def test_the_entry_point_is_the_command_line(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/entry_points.txt")]
        declared = ConfigParser()
        declared.read_string(archive.read(name).decode())
    assert dict(declared["console_scripts"]) == PROJECT["scripts"]
    (point,) = entry_points(group="console_scripts", name="piste")
    assert point.value == declared["console_scripts"]["piste"]
    assert callable(point.load())


def test_the_metadata_names_license_dependencies_and_python(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        fields = message_from_bytes(archive.read(name))
        assert name.replace("METADATA", "licenses/LICENSE") in archive.namelist()
    required = [line for line in fields.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert len(required) == len(PROJECT["dependencies"])
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Requires-Python"] == PROJECT["requires-python"]


def test_the_unpacked_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    script = "import manifests, orchestrator, sandbox_profiles, scorers as s; print(s.__file__)"
    environment = {"PATH": os.defpath, "PYTHONPATH": str(installed)}
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(found.stdout.strip()) == installed / "scorers" / "__init__.py"


@pytest.mark.parametrize("track", ["recognition", "translation", "segmentation"])
def test_an_installed_tool_starts_a_kit_anywhere(
    installed: Path, tmp_path: Path, track: str
) -> None:
    done = run(installed, tmp_path, "new", "my-entry", "--track", track)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "my-entry" / "Dockerfile").is_file()


def test_an_installed_tool_makes_a_sample_and_seals_it(installed: Path, tmp_path: Path) -> None:
    for arguments in (
        ("sample", "sample", "--edition", "epee-sample"),
        ("init", "workspace"),
        ("seal", "sample/edition.yaml", "--workspace", "workspace"),
    ):
        done = run(installed, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "workspace" / "editions" / "epee-sample" / "seal.json").is_file()


def test_the_lock_names_every_extra_that_a_locked_package_asks_of_another() -> None:
    """Else pip takes the newest version of the other, for which the lock has no hash."""
    locked = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    pinned = [Requirement(line.rstrip("\\")) for line in locked if "==" in line and line[0] != " "]
    here = [each for each in pinned if each.marker is None or each.marker.evaluate()]
    extras = {canonicalize_name(each.name): each.extras for each in here}
    for name in extras:
        for line in metadata.requires(name) or []:
            asked = Requirement(line)
            if asked.extras and (asked.marker is None or asked.marker.evaluate({"extra": ""})):
                assert asked.extras <= extras[canonicalize_name(asked.name)], f"{name}: {line}"
