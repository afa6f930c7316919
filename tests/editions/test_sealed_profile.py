"""A sealed profile opens as it was sealed, or not at all."""

from __future__ import annotations

import json

import pytest

from manifests.digests import sha256_hex
from manifests.errors import MalformedDocument, RefusedByPolicy
from orchestrator.editions.rules.sealed_profile import open_profile, seal_profile
from sandbox_profiles.profile import ShippedProfile, load_profile


@pytest.mark.parametrize("name", list(ShippedProfile))
def test_a_shipped_profile_opens_as_it_was_sealed(name: ShippedProfile) -> None:
    profile = load_profile(name)
    sealed = seal_profile(profile)
    assert open_profile(sealed, source="profile.json") == profile
    assert sha256_hex(sealed) == profile.sha256()


def test_the_seal_holds_the_whole_filter() -> None:
    document = json.loads(seal_profile(load_profile("certified")))
    assert document["seccomp"]["defaultAction"] == "SCMP_ACT_ERRNO"
    assert document["seccomp"]["syscalls"]


def test_a_filter_that_this_piste_would_not_build_is_refused() -> None:
    document = json.loads(seal_profile(load_profile("certified")))
    document["seccomp"]["syscalls"].pop()
    data = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(RefusedByPolicy, match="another system-call filter"):
        open_profile(data, source="profile.json")


@pytest.mark.parametrize(
    "changed",
    [{"memory_bytes": -1}, {"memory_bytes": "much"}, {"network": True}, {"deadline_s": None}],
)
def test_what_is_no_profile_is_malformed_and_names_the_file(changed: dict[str, object]) -> None:
    document = json.loads(seal_profile(load_profile("certified"))) | changed
    with pytest.raises(MalformedDocument, match=r"profile\.json: not a sealed sandbox profile"):
        open_profile(json.dumps(document).encode(), source="profile.json")
