"""The engine is asked for exactly this, and shows whatever differs."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from manifests.errors import RefusedByPolicy
from orchestrator.images.rules.image_config import (
    MAX_VOLUMES,
    NeutralConfig,
    declares_volume,
    neutralise,
)
from orchestrator.sandbox.rules.container_options import (
    EntrantSpec,
    HolderSpec,
    entrant_options,
    holder_options,
    seccomp_option,
)
from orchestrator.sandbox.rules.effective import differences, effective_document
from orchestrator.sandbox.rules.gpu import GpuKind, GpuRequest
from sandbox_profiles.profile import load_profile

IMAGE = "sha256:" + "a" * 64
PROFILE = load_profile("certified")
SPEC = EntrantSpec(
    run_id="0123456789abcdef",
    image_id=IMAGE,
    platform="linux/amd64",
    input_volume="piste-0123456789abcdef-input",
    output_volume="piste-0123456789abcdef-output",
    profile=PROFILE,
    covered_volumes=("/data",),
)

GOLDEN_HOST_CONFIG = {
    "NetworkMode": "none",
    "ReadonlyRootfs": True,
    "Privileged": False,
    "CapAdd": [],
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges:true", seccomp_option(PROFILE.seccomp())],
    "CgroupnsMode": "private",
    "PidMode": "",
    "UTSMode": "",
    "UsernsMode": "",
    "PublishAllPorts": False,
    "AutoRemove": False,
    "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
    "IpcMode": "private",
    "ShmSize": 1073741824,
    "Memory": 4294967296,
    "MemorySwap": 4294967296,
    "NanoCpus": 2000000000,
    "CpusetCpus": "0-1",
    "PidsLimit": 512,
    "OomScoreAdj": 500,
    "OomKillDisable": False,
    "Ulimits": [
        {"Name": "core", "Soft": 0, "Hard": 0},
        {"Name": "nofile", "Soft": 4096, "Hard": 4096},
        {"Name": "fsize", "Soft": 1073741824, "Hard": 1073741824},
    ],
    "LogConfig": {"Type": "json-file", "Config": {"max-size": "1048576", "max-file": "2"}},
    "Runtime": "runc",
    "Init": True,
    "Tmpfs": {
        "/tmp": "rw,exec,nosuid,nodev,size=1073741824,uid=65532,gid=65532,mode=1777,nr_inodes=65536",
        "/data": "ro,noexec,nosuid,nodev,size=4k,mode=0555",
    },
    "Mounts": [
        {
            "Type": "volume",
            "Source": "piste-0123456789abcdef-input",
            "Target": "/input",
            "ReadOnly": True,
            "VolumeOptions": {"NoCopy": True},
        },
        {
            "Type": "volume",
            "Source": "piste-0123456789abcdef-output",
            "Target": "/output",
            "ReadOnly": False,
            "VolumeOptions": {"NoCopy": True},
        },
    ],
    "DeviceRequests": [],
}


def test_an_entrants_container_is_asked_for_exactly_so() -> None:
    options = entrant_options(SPEC)
    environment = options.pop("Env")
    assert options.pop("HostConfig") == GOLDEN_HOST_CONFIG
    assert options == {
        "Image": IMAGE,
        "Platform": "linux/amd64",
        "User": "65532:65532",
        "Hostname": "entrant",
        "Domainname": "",
        "Tty": False,
        "OpenStdin": False,
        "StdinOnce": False,
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGTERM",
        "Labels": {"piste.run": "0123456789abcdef"},
    }
    assert {"HOME=/tmp", "LD_PRELOAD", "OMP_NUM_THREADS=2", "TZ=UTC"} <= set(environment)
    assert "NVIDIA_VISIBLE_DEVICES=void" in environment
    assert environment == sorted(environment)


def test_a_gpu_is_asked_for_by_name_and_never_by_count() -> None:
    request = GpuRequest(kind=GpuKind.UUID, devices=("GPU-1a2b",))
    spec = EntrantSpec(
        run_id=SPEC.run_id,
        image_id=IMAGE,
        platform=SPEC.platform,
        input_volume="i",
        output_volume="o",
        profile=PROFILE,
        gpu=request,
    )
    options = entrant_options(spec)
    assert options["HostConfig"]["DeviceRequests"] == [
        {
            "Driver": "",
            "Count": 0,
            "DeviceIDs": ["GPU-1a2b"],
            "Capabilities": [["gpu", "compute", "utility"]],
            "Options": {},
        }
    ]
    assert not any(item.startswith("NVIDIA_VISIBLE_DEVICES") for item in options["Env"])


def test_the_strict_profile_has_no_shared_memory() -> None:
    spec = EntrantSpec(
        run_id=SPEC.run_id,
        image_id=IMAGE,
        platform=SPEC.platform,
        input_volume="i",
        output_volume="o",
        profile=load_profile("strict"),
    )
    host = entrant_options(spec)["HostConfig"]
    assert host["IpcMode"] == "none"
    assert "ShmSize" not in host


def test_the_holder_has_no_network_no_rights_and_a_read_only_root() -> None:
    options = holder_options(
        HolderSpec(
            run_id=SPEC.run_id,
            image_id=IMAGE,
            platform=SPEC.platform,
            input_volume="i",
            output_volume="o",
            seccomp=PROFILE.seccomp(),
        )
    )
    host = options["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert options["User"] == "65532:65532"
    assert {(m["Source"], m["Target"]) for m in host["Mounts"]} == {
        ("i", "/input"),
        ("o", "/output"),
    }


def test_the_filter_is_passed_as_text_that_the_engine_parses() -> None:
    option = seccomp_option(PROFILE.seccomp())
    assert json.loads(option.removeprefix("seccomp=")) == PROFILE.seccomp()


IMAGE_CONFIG = {
    "Entrypoint": ["/run"],
    "Cmd": ["--all"],
    "Env": ["PATH=/bin", "LD_PRELOAD=/evil.so", "HOME=/root"],
    "Volumes": {"/data/": {}},
}
NEUTRAL = neutralise(IMAGE_CONFIG)


def inspected() -> dict[str, Any]:
    """What an engine of today shows of the options, its own fillings included."""
    options = copy.deepcopy(entrant_options(SPEC))
    host = options.pop("HostConfig")
    host |= {
        "Binds": None,
        "ContainerIDFile": "",
        "ConsoleSize": [0, 0],
        "CapAdd": None,
        "Dns": [],
        "ExtraHosts": None,
        "MemorySwappiness": None,
        "BlkioWeight": 0,
        "MaskedPaths": [
            "/proc/acpi",
            "/proc/kcore",
            "/proc/keys",
            "/proc/timer_list",
            "/proc/scsi",
            "/sys/firmware",
        ],
        "ReadonlyPaths": [
            "/proc/bus",
            "/proc/fs",
            "/proc/irq",
            "/proc/sys",
            "/proc/sysrq-trigger",
        ],
    }
    config = {**options, "Entrypoint": ["/run"], "Cmd": ["--all"], "Volumes": {"/data/": {}}}
    config["Env"] = [*options["Env"], "PATH=/bin"]
    config["Labels"] = {**options["Labels"], "maintainer": "somebody"}
    return {
        "Image": IMAGE,
        "HostConfig": host,
        "Config": config,
        "Mounts": [
            {"Type": "volume", "Name": SPEC.input_volume, "Destination": "/input", "RW": False},
            {"Type": "volume", "Name": SPEC.output_volume, "Destination": "/output", "RW": True},
        ],
    }


def test_what_an_engine_fills_in_is_no_difference() -> None:
    assert differences(entrant_options(SPEC), NEUTRAL, inspected()) == ()


def test_the_intervals_of_an_images_health_check_are_idle_without_its_test() -> None:
    found = inspected()
    found["Config"]["Healthcheck"] = {"Test": ["NONE"], "Interval": 10**9, "Retries": 3}
    assert differences(entrant_options(SPEC), NEUTRAL, found) == ()


def _host(**fields: object) -> Callable[[dict[str, Any]], None]:
    return lambda found: found["HostConfig"].update(fields)


def _config(**fields: object) -> Callable[[dict[str, Any]], None]:
    return lambda found: found["Config"].update(fields)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda found: found.update(Image="sha256:" + "b" * 64), "Image"),
        (_host(NetworkMode="bridge"), "NetworkMode"),
        (_host(ReadonlyRootfs=False), "ReadonlyRootfs"),
        (_host(Privileged=True), "Privileged"),
        (_host(CapAdd=["SYS_ADMIN"]), "CapAdd"),
        (_host(CapDrop=None), "CapDrop"),
        (_host(SecurityOpt=["no-new-privileges:true"]), "SecurityOpt"),
        (_host(Memory=0), "Memory"),
        (_host(MemorySwap=-1), "MemorySwap"),
        (_host(PidsLimit=None), "PidsLimit"),
        (_host(IpcMode="host"), "IpcMode"),
        (_host(PidMode="host"), "PidMode"),
        (_host(Runtime="other"), "Runtime"),
        (_host(Binds=["/:/host"]), "Binds"),
        (_host(Devices=[{"PathOnHost": "/dev/kvm"}]), "Devices"),
        (_host(FeatureOfTheFuture=True), "FeatureOfTheFuture"),
        (_host(MaskedPaths=[]), "MaskedPaths"),
        (_host(ReadonlyPaths=None), "ReadonlyPaths"),
        (_host(Init=False), "Init"),
        (_host(OomKillDisable=True), "OomKillDisable"),
        (_host(DeviceRequests=[{"Count": -1}]), "DeviceRequests"),
        (_config(User="0"), "User"),
        (_config(Env=["PATH=/bin", "LD_PRELOAD=/evil.so"]), "Env"),
        (_config(Entrypoint=["/other"]), "Entrypoint"),
        (_config(Cmd=None), "Cmd"),
        (_config(Healthcheck=None), "Healthcheck"),
        (_config(Tty=True), "Tty"),
        (_config(Labels={}), "label piste.run"),
        (lambda found: found["Mounts"].pop(), "Mounts"),
        (lambda found: found["Mounts"][0].update(RW=True), "Mounts"),
        (
            lambda found: found["Mounts"].append(
                {"Type": "volume", "Name": "f" * 64, "Destination": "/data", "RW": True}
            ),
            "Mounts",
        ),
        (lambda found: found["Mounts"].append(dict(found["Mounts"][0])), "Mounts"),
    ],
)
def test_any_difference_is_told(change: Callable[[dict[str, Any]], None], field: str) -> None:
    found = inspected()
    change(found)
    told = differences(entrant_options(SPEC), NEUTRAL, found)
    assert len(told) == 1
    assert told[0].startswith(field)
    assert told[0].isprintable()


def test_the_record_holds_the_filters_digest_and_not_its_text() -> None:
    document = effective_document(inspected())
    text = json.dumps(document)
    assert "SCMP_ACT" not in text
    assert document["host_config"]["SecurityOpt"][1].startswith("seccomp-sha256=")
    assert document["image_id"] == IMAGE
    assert len(document["mounts"]) == 2


@pytest.mark.parametrize(
    ("spelling", "covered"),
    [
        ("/data", ("/data",)),
        ("/data/", ("/data",)),
        ("/data/../data", ("/data",)),
        ("//data//x/.", ("/data/x",)),
        ("/data/./", ("/data",)),
        ("/tmp", ()),
        ("/output/", ()),
        ("/input/../input", ()),
    ],
)
def test_a_volume_is_covered_in_every_spelling(spelling: str, covered: tuple[str, ...]) -> None:
    config = {"Cmd": ["x"], "Volumes": {spelling: {}}}
    assert neutralise(config).covered_volumes == covered


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/..",
        "//",
        "/proc",
        "/proc/self",
        "/sys/fs",
        "/dev/shm",
        "/etc",
        "data",
        "",
        "/a\n",
        "/output/x",
        "/input/keypoints",
        "/tmp/cache",
        "/x/../proc/",
        "/usr",
        "/sbin/",
    ],
)
def test_a_volume_that_cannot_be_covered_is_refused(path: str) -> None:
    with pytest.raises(RefusedByPolicy, match="VOLUME") as refused:
        neutralise({"Cmd": ["x"], "Volumes": {path: {}}})
    assert str(refused.value).isprintable()


def test_a_volume_counts_as_declared_at_its_own_path_alone() -> None:
    config: dict[str, Any] = {"Volumes": {"//tmp/": {}, "/data/tmp": {}}}
    assert declares_volume(config, "/tmp")
    assert not declares_volume({"Volumes": {"/data/tmp": {}}}, "/tmp")
    assert not declares_volume({"Volumes": None}, "/tmp")


def test_too_many_volumes_are_refused() -> None:
    volumes: dict[str, dict[str, str]] = {f"/v{n}": {} for n in range(MAX_VOLUMES + 1)}
    with pytest.raises(RefusedByPolicy, match=str(MAX_VOLUMES)):
        neutralise({"Cmd": ["x"], "Volumes": volumes})
    volumes.popitem()
    assert len(neutralise({"Cmd": ["x"], "Volumes": volumes}).covered_volumes) == MAX_VOLUMES


def test_an_image_with_nothing_to_run_is_refused() -> None:
    with pytest.raises(RefusedByPolicy, match="nothing to run"):
        neutralise({})


def test_what_the_sandbox_overrides_is_listed() -> None:
    config = {
        "Entrypoint": "x",
        "User": "root",
        "Healthcheck": {"Test": ["CMD", "x"]},
        "StopSignal": "SIGUSR1",
        "Labels": {"piste.run": "x"},
        "Volumes": None,
    }
    found: NeutralConfig = neutralise(config)
    assert found.entrypoint == ("x",)
    assert found.ignored == ("User", "Healthcheck", "StopSignal", "Labels")
