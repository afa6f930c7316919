"""Profiles are data that cannot say anything unsafe."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from manifests.errors import MalformedDocument
from sandbox_profiles.profile import (
    Boundary,
    SandboxProfile,
    ShippedProfile,
    load_profile,
    parse_profile,
)
from sandbox_profiles.seccomp import SocketFamily

CERTIFIED = resources.files("sandbox_profiles").joinpath("certified.yaml").read_bytes()


def changed(**fields: object) -> bytes:
    return yaml.safe_dump({**yaml.safe_load(CERTIFIED), **fields}).encode()


@pytest.mark.parametrize("name", list(ShippedProfile))
def test_every_shipped_profile_loads_under_its_own_name(name: str) -> None:
    assert load_profile(name).name == name


def test_the_shipped_profiles_differ_only_where_they_say() -> None:
    certified, strict, gvisor = (load_profile(name).model_dump() for name in ShippedProfile)
    assert {key for key in certified if certified[key] != strict[key]} == {
        "name",
        "shm_bytes",
        "socket_families",
    }
    assert {key for key in certified if certified[key] != gvisor[key]} == {
        "name",
        "runtime",
        "pids",
    }
    assert strict["socket_families"] == (SocketFamily.UNIX,)
    assert strict["shm_bytes"] is None
    assert gvisor["runtime"] == "runsc"


@pytest.mark.parametrize(
    ("runtime", "boundary"),
    [
        ("runc", Boundary.HOST_KERNEL),
        ("crun", Boundary.HOST_KERNEL),
        ("runscx", Boundary.HOST_KERNEL),
        ("runsc", Boundary.SENTRY),
        ("runsc-kvm", Boundary.SENTRY),
    ],
)
def test_only_gvisor_is_taken_for_a_kernel_of_its_own(runtime: str, boundary: Boundary) -> None:
    profile = load_profile("certified").model_copy(update={"runtime": runtime})
    assert profile.boundary is boundary


@pytest.mark.parametrize(
    ("text", "size"),
    [("1GiB", 2**30), ("512 MiB", 2**29), ("4096", None), (65536, 65536), ("64KiB", 65536)],
)
def test_a_size_is_bytes_or_carries_a_binary_unit(text: object, size: int | None) -> None:
    data = changed(input_headroom_bytes=text)
    if size is None:
        with pytest.raises(MalformedDocument, match="input_headroom_bytes"):
            parse_profile(data, "p.yaml")
    else:
        assert parse_profile(data, "p.yaml").input_headroom_bytes == size


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Certified!"),
        ("runtime", "../runc"),
        ("memory_bytes", "1GB"),
        ("memory_bytes", "8GiB\n"),
        ("memory_bytes", -1),
        ("memory_bytes", True),
        ("cpus", 0),
        ("cpus", 1.5),
        ("cpuset", "0-"),
        ("pids", 3),
        ("tmp_bytes", "8TiB"),
        ("shm_bytes", "2GiB"),
        ("output_files", 0),
        ("deadline_s", "1h"),
        ("log_files", 11),
        ("socket_families", []),
        ("socket_families", ["AF_VSOCK"]),
        ("socket_families", ["AF_PACKET"]),
        ("environment", {"lower": "x"}),
        ("environment", {"NAME": "two\nlines"}),
        ("network", True),
        ("privileged", True),
        ("capabilities", ["SYS_ADMIN"]),
    ],
)
def test_a_wrong_or_unknown_field_is_named(field: str, value: object) -> None:
    with pytest.raises(MalformedDocument, match=rf"^p\.yaml.*{field}") as refused:
        parse_profile(changed(**{field: value}), "p.yaml")
    assert refused.value.exit_code == 2


def test_the_line_of_a_wrong_field_is_given() -> None:
    lines = CERTIFIED.decode().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if line.startswith("pids:"))
    data = CERTIFIED.replace(b"pids: 512", b"pids: none")
    with pytest.raises(MalformedDocument, match=rf"^p\.yaml line {number}: pids"):
        parse_profile(data, "p.yaml")


@pytest.mark.parametrize(
    "data", [b"[]", b"- a\n", b"", b"\xff\xfe", b"a: [", b"name: a\nname: b\n", b"1: 2"]
)
def test_what_is_no_mapping_of_fields_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedDocument, match=r"^p\.yaml"):
        parse_profile(data, "p.yaml")


def test_an_unknown_profile_name_lists_those_that_exist() -> None:
    with pytest.raises(MalformedDocument, match="certified, strict, gvisor"):
        load_profile("../certified")


def test_the_digest_changes_with_every_field_and_with_the_filter() -> None:
    profile = load_profile("certified")
    digests = {profile.sha256()}
    changes: list[dict[str, Any]] = [
        {"pids": 511},
        {"deadline_s": 1},
        {"environment": {}},
        {"socket_families": (SocketFamily.UNIX,)},
    ]
    digests |= {profile.model_copy(update=change).sha256() for change in changes}
    assert len(digests) == 1 + len(changes)
    assert "seccomp" in profile.document()


def test_thread_counts_follow_the_cpus() -> None:
    profile = parse_profile(changed(cpus=3, cpuset="0-2"), "p.yaml")
    assert profile.variables()["OMP_NUM_THREADS"] == "3"
    assert profile.variables()["LD_PRELOAD"] is None


def test_a_profile_cannot_be_changed() -> None:
    profile: SandboxProfile = load_profile("certified")
    with pytest.raises(ValidationError):
        profile.pids = 1  # type: ignore[misc] # that is the point
