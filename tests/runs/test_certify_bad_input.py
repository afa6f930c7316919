"""What an organizer's machine can get wrong: a clear message, the right exit code, nothing half done."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manifests.statements import RunVoided
from orchestrator.images.python.python_image import BuiltImage
from tests.support.certify_fixtures import EDITION, PISTE, Organizer, piste

pytestmark = pytest.mark.docker
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to mount, or to drop rights")


@pytest.fixture
def spoiled(organizer: Organizer, tmp_path: Path) -> Organizer:
    """The organizer's workspace, copied: a test may spoil it."""
    shutil.copytree(organizer.root, tmp_path / "spoiled")
    return Organizer(root=tmp_path / "spoiled", engine=organizer.engine, mark=organizer.mark)


def certify(
    organizer: Organizer, image: Path, team: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    arguments = ("certify", "--edition", EDITION, "--team", team, image)
    return piste(*arguments, workspace=organizer.root, environment=environment)


def assert_refused(ended: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    assert "Traceback" not in ended.stderr
    lines = [line for line in ended.stderr.splitlines() if line.startswith("piste: ")]
    assert len(lines) == 1
    for word in words:
        assert word in ended.stderr.replace("\n", " ")


def test_no_engine(organizer: Organizer, silent_archive: BuiltImage, tmp_path: Path) -> None:
    team = organizer.new_team()
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path}/absent.sock"}
    ended = certify(organizer, silent_archive.path, team, nowhere)
    assert_refused(ended, 4, "no Docker engine answers", "systemctl start docker")
    assert organizer.story(team) == []


@needs_root
def test_no_permission_on_the_socket(
    organizer: Organizer, silent_archive: BuiltImage, tmp_path: Path
) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (util-linux)")
    team = organizer.new_team()
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as closed:
        place = Path(folder) / "sock"
        closed.bind(str(place))
        closed.listen()
        os.chown(place, 65534, 65534)
        place.chmod(0)
        arguments = ["certify", "--edition", EDITION, "--team", team, str(silent_archive.path)]
        rights = "--bounding-set=-dac_override,-dac_read_search"
        ended = subprocess.run(
            ["setpriv", rights, *PISTE, *arguments, "--workspace", str(organizer.root)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=dict(os.environ) | {"DOCKER_HOST": f"unix://{place}"},
        )
    assert_refused(ended, 4, "no permission on the Docker engine", "usermod")
    assert organizer.story(team) == []


@needs_root
def test_a_read_only_workspace(
    spoiled: Organizer, silent_archive: BuiltImage, mounts: Callable[..., None]
) -> None:
    team = spoiled.new_team()
    mounts("--bind", spoiled.root, options="bind,ro")
    ended = certify(spoiled, silent_archive.path, team)
    assert_refused(ended, 4, "read-only", str(spoiled.root))
    assert spoiled.story(team) == []
    assert spoiled.leftovers(team, silent_archive.image_id) == []


@needs_root
def test_a_full_disk_gives_the_run_back(
    organizer: Organizer,
    honest_archive: BuiltImage,
    tmp_path: Path,
    mounts: Callable[..., None],
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    size = sum(path.stat().st_size for path in organizer.root.rglob("*") if path.is_file())
    mounts("tmpfs", small, options=f"size={size + 2**28}")
    shutil.copytree(organizer.root, small / "workspace")
    spoiled = Organizer(root=small / "workspace", engine=organizer.engine, mark=organizer.mark)
    team = spoiled.new_team()
    filler = small / "filler"
    fill(filler)
    ended = certify(spoiled, honest_archive.path, team)
    assert_refused(ended, 4, "full")
    filler.unlink()
    reaped = piste("runs", "reap", workspace=spoiled.root)
    assert reaped.returncode == 0
    assert (spoiled.quota(team).used, spoiled.quota(team).pending) == (0, 0)
    assert spoiled.leftovers(team, honest_archive.image_id) == []
    again = certify(spoiled, honest_archive.path, team)
    assert again.returncode == 0, again.stderr
    assert spoiled.quota(team).used == 1


def fill(path: Path) -> None:
    """Write until the disk has no room."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):
        while os.write(descriptor, bytes(4096)):
            pass
    os.close(descriptor)


@pytest.fixture
def mounts() -> Iterator[Callable[..., None]]:
    """Mount something over a folder until the test has ended."""
    made: list[Path] = []

    def mount(what: str, place: Path, *, options: str) -> None:
        if what == "--bind":
            subprocess.run(["mount", "--bind", place, place], check=True)
            made.append(place)
            subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)
            return
        subprocess.run(["mount", "-t", what, "-o", options, what, place], check=True)
        made.append(place)

    yield mount
    for place in reversed(made):
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_the_wrong_key(spoiled: Organizer, silent_archive: BuiltImage) -> None:
    team = spoiled.new_team()
    key = spoiled.root / "keys" / "clips.agekey"
    own = spoiled.root / "keys" / "labels.agekey"
    key.write_bytes(own.read_bytes())
    ended = certify(spoiled, silent_archive.path, team)
    assert ended.returncode in {3, 4}, ended.stderr
    assert_refused(ended, ended.returncode, "clips")
    assert spoiled.story(team) == []
    assert spoiled.leftovers(team, silent_archive.image_id) == []


@pytest.mark.parametrize("bite", [-1, 100, "swap"], ids=["last-byte", "header", "swapped"])
def test_a_changed_ciphertext(
    spoiled: Organizer, silent_archive: BuiltImage, bite: int | str
) -> None:
    team = spoiled.new_team()
    first, second = sorted((spoiled.root / "editions" / EDITION / "sealed").iterdir())[:2]
    data = bytearray(first.read_bytes())
    if isinstance(bite, int):
        data[bite] ^= 1
    else:
        data = bytearray(second.read_bytes())
    first.chmod(0o644)
    first.write_bytes(data)
    ended = certify(spoiled, silent_archive.path, team)
    assert ended.returncode in {1, 4}, ended.stderr
    assert_refused(ended, ended.returncode, first.name)
    assert spoiled.quota(team).used == 0
    voids = [s for s in spoiled.statements(team) if isinstance(s, RunVoided)]
    assert len(voids) == len(spoiled.run_ids(team))
    assert spoiled.leftovers(team, silent_archive.image_id) == []
