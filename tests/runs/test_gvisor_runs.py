"""The gvisor profile on a real runsc: its self-test, its limits, its refusals, and whole runs."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import RefusedByPolicy
from manifests.outcomes import Diagnostic, Outcome
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.engine.ports import EngineUnavailable, StartRefused
from orchestrator.host.doctor_sandbox import probe_limits, try_profile
from orchestrator.images.python.python_image import BuiltImage
from orchestrator.runs.run_host import RunHost
from orchestrator.sandbox.rules.limit_checks import limit_checks, small_limits
from orchestrator.sandbox.rules.runtimes import GVISOR_REGISTRATION
from orchestrator.sandbox.rules.sentry_checks import OWN_KERNEL
from orchestrator.sandbox.self_test import CheckResult, probe_sandbox, require_sandbox
from sandbox_profiles.profile import SandboxProfile, load_profile
from tests.support.certify_fixtures import (
    EDITION,
    HASTY_EDITION,
    PISTE,
    ROOMY_QUOTA,
    Organizer,
    make_organizer,
    seal_sample,
)
from tests.support.hostile_image import HERE, HostileImage
from tests.support.track_editions import baseline_archive, quick_host

pytestmark = pytest.mark.docker

GVISOR = load_profile("gvisor")
LIMITS = {"the process limit acts", "the memory limit acts"}
_MIB = 2**20
SMALL: SandboxProfile = GVISOR.model_copy(
    update={
        "name": "small-gvisor",
        "memory_bytes": 512 * _MIB,
        "cpus": 1,
        "cpuset": "0",
        "pids": 512,
        "deadline_s": 90,
        "tmp_bytes": 16 * _MIB,
        "shm_bytes": 16 * _MIB,
    }
)


HASTY = SMALL.model_copy(update={"name": "hasty-gvisor", "deadline_s": 4})


def registered_runtimes(runsc: str) -> dict[str, Any]:
    """As piste says to, and in the ways that have to be refused."""
    right: dict[str, Any] = json.loads(GVISOR_REGISTRATION)["runtimes"]
    right["runsc"]["path"] = runsc
    return right | {
        "runsc-without-limits": {
            "path": runsc,
            "runtimeArgs": ["--network=none", "--ignore-cgroups"],
        },
        "runsc-with-network": {"path": runsc},
        "runsc-in-name-only": {"path": shutil.which("runc")},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the private engine lives; a socket's path has to be short."""
    found = Path("/run") / f"piste-test-{secrets.token_hex(4)}"
    if os.geteuid() != 0:
        pytest.skip("needs root, to start an engine of its own")
    found.mkdir()
    yield found
    shutil.rmtree(found, ignore_errors=True)


@pytest.fixture(scope="module")
def gvisor_engine(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    """A private engine with gVisor, which leaves the machine's own one alone."""
    runsc, dockerd, unshare = map(shutil.which, ("runsc", "dockerd", "unshare"))
    if runsc is None:
        pytest.skip("needs runsc (apt-get install runsc)")
    if dockerd is None or unshare is None:
        pytest.skip("needs dockerd and unshare, to start an engine of its own")
    data = tmp_path_factory.mktemp("engine")
    config = {
        "data-root": str(data),
        "exec-root": str(folder / "exec"),
        "pidfile": str(folder / "pid"),
        "hosts": [f"unix://{folder}/docker.sock"],
        "bridge": "none",
        "iptables": False,
        "runtimes": registered_runtimes(runsc),
    }
    (folder / "daemon.json").write_text(json.dumps(config))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            # Namespaces of its own: a second engine takes the first one's bridge away, and what it
            # has mounted goes with it.
            [unshare, "--net", "--mount", dockerd, "--config-file", str(folder / "daemon.json")],
            stdout=log,
            stderr=log,
        )
    try:
        yield answering(DockerEngine({"DOCKER_HOST": f"unix://{folder}/docker.sock"}), folder)
    finally:
        process.terminate()
        process.wait(30)
        end_abandoned(folder)
        shutil.rmtree(data, ignore_errors=True)


def end_abandoned(folder: Path) -> None:
    """End what an old runsc leaves of a container that did not start, shim included, by its paths.

    The engine has ended before: nothing else names its folder.
    """
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if f"{folder}/exec/".encode() in command:
                os.kill(int(entry.name), signal.SIGKILL)


def answering(engine: DockerEngine, folder: Path) -> DockerEngine:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(EngineUnavailable):
            if (folder / "docker.sock").exists() and "runsc" in engine.describe().runtimes:
                return engine
        time.sleep(0.1)
    pytest.skip(f"needs a second engine: {(folder / 'log').read_text()[-300:]}")


def run_id() -> str:
    return secrets.token_hex(8)


def on(runtime: str) -> SandboxProfile:
    return GVISOR.model_copy(update={"runtime": runtime})


def self_test(engine: DockerEngine, profile: SandboxProfile) -> tuple[CheckResult, ...]:
    return probe_sandbox(engine, profile, run_id=run_id(), platform=HERE)


def failed(results: tuple[CheckResult, ...]) -> set[str]:
    return {each.name for each in results if not each.holds}


def test_doctor_lets_the_gvisor_profile_run_where_gvisor_is(gvisor_engine: DockerEngine) -> None:
    description = gvisor_engine.describe()
    trial = try_profile(gvisor_engine, GVISOR, description=description, new_run_id=run_id)
    assert trial.reasons == ()
    rows = {each.name: each.seen for each in trial.findings}
    assert {"own kernel", "processes", "memory", "no network", "read-only root"} <= rows.keys()
    assert "io_uring" in rows["left to gVisor"]
    assert gvisor_engine.list_containers("piste-") == ()
    assert gvisor_engine.list_volumes("piste-") == ()


def test_every_limit_that_is_asked_of_gvisor_acts(gvisor_engine: DockerEngine) -> None:
    description = gvisor_engine.describe()
    results = probe_limits(gvisor_engine, GVISOR, run_id=run_id(), description=description)
    assert failed(results) == set()
    asked = limit_checks(small_limits(GVISOR), processors=description.cpus)
    assert [each.name for each in results] == [check.name for check in asked]


def test_limits_that_gvisor_was_told_to_ignore_are_seen_to_be_missing(
    gvisor_engine: DockerEngine,
) -> None:
    results = self_test(gvisor_engine, on("runsc-without-limits"))
    assert failed(results) == LIMITS
    with pytest.raises(RefusedByPolicy, match=r"process limit acts.*memory limit acts"):
        require_sandbox(results)


def test_a_registration_that_ignores_limits_is_refused_by_name(
    gvisor_engine: DockerEngine,
) -> None:
    trial = try_profile(
        gvisor_engine,
        on("runsc-without-limits"),
        description=gvisor_engine.describe(),
        new_run_id=run_id,
    )
    assert not trial.may_run
    assert "registered with --ignore-cgroups" in trial.reasons[0]


def test_another_runtime_under_gvisors_name_is_found_out(gvisor_engine: DockerEngine) -> None:
    assert OWN_KERNEL in failed(self_test(gvisor_engine, on("runsc-in-name-only")))


def starts(engine: DockerEngine, profile: SandboxProfile) -> bool:
    try:
        self_test(engine, profile)
    except StartRefused:
        return False
    return True


def test_a_runsc_that_starts_nothing_comes_with_its_remedy(gvisor_engine: DockerEngine) -> None:
    profile = on("runsc-with-network")
    if starts(gvisor_engine, profile):
        pytest.skip("needs a runsc that is older than the kernel: this one starts without help")
    trial = try_profile(
        gvisor_engine, profile, description=gvisor_engine.describe(), new_run_id=run_id
    )
    assert not trial.may_run
    assert GVISOR_REGISTRATION in str(trial.findings[0].remedy)


@pytest.fixture(scope="module")
def organizer(
    gvisor_engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Organizer]:
    """A workspace whose editions are run behind gVisor."""
    root = tmp_path_factory.mktemp("gvisor")
    made = make_organizer(root, gvisor_engine, seed=7, clips=8, quota=ROOMY_QUOTA, profile=SMALL)
    seal_sample(made.root, root / "hasty", edition=HASTY_EDITION, profile=HASTY, seed=7)
    yield made
    assert list(made.files_with(made.mark)) == []


@pytest.fixture(scope="module")
def host(organizer: Organizer) -> RunHost:
    return quick_host(organizer)


@pytest.fixture(scope="module")
def baseline(image_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    archive = tmp_path_factory.mktemp("baseline") / "baseline.tar"
    return baseline_archive("recognition", archive, cache=image_cache)


def test_the_baseline_is_certified_behind_gvisor_and_the_record_says_so(
    organizer: Organizer, gvisor_engine: DockerEngine, baseline: BuiltImage
) -> None:
    team = organizer.new_team()
    run = organizer.certify(baseline.path, team=team)
    assert (run.record.outcome, run.record.diagnostics) == (Outcome.COMPLETED, ())
    assert run.card is not None
    top1 = run.card.public["top1"]
    assert isinstance(top1, float)
    assert top1 > 0.25, "the baseline answers at about half, and chance is below a tenth"
    environment = run.record.environment
    definition = {"path": shutil.which("runsc"), "runtimeArgs": ["--network=none"]}
    text = json.dumps(definition, sort_keys=True, separators=(",", ":")).encode()
    assert environment["runtime"] == "runsc"
    assert environment["runtime_definition"] == {
        "path": definition["path"],
        "args": definition["runtimeArgs"],
        "sha256": hashlib.sha256(text).hexdigest(),
    }
    effective = json.loads((Path(run.folder) / "effective.json").read_bytes())
    assert effective["host_config"]["Runtime"] == "runsc"
    assert effective["profile_sha256"] == SMALL.sha256()
    assert organizer.leftovers(team, baseline.image_id) == []


TRIES = """
for address in ("192.0.2.1", "2001:db8::1"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    stopped(lambda: udp.sendto(b"clip", (address, 9999)), "ENETUNREACH", "EHOSTUNREACH")
stopped(lambda: socket.create_connection(("192.0.2.1", 80), 3), "ENETUNREACH", "EHOSTUNREACH")
stopped(lambda: socket.getaddrinfo("clip.example", 80))
stopped(lambda: socket.socket(40, socket.SOCK_STREAM), "EAFNOSUPPORT")
stopped(lambda: socket.socket(38, socket.SOCK_SEQPACKET), "EAFNOSUPPORT")
for path in ("/clip", "/etc/clip", "/app/main.py", "/input/clip", "/input/exam.json"):
    stopped(lambda: open(path, "a"), "EROFS", "EACCES")
answer()
"""
HOSTILE = (
    HostileImage(name="tries-everything", source=TRIES),
    HostileImage(
        name="memory-bomb",
        source="answer()\nblocks = []\nwhile True: blocks.append(b'x' * 2**24)\n",
        outcome=Outcome.OUT_OF_MEMORY,
        diagnostics=(Diagnostic.MEMORY_LIMIT,),
    ),
    HostileImage(
        name="fork-bomb",
        source="answer()\nwhile True: os.fork()\n",
        outcome=Outcome.NONZERO_EXIT,
        diagnostics=(Diagnostic.EXIT_FAILURE,),
    ),
    HostileImage(
        name="never-ends",
        source="answer()\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n",
        outcome=Outcome.TIMED_OUT,
        diagnostics=(Diagnostic.KILLED_AT_DEADLINE,),
        profile=HASTY,
    ),
)


ENDS: dict[str, dict[Outcome, set[Diagnostic]]] = {
    "fork-bomb": {
        Outcome.NONZERO_EXIT: {Diagnostic.EXIT_FAILURE},
        Outcome.OUT_OF_MEMORY: {Diagnostic.MEMORY_LIMIT},
    }
}
"""Every process behind gVisor takes memory of the sentry's: either limit may be met first."""


@pytest.mark.parametrize("image", HOSTILE, ids=lambda image: image.name)
def test_a_hostile_image_ends_as_it_must_behind_gvisor(
    image: HostileImage, organizer: Organizer, host: RunHost, image_cache: Path, tmp_path: Path
) -> None:
    built = image.build(tmp_path / "image.tar", cache=image_cache)
    team = organizer.new_team()
    edition = HASTY_EDITION if image.profile is HASTY else EDITION
    run = organizer.certify(built.path, team=team, edition=edition, host=host)
    ends = ENDS.get(image.name, {image.outcome: set(image.diagnostics)})
    assert run.record.outcome in ends, run.record.diagnostics
    assert ends[run.record.outcome] <= set(run.record.diagnostics)
    assert run.record.voided is None
    assert organizer.leftovers(team, built.image_id) == []


def test_a_dry_run_says_that_gvisor_shows_no_network_attempts(
    gvisor_engine: DockerEngine, folder: Path, baseline: BuiltImage
) -> None:
    done = subprocess.run(
        [*PISTE, "dry-run", str(baseline.path), "--profile", "gvisor", "--json"],
        env=os.environ | {"DOCKER_HOST": f"unix://{folder}/docker.sock"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["outcome"] == "completed"
    assert document["network"]["attempts"] is None
    assert "gVisor" in document["network"]["unmeasured"]
