"""The doctor's probes on a real kernel: they hold where a limit acts, and fail where it does not."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.engine.rules.platforms import engine_platform
from orchestrator.host.doctor_sandbox import (
    mounts_without_swap,
    probe_limits,
    try_profile,
)
from orchestrator.sandbox.rules import limit_checks as limit_probe
from orchestrator.sandbox.rules.limit_checks import limit_checks, small_limits
from orchestrator.sandbox.rules.runtimes import GVISOR_REGISTRATION
from orchestrator.sandbox.self_test import run_checks
from sandbox_profiles.profile import load_profile

pytestmark = pytest.mark.docker

PISTE = Path(sys.executable).with_name("piste")
CERTIFIED = load_profile("certified")
GENEROUS: dict[str, dict[str, object]] = {
    limit_probe.TMP_SIZE: {"tmp_bytes": 2**27},
    limit_probe.TMP_FILES: {"tmp_inodes": 4096},
    limit_probe.SHM_SIZE: {"shm_bytes": 2**27},
    limit_probe.FILE_SIZE: {"file_size_bytes": 2**30},
    limit_probe.OPEN_FILES: {"nofile": 4096},
    limit_probe.OTHER_PROCESSOR: {"cpuset": "0-1"},
}
"""For each check, a limit so wide that its probe, made for the small one, does not meet it."""


def run_id() -> str:
    return secrets.token_hex(8)


@pytest.mark.parametrize("name", ["certified", "strict"])
def test_every_limit_of_a_profile_acts_on_this_engine(engine: DockerEngine, name: str) -> None:
    profile, description = load_profile(name), engine.describe()
    results = probe_limits(engine, profile, run_id=run_id(), description=description)
    assert [each for each in results if not each.holds] == []
    expected = limit_checks(small_limits(profile), processors=description.cpus)
    assert [each.name for each in results] == [check.name for check in expected]


def test_the_two_profiles_differ_in_their_shared_memory() -> None:
    names = {
        name: {check.name for check in limit_checks(small_limits(load_profile(name)), processors=2)}
        for name in ("certified", "strict")
    }
    assert names["certified"] - names["strict"] == {limit_probe.SHM_SIZE}
    assert names["strict"] - names["certified"] == {limit_probe.NO_SHM}


@pytest.mark.parametrize("check", GENEROUS)
def test_a_limit_that_is_not_in_force_fails_its_own_check(engine: DockerEngine, check: str) -> None:
    """The probe expects the small limits, and the container is given a wide one."""
    description = engine.describe()
    small = small_limits(CERTIFIED)
    if check == limit_probe.OTHER_PROCESSOR and description.cpus < 2:
        pytest.skip("needs a host with two processors")
    results, _ = run_checks(
        engine,
        small.model_copy(update=GENEROUS[check]),
        limit_checks(small, processors=description.cpus),
        run_id=run_id(),
        platform=engine_platform(description.architecture),
    )
    assert [each.name for each in results if not each.holds] == [check]


def test_a_profile_may_run_where_its_probes_hold(engine: DockerEngine) -> None:
    trial = try_profile(engine, CERTIFIED, description=engine.describe(), new_run_id=run_id)
    assert trial.reasons == ()
    assert {"memory", "processes", "seccomp", "no network", "read-only root"} <= {
        each.name for each in trial.findings
    }


def test_the_holder_starts_and_leaves_nothing(engine: DockerEngine) -> None:
    name = run_id()
    platform = engine_platform(engine.describe().architecture)
    assert mounts_without_swap(engine, CERTIFIED, platform=platform, run_id=name) in {True, False}
    assert engine.list_containers(f"piste-{name}") == ()
    assert engine.list_volumes(f"piste-{name}") == ()


def doctor(*arguments: str, **environment: str) -> tuple[int, Mapping[str, Any]]:
    done = subprocess.run(
        [PISTE, "doctor", "--json", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def test_the_command_says_that_this_host_may_do_certified_runs(engine: DockerEngine) -> None:
    code, document = doctor("--profile", "certified")
    assert code == 0, document
    assert document["profiles"]["certified"]["may_run"] is True
    assert document["engine"]["docker"] == engine.describe().docker


def test_the_command_ends_with_4_where_no_engine_answers() -> None:
    code, document = doctor(DOCKER_HOST="unix:///nowhere.sock")
    assert code == 4
    assert document["engine"] is None
    assert document["profiles"] == {}
    failed = [each for each in document["findings"] if each["status"] == "fail"]
    assert len(failed) == 1
    assert "unix:///nowhere.sock" in failed[0]["seen"]
    assert "systemctl start docker" in failed[0]["remedy"]


def test_an_engine_without_runsc_refuses_the_gvisor_profile_by_name(engine: DockerEngine) -> None:
    description = engine.describe()
    if "runsc" in description.runtimes:
        pytest.skip("needs an engine without runsc")
    trial = try_profile(engine, load_profile("gvisor"), description=description, new_run_id=run_id)
    assert not trial.may_run
    assert "no runtime runsc" in trial.reasons[0]
    assert GVISOR_REGISTRATION in trial.reasons[0]
