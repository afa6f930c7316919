"""A real engine that is absent, forbidden, misled or killed in mid-run."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.engine.ports import EngineError, EngineUnavailable
from orchestrator.sandbox.parts import ensure_image, list_leftovers
from orchestrator.sandbox.request import SandboxRequest
from orchestrator.sandbox.rules.elf import Architecture, ProbeCall, pause_elf, syscall_probe_elf
from orchestrator.sandbox.rules.tiny_image import TinyImage, tiny_image
from orchestrator.sandbox.run_in_sandbox import run_in_sandbox
from orchestrator.sandbox.self_test import probe_sandbox, require_sandbox
from orchestrator.support.reporter import SilentReporter, Step
from orchestrator.support.system_clock import SystemClock
from sandbox_profiles.profile import load_profile

pytestmark = pytest.mark.docker

AMD64 = Architecture.AMD64
PLATFORM = "linux/amd64"
PROFILE = load_profile("certified")
EMPTY_TAR = bytes(1024)
SLEEPER = tiny_image({"sleeper": pause_elf(AMD64)}, entrypoint=("/sleeper",), architecture=AMD64)


def request_of(image: TinyImage, config: Mapping[str, Any], **changes: Any) -> SandboxRequest:
    fields: dict[str, Any] = {
        "run_id": secrets.token_hex(8),
        "image_id": image.image_id,
        "image_config": config,
        "platform": PLATFORM,
        "profile": PROFILE,
        "input_members": lambda: (EMPTY_TAR,),
        "input_bytes": 0,
        "input_sums": {},
        "before_start": lambda _facts: None,
        **changes,
    }
    return SandboxRequest(**fields)


def test_no_engine_is_told_with_the_remedy(tmp_path: Path) -> None:
    engine = DockerEngine({"DOCKER_HOST": f"unix://{tmp_path}/absent.sock"})
    with pytest.raises(EngineUnavailable, match=r"no Docker engine answers.*systemctl start"):
        engine.describe()


def test_a_socket_that_nobody_serves_is_no_engine(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{tmp_path}/dead.sock")
    engine = DockerEngine({"DOCKER_HOST": f"unix://{tmp_path}/dead.sock"})
    with pytest.raises(EngineUnavailable, match="no Docker engine answers"):
        engine.describe()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights for this test")
def test_no_permission_on_the_socket_is_told_with_the_remedy() -> None:
    program = """
        import os, sys
        from orchestrator.engine.docker.docker_engine import DockerEngine
        from orchestrator.engine.ports import EngineUnavailable
        import docker, requests, urllib3.exceptions
        DockerEngine({"DOCKER_HOST": "unix:///nowhere"})
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        try:
            DockerEngine({}).describe()
        except EngineUnavailable as error:
            sys.exit(f"{error.exit_code} {error}")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "4 no permission on the Docker engine" in ended.stderr
    assert "usermod" in ended.stderr


def test_an_image_is_named_by_its_full_id_only() -> None:
    engine = DockerEngine(os.environ)
    for name in ("busybox", "64317251980b", "sha256:abc", "../containers"):
        with pytest.raises(EngineError, match="only a full id"):
            engine.inspect_image(name)


@pytest.mark.parametrize(
    "spelling", ["/data", "/data/", "/data/../data", "//data", "/deep/./er/data"]
)
def test_a_volume_of_the_image_is_covered_and_leaves_no_anonymous_volume(spelling: str) -> None:
    engine = DockerEngine(os.environ)
    clean = spelling.replace("//", "/").replace("/./", "/").replace("/data/../data", "/data")
    target = f"{clean.rstrip('/')}/x\0".encode()
    calls = [ProbeCall(syscall="openat", arguments=(-100, target, 0o102, 0o644))]
    image = image_with_volume(syscall_probe_elf(AMD64, calls), spelling)
    engine.load_archive((image.archive,), len(image.archive), SilentReporter())
    inspected = engine.inspect_image(image.image_id)
    assert inspected is not None
    assert inspected["Config"]["Volumes"] == {spelling: {}}
    volumes = engine.list_volumes("")
    request = request_of(image, inspected["Config"])
    result = run_in_sandbox(engine, SystemClock(), SilentReporter(), request=request)
    engine.remove_image(image.image_id)
    assert result.outcome is Outcome.NO_PREDICTIONS
    read_only_file_system = f"{2**64 - 30:016x}"
    told = result.log.decode().strip()
    assert "".join(f"{ord(letter) - 97:x}" for letter in told) == read_only_file_system
    left = set(engine.list_volumes("")) - set(volumes)
    assert not [name for name in left if not name.startswith("piste-")]


def image_with_volume(program: bytes, volume: str) -> TinyImage:
    """The tiny image with a VOLUME entry in its configuration."""
    plain = tiny_image({"probe": program}, entrypoint=("/probe",), architecture=AMD64)
    with tarfile.open(fileobj=io.BytesIO(plain.archive)) as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
    (entry,) = json.loads(files["manifest.json"])
    config = json.loads(files.pop(entry["Config"]))
    config["config"]["Volumes"] = {volume: {}}
    data = json.dumps(config).encode()
    digest = hashlib.sha256(data).hexdigest()
    entry["Config"] = f"{digest}.json"
    files |= {entry["Config"]: data, "manifest.json": json.dumps([entry]).encode()}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return TinyImage(image_id=f"sha256:{digest}", platform=PLATFORM, archive=buffer.getvalue())


class MisledEngine(DockerEngine):
    """An engine that drops the filter and says nothing: a typo in it has this effect."""

    def create_container(self, name: str, options: Mapping[str, Any]) -> str:
        host = dict(options["HostConfig"])
        self.asked = list(host["SecurityOpt"])
        nothing_filtered = '{"defaultAction":"SCMP_ACT_ALLOW","syscals":[]}'
        host["SecurityOpt"] = ["no-new-privileges:true", f"seccomp={nothing_filtered}"]
        return super().create_container(name, {**options, "HostConfig": host})

    def inspect_container(self, container: str) -> Mapping[str, Any] | None:
        found = super().inspect_container(container)
        if found is not None:
            found["HostConfig"]["SecurityOpt"] = self.asked
        return found


def test_the_self_test_holds_on_this_engine() -> None:
    engine = DockerEngine(os.environ)
    run_id = secrets.token_hex(8)
    results = probe_sandbox(engine, PROFILE, run_id=run_id, platform=PLATFORM)
    assert [result for result in results if not result.holds] == []
    require_sandbox(results)
    assert len(results) > 60
    assert run_id not in list_leftovers(engine)


def test_the_self_test_sees_that_a_filter_is_silently_ignored() -> None:
    results = probe_sandbox(
        MisledEngine(os.environ), PROFILE, run_id=secrets.token_hex(8), platform=PLATFORM
    )
    failed = {result.name for result in results if not result.holds}
    assert "system calls are filtered" in failed or "io_uring: refused" in failed
    assert "clone3: refused" in failed


class ForgetfulEngine(DockerEngine):
    """An engine that loses the news of so many memory kills: under load a real one loses some."""

    lost = 0

    def saw_oom(self, container: str) -> bool:
        seen = super().saw_oom(container)
        self.lost -= seen
        return seen and self.lost < 0


@pytest.mark.parametrize(("lost", "holds"), [(1, True), (9, False)])
def test_the_self_test_asks_again_where_the_news_of_a_memory_kill_was_lost(
    lost: int, holds: bool
) -> None:
    engine = ForgetfulEngine(os.environ)
    engine.lost = lost
    results = probe_sandbox(engine, PROFILE, run_id=secrets.token_hex(8), platform=PLATFORM)
    failed = [result.name for result in results if not result.holds]
    assert failed == ([] if holds else ["the memory limit acts"])


def test_a_gigabyte_streams_into_memory_volumes_in_little_memory() -> None:
    code = textwrap.dedent(
        """
        import hashlib, os, secrets, tarfile
        from orchestrator.engine.docker.docker_engine import DockerEngine
        from orchestrator.support.reporter import SilentReporter
        from orchestrator.sandbox.parts import PartNames, input_has_changed, remove_parts, start_holder
        from sandbox_profiles.profile import load_profile
        SIZE = 1100 * 2**20
        block, digest = os.urandom(2**20), hashlib.sha256()
        def tar():
            member = tarfile.TarInfo("clip.npy"); member.size = SIZE
            yield member.tobuf()
            for _ in range(SIZE // 2**20):
                digest.update(block)
                yield block
            yield bytes(1024)
        engine, run_id = DockerEngine(os.environ), secrets.token_hex(8)
        names = PartNames.of(run_id, "")
        try:
            holder = start_holder(
                engine, names, load_profile("certified"), run_id=run_id,
                platform="linux/amd64", input_bytes=SIZE, input_files=1)
            engine.put_archive(holder.container_id, "/input", tar())
            sums = {"clip.npy": digest.hexdigest()}
            assert not input_has_changed(engine, holder.container_id, sums)
        finally:
            assert remove_parts(engine, names) == ()
        # Not ru_maxrss: a child of a large process inherits that process's peak.
        (peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
        print(int(peak.split()[1]) // 1024)
        """
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 200


@pytest.fixture
def private_engine(tmp_path: Path) -> Iterator[tuple[DockerEngine, subprocess.Popen[bytes]]]:
    """A dockerd of the test's own, to be killed."""
    dockerd = shutil.which("dockerd")
    if dockerd is None or os.geteuid() != 0:
        pytest.skip("needs dockerd and root, to start an engine of its own")
    short = Path("/run") / f"piste-test-{secrets.token_hex(4)}"
    short.mkdir()
    command = [
        *("unshare", "--net"),  # an engine without a bridge takes that of the machine's own away
        dockerd,
        f"--data-root={tmp_path}/data",
        f"--exec-root={short}/exec",
        f"--pidfile={short}/pid",
        f"--host=unix://{short}/sock",
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    engine = DockerEngine({"DOCKER_HOST": f"unix://{short}/sock"})
    for _ in range(200):
        try:
            engine.describe()
            break
        except EngineUnavailable:
            time.sleep(0.1)
    else:
        pytest.fail((tmp_path / "log").read_text()[-2000:])
    yield engine, process
    if process.poll() is None:
        process.terminate()
        process.wait(30)
    end_private_containerd(short)
    for mount in mounts_below(str(tmp_path), str(short)):
        subprocess.run(["umount", "-l", mount], check=True)
    shutil.rmtree(tmp_path / "data")
    shutil.rmtree(short)


def end_private_containerd(exec_root: Path) -> None:
    """End what a killed engine leaves: containerd and shims, known by their paths, and containers."""
    for _ in range(50):
        everything = [pid for pid in Path("/proc").iterdir() if pid.name.isdigit()]
        left = [
            pid
            for pid in everything
            if named(pid, exec_root) or named(parent_of(pid), exec_root)  # a shim's container
        ]
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(int(pid.name), signal.SIGKILL)
        time.sleep(0.1)


def mounts_below(*roots: str) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    mounts = [line.split()[4] for line in lines]
    return sorted((mount for mount in mounts if mount.startswith(roots)), reverse=True)


def parent_of(pid: Path) -> Path:
    try:
        return Path("/proc") / (pid / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return pid


def named(pid: Path, exec_root: Path) -> bool:
    try:
        return str(exec_root).encode() in (pid / "cmdline").read_bytes()
    except OSError:
        return False


def test_an_engine_killed_in_mid_run_is_a_platform_fault(
    private_engine: tuple[DockerEngine, subprocess.Popen[bytes]],
) -> None:
    engine, dockerd = private_engine
    ensure_image(engine, SLEEPER)

    class Killer(SilentReporter):
        def progress(self, step: Step, done: float, total: float | None, unit: str) -> None:
            if step is Step.RUN and done > 1 and dockerd.poll() is None:
                dockerd.kill()
                dockerd.wait(10)

    request = request_of(SLEEPER, {"Entrypoint": ["/sleeper"]})
    result = run_in_sandbox(engine, SystemClock(), Killer(), request=request)
    assert dockerd.returncode == -9
    assert (result.outcome, result.diagnostics) == (
        Outcome.PLATFORM_FAULT,
        (Diagnostic.ENGINE_LOST,),
    )
    assert len(result.leftovers) == 4
