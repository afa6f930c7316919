"""What is asked of gVisor, what is not and why, and how an engine's registration of it is read."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import tarfile
from dataclasses import replace
from typing import Any

import pytest

from manifests.errors import RefusedByPolicy
from orchestrator.host.doctor_sandbox import sandbox_findings
from orchestrator.host.rules.host_findings import Status
from orchestrator.runs.run_host import environment_document
from orchestrator.sandbox.engine_fitness import require_fit_engine
from orchestrator.sandbox.host_gpus import choose_host_gpus
from orchestrator.sandbox.ports import NoGpus
from orchestrator.sandbox.rules.elf import Architecture
from orchestrator.sandbox.rules.gpu import GpuPolicy
from orchestrator.sandbox.rules.limit_checks import (
    OTHER_PROCESSOR,
    TMP_FILES,
    limit_checks,
    small_limits,
)
from orchestrator.sandbox.rules.probe_checks import FORBIDDEN_CALLS, Check, probe_checks
from orchestrator.sandbox.rules.runtimes import (
    GVISOR_REGISTRATION,
    gives_up_limits,
    runtime_definition,
    start_remedy,
)
from orchestrator.sandbox.rules.sentry_checks import (
    ANSWERED_WITHIN,
    OWN_KERNEL,
    ended_at_process_limit,
    process_check,
    sentry_checks,
)
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.sandbox.self_test import CheckResult
from sandbox_profiles.profile import SandboxProfile, load_profile
from sandbox_profiles.seccomp import SocketFamily
from tests.support.simulated_world import simulated_description

GVISOR = load_profile("gvisor")
CERTIFIED = load_profile("certified")


def names(checks: tuple[Check, ...]) -> set[str]:
    return {check.name for check in checks}


def named(checks: tuple[Check, ...], name: str) -> Check:
    (found,) = [check for check in checks if check.name == name]
    return found


def test_under_gvisor_only_calls_with_a_reason_are_let_through() -> None:
    assert ANSWERED_WITHIN.keys() <= FORBIDDEN_CALLS.keys()
    assert all(len(reason) > 20 for reason in ANSWERED_WITHIN.values())
    left_out = names(probe_checks(CERTIFIED)) - names(sentry_checks(GVISOR))
    assert left_out == {f"{name}: refused" for name in ANSWERED_WITHIN} | {
        "ptrace: refused",
        "system calls are filtered",
        "the process limit acts",  # it has a container of its own
        "memory",
    }


def test_under_gvisor_its_own_kernel_has_to_show_itself() -> None:
    check = named(sentry_checks(GVISOR), OWN_KERNEL)
    assert b"/proc/sentry-meminfo\0" in check.calls[-1].arguments
    assert check.accepts(9)
    assert not check.accepts(-errno.ENOENT)


@pytest.mark.parametrize(
    ("families", "descriptor"),
    [
        ((SocketFamily.INET,), 6),
        ((SocketFamily.UNIX, SocketFamily.INET), 7),
        (tuple(SocketFamily), 8),
    ],
)
def test_the_route_is_asked_for_by_the_socket_that_was_opened_last(
    families: tuple[SocketFamily, ...], descriptor: int
) -> None:
    profile = GVISOR.model_copy(update={"socket_families": families})
    check = named(sentry_checks(profile), "there is no network")
    assert check.calls[-1].arguments[0] == descriptor
    assert check.accepts(-errno.EHOSTUNREACH)
    assert check.accepts(-errno.ENETUNREACH)
    assert not any(map(check.accepts, (0, -errno.EBADF, -errno.ETIMEDOUT, -errno.ECONNREFUSED)))


def test_a_profile_without_internet_sockets_has_no_route_to_ask_for() -> None:
    profile = GVISOR.model_copy(update={"socket_families": (SocketFamily.UNIX,)})
    assert "there is no network" not in names(sentry_checks(profile))


@pytest.mark.parametrize(
    ("results", "exit_code", "memory_killed", "acts"),
    [
        ([4, 5, 6], 2, False, True),
        ([4, 5, -errno.EAGAIN, -errno.EAGAIN], 0, False, True),
        ([4, 5, 6, 7], 0, False, False),
        ([4, 5, 6, 7], 2, False, False),
        ([4, 5, 6], 0, False, False),
        ([4, 5, 6], 137, True, False),
        ([], 128, False, False),
    ],
    ids=[
        "the sentry ended",
        "the sentry refused",
        "all started",
        "all started, then it failed",
        "a report that was cut",
        "memory ran out first",
        "nothing ran at all",
    ],
)
def test_the_process_limit_is_seen_only_in_an_end_on_the_way(
    results: list[int], exit_code: int, memory_killed: bool, acts: bool
) -> None:
    found = ended_at_process_limit(
        results, asked=4, exit_code=exit_code, memory_killed=memory_killed
    )
    assert found is acts


def test_more_processes_are_asked_for_than_may_be() -> None:
    assert len(process_check(GVISOR).calls) == GVISOR.pids + 1


def test_limits_that_gvisor_does_not_keep_are_asked_of_others_only() -> None:
    here, there = (
        names(limit_checks(small_limits(profile), processors=4)) for profile in (CERTIFIED, GVISOR)
    )
    assert there < here
    assert {TMP_FILES, OTHER_PROCESSOR} <= here - there


def info(**definition: Any) -> dict[str, Any]:
    return {"Runtimes": {"runc": {"path": "runc"}, "runsc": definition}}


def test_the_registration_that_piste_asks_for_is_recorded_with_its_hash() -> None:
    registered = json.loads(GVISOR_REGISTRATION)["runtimes"]["runsc"]
    text = '{"path":"/usr/bin/runsc","runtimeArgs":["--network=none"]}'
    expected = {
        "path": "/usr/bin/runsc",
        "args": ["--network=none"],
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    assert runtime_definition(info(**registered), "runsc") == expected
    newer = info(**registered, status={"org.opencontainers.runtime-spec.features": "{}"})
    assert runtime_definition(newer, "runsc") == expected
    described = replace(simulated_description(), raw=newer)
    environment = environment_document(described, profile=GVISOR, gpu=None)
    assert environment["runtime_definition"] == expected


@pytest.mark.parametrize("found", [{}, {"Runtimes": None}, info(), info(status={"a": "b"})])
def test_an_engine_that_tells_nothing_of_a_runtime_leaves_nothing_to_record(
    found: dict[str, Any],
) -> None:
    assert runtime_definition(found, "runsc") is None
    assert not gives_up_limits(found, GVISOR)


@pytest.mark.parametrize(
    ("arguments", "given_up"),
    [
        (["--ignore-cgroups"], True),
        (["--network=none", "-ignore-cgroups=true"], True),
        (["--ignore-cgroups=false"], False),
        (["--network=none"], False),
    ],
)
def test_gvisor_that_ignores_limits_is_refused_before_anything_is_tried(
    arguments: list[str], given_up: bool
) -> None:
    raw = info(path="/usr/bin/runsc", runtimeArgs=arguments)
    assert gives_up_limits(raw, GVISOR) is given_up
    engine = replace(simulated_description(), raw=raw)
    if given_up:
        with pytest.raises(RefusedByPolicy, match=r"ignore-cgroups.*take it out of daemon\.json"):
            require_fit_engine(engine, GVISOR)
    else:
        require_fit_engine(engine, GVISOR)


def test_a_missing_gvisor_comes_with_the_lines_that_register_it() -> None:
    engine = replace(simulated_description(), runtimes=("runc",))
    with pytest.raises(RefusedByPolicy) as refusal:
        require_fit_engine(engine, GVISOR)
    assert GVISOR_REGISTRATION in str(refusal.value)
    assert "/etc/docker/daemon.json" in str(refusal.value)
    with pytest.raises(RefusedByPolicy) as refusal:
        require_fit_engine(engine, CERTIFIED.model_copy(update={"runtime": "crun"}))
    assert GVISOR_REGISTRATION not in str(refusal.value)


def test_only_the_known_refusal_to_start_has_a_remedy() -> None:
    message = "starting container: cannot run with network enabled in root network namespace"
    assert GVISOR_REGISTRATION in str(start_remedy(message))
    assert start_remedy("no such file or directory") is None


def failing(profile: SandboxProfile, name: str) -> str:
    result = CheckResult(name=name, holds=False, expected="0", seen="1")
    (found,) = [f for f in sandbox_findings(profile, (result,)) if f.status is Status.FAIL]
    assert found.remedy is not None
    return found.remedy


def test_the_remedy_depends_on_what_keeps_the_entrant_from_the_host() -> None:
    assert "cgroup controller pids" in failing(CERTIFIED, "the process limit acts")
    assert "--ignore-cgroups" in failing(GVISOR, "the process limit acts")
    assert GVISOR_REGISTRATION in failing(GVISOR, OWN_KERNEL)
    assert "another release of runsc" in failing(GVISOR, "bpf: refused")


def test_an_open_folder_may_be_written_by_everybody_and_changes_the_image() -> None:
    def image(*folders: str) -> bytes:
        made = tiny_image(
            {"probe": b"x"},
            entrypoint=("/probe",),
            architecture=Architecture.AMD64,
            open_folders=folders,
        )
        with tarfile.open(fileobj=io.BytesIO(made.archive)) as archive:
            (layer,) = [name for name in archive.getnames() if name.endswith("layer.tar")]
            member = archive.extractfile(layer)
            assert member is not None
            return member.read()

    with tarfile.open(fileobj=io.BytesIO(image("open"))) as layer:
        folder = layer.getmember("open")
        assert (folder.isdir(), folder.mode) == (True, 0o777)
        assert layer.getmember("probe").mode == 0o555
    assert image() != image("open")


class OneGpu(NoGpus):
    def available(self) -> tuple[str, ...]:
        return ("GPU-1",)


@pytest.mark.parametrize("arguments", [["--network=none"], ["--nvproxy=false"]])
def test_a_gpu_that_gvisor_hides_is_refused_where_required_and_else_not_asked_for(
    arguments: list[str],
) -> None:
    raw = info(path="/usr/bin/runsc", runtimeArgs=arguments)
    engine = replace(simulated_description(), raw=raw)
    with pytest.raises(RefusedByPolicy, match=r"--nvproxy.*reload the engine; nothing was spent"):
        choose_host_gpus(OneGpu(), GpuPolicy.REQUIRED, engine=engine, profile=GVISOR)
    optional = choose_host_gpus(OneGpu(), GpuPolicy.OPTIONAL, engine=engine, profile=GVISOR)
    assert optional is None


@pytest.mark.parametrize("policy", [GpuPolicy.REQUIRED, GpuPolicy.OPTIONAL])
def test_a_gpu_that_gvisor_lets_through_is_asked_for(policy: GpuPolicy) -> None:
    raw = info(path="/usr/bin/runsc", runtimeArgs=["--network=none", "--nvproxy"])
    engine = replace(simulated_description(), raw=raw)
    chosen = choose_host_gpus(OneGpu(), policy, engine=engine, profile=GVISOR)
    assert chosen is not None
    assert chosen.devices == ("GPU-1",)
