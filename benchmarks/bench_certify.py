"""A certified run against a bare `docker run` of the same image, and the orchestrator's memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.bench_seal import LARGE_FRAMES, MB, write_edition
from manifests.outcomes import Outcome
from orchestrator.engine.ports import EngineUnavailable
from orchestrator.engine.rules.platforms import engine_platform
from orchestrator.images.python.python_image import build_python_image, python_program
from orchestrator.runs.certify import CertifyRequest, certify
from orchestrator.sandbox.parts import architecture_of
from orchestrator.sandbox.rules.elf import ProbeCall, syscall_probe_elf
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.support.reporter import SilentReporter
from orchestrator.support.system_clock import SystemClock
from orchestrator.wiring import samples as sample_wiring
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.add_team import add_team
from sandbox_profiles.profile import SandboxProfile, load_profile

CLIPS = 200
SLEEP_S = 10
BOUND_RATIO, BOUND_MORE_S, BOUND_MEMORY_MB = 1.20, 2.5, 300.0
REPEATS = 3
EDITION = "bench-2026"
LARGE_INPUT_BYTES = 3 * 2**30

HOSTILE = """
import json
clips = json.load(open("/input/exam.json"))["clips"]
line = json.dumps({{"clip_id": clips[0], "signs": ["YOU"] * 3}}).encode() + b"\\n"
with open("/output/predictions.jsonl", "wb") as file:
    for _ in range({megabytes}):
        file.write(line * (10**6 // len(line)))
"""
"""The same clip again and again, well formed: every line is an answer, and a problem."""


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def sleeper(folder: Path, sleep_s: int) -> tuple[Path, str]:
    """Write an image of a few kilobytes that sleeps and ends; return its archive and its id."""
    platform = engine_platform(wiring.docker_engine().describe().architecture)
    span = sleep_s.to_bytes(8, "little") + bytes(8)
    calls = [ProbeCall(syscall="nanosleep", arguments=(span, 0))] if sleep_s else []
    architecture = architecture_of(platform)
    files = {"sleep": syscall_probe_elf(architecture, calls)}
    image = tiny_image(files, entrypoint=("/sleep",), architecture=architecture)
    path = folder / f"sleeper-{sleep_s}.tar"
    path.write_bytes(image.archive)
    return path, image.image_id


def docker_run(image_id: str, profile: SandboxProfile) -> list[str]:
    """Return the command of a bare run with the profile's limits."""
    return [
        *("docker", "run", "--rm", "--network=none", "--read-only", "--cap-drop=ALL", "--init"),
        *("--security-opt=no-new-privileges", "--user=65532:65532", "--ipc=private"),
        f"--memory={profile.memory_bytes}",
        f"--memory-swap={profile.memory_bytes}",
        f"--cpus={profile.cpus}",
        f"--cpuset-cpus={profile.cpuset}",
        f"--pids-limit={profile.pids}",
        f"--shm-size={profile.shm_bytes}",
        f"--tmpfs=/tmp:rw,exec,nosuid,nodev,size={profile.tmp_bytes}",
        image_id,
    ]


def new_workspace(root: Path, edition_file: Path, teams: int) -> None:
    """Make a workspace with a sealed edition and teams `team-1`, `team-2`, …."""
    wiring.create_workspace(root, origin="example.org/bench")
    workspace = wiring.open_workspace(root)
    wiring.seal(workspace, edition_file, SilentReporter())
    for number in range(1, teams + 1):
        add_team(
            f"team-{number}",
            organizer=False,
            data_track="open-data",
            ledger=workspace.ledger,
            clock=workspace.clock,
        )


def certify_command(root: Path, archive: Path, team: int) -> list[str]:
    piste = "from orchestrator.cli.main import main; main()"
    where = ["--workspace", str(root), "--edition", EDITION, "--team", f"team-{team}"]
    return [sys.executable, "-c", piste, "certify", "--json", *where, str(archive)]


def compare(work: Path, root: Path, sleep_s: int, team: int) -> tuple[float, float]:
    """Return the best of several turns: a certified run, and a bare one."""
    archive, image_id = sleeper(work, sleep_s)
    ours, peer = [], []
    for _ in range(REPEATS):
        command = certify_command(root, archive, team)
        ours.append(seconds(lambda command=command: _expect(command, 1)))  # type: ignore[misc]
        subprocess.run(["docker", "load", "-q", "-i", archive], check=True, capture_output=True)
        bare = docker_run(image_id, load_profile("certified"))
        peer.append(seconds(lambda bare=bare: _expect(bare, 0)))  # type: ignore[misc]
        subprocess.run(["docker", "rmi", "-f", image_id], check=True, capture_output=True)
    return min(ours), min(peer)


def _expect(command: list[str], code: int) -> None:
    """Run a command; a sleeper writes no predictions, so a certified run of it ends with 1."""
    # As on an organizer's host, where the modules are compiled once and for all.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code, done.stderr
    assert code == 0 or json.loads(done.stdout)["outcome"] == Outcome.NO_PREDICTIONS


def measure_overhead(work: Path) -> list[dict[str, Any]]:
    sample_wiring.make_sample(
        work / "sample",
        track="recognition",
        clips=CLIPS,
        seed=200,
        edition=EDITION,
        consumer=None,
    )
    root = work / "workspace"
    new_workspace(root, work / "sample" / "edition.yaml", teams=3)
    ours, peer = compare(work, root, SLEEP_S, team=1)
    noop, bare = compare(work, root, 0, team=2)
    name = "docker run, same image, same limits"
    return [
        {
            "work": f"certify an entrant that sleeps {SLEEP_S} s over {CLIPS} clips",
            "ours_s": ours,
            "peer": name,
            "peer_s": peer,
            "ratio": ours / peer,
            "bound": f"<= {BOUND_RATIO:.2f}×",
            "holds": ours / peer <= BOUND_RATIO,
        },
        {
            "work": f"certify an entrant that does nothing: {noop - bare:.2f} s more",
            "ours_s": noop,
            "peer": name,
            "peer_s": bare,
            "ratio": None,
            "bound": f"<= {BOUND_MORE_S} s more",
            "holds": noop - bare <= BOUND_MORE_S,
        },
    ]


def peak_row(work: str, root: Path, archive: Path, outcome: Outcome, team: int) -> dict[str, Any]:
    """Certify in a child process and read its peak."""
    command = [sys.executable, "-m", "benchmarks.bench_certify", str(root), str(archive), str(team)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["outcome"] == outcome, found
    return {
        "work": f"certify {work}: peak memory {found['peak_mb']:.0f} MB",
        "ours_s": found["seconds"],
        "peer": None,
        "peer_s": None,
        "ratio": None,
        "bound": f"< {BOUND_MEMORY_MB:.0f} MB",
        "holds": found["peak_mb"] < BOUND_MEMORY_MB,
    }


def hostile_archive(work: Path, megabytes: int) -> Path:
    """Build an entrant that writes so many megabytes of predictions."""
    program = python_program(HOSTILE.format(megabytes=megabytes))
    path = work / f"hostile-{megabytes}.tar"
    build_python_image(program, path, cache=sample_wiring.image_cache())
    return path


def measure_memory(work: Path) -> list[dict[str, Any]]:
    """Run what could fill the orchestrator's memory: its output, then its input."""
    root = work / "workspace"
    hostile = "of hostile predictions"
    refused, invalid = hostile_archive(work, 100), hostile_archive(work, 67)
    rows = [
        peak_row(f"100 MB {hostile}", root, refused, Outcome.OUTPUT_LIMIT, team=3),
        peak_row(f"67 MB {hostile}, all read", root, invalid, Outcome.INVALID_PREDICTIONS, team=3),
    ]
    large = work / "large"
    write_edition(large, LARGE_FRAMES)
    today = SystemClock().now().replace(hour=0, minute=0, second=0)
    file = large / "edition.yaml"
    text = file.read_text().replace("2026-01-01T00:00:00Z", f"{today:%Y-%m-%dT%H:%M:%SZ}")
    file.write_text(text.replace("2026-07-01", f"{today.year + 1}-12-31"))
    new_workspace(work / "large-workspace", file, teams=1)
    shutil.rmtree(large / "keypoints")
    archive, _ = sleeper(work, 0)
    place = work / "large-workspace"
    return [*rows, peak_row("on 2 GB of clips", place, archive, Outcome.NO_PREDICTIONS, team=1)]


def child(root: Path, archive: Path, team: str) -> None:
    """Certify; print the outcome and this process's peak memory."""
    started = time.perf_counter()
    request = CertifyRequest(edition=EDITION, team=f"team-{team}", image=str(archive))
    host = wiring.run_host(wiring.docker_engine())
    run = certify(wiring.open_workspace(root), host, request, SilentReporter())
    with Path("/proc/self/status").open(encoding="ascii") as file:
        peak = next(line for line in file if line.startswith("VmHWM"))
    found = {
        "outcome": run.record.outcome,
        "seconds": time.perf_counter() - started,
        "peak_mb": int(peak.split()[1]) * 1024 / MB,
    }
    print(json.dumps(found))


def measure() -> list[dict[str, Any]]:
    """Return a row per figure: overhead measured in the same run, and peaks in MB."""
    if shutil.which("docker") is None:
        raise SystemExit("bench_certify: missing: docker, the peer")
    try:
        description = wiring.docker_engine().describe()
    except EngineUnavailable as error:
        raise SystemExit(f"bench_certify: {error}") from error
    if description.memory_bytes < 2 * LARGE_INPUT_BYTES:
        raise SystemExit(f"bench_certify: needs {2 * LARGE_INPUT_BYTES} bytes of memory")
    with tempfile.TemporaryDirectory(
        prefix="bench-certify-", dir=os.environ.get("BENCH_DIR")
    ) as name:
        work = Path(name)
        return measure_overhead(work) + measure_memory(work)


if __name__ == "__main__":
    if sys.argv[1:]:
        child(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    else:
        print(json.dumps(measure(), indent=1))
