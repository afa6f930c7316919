"""The sandbox profile as an edition seals it: every limit and the whole system-call filter."""

from __future__ import annotations

from manifests.encoding import canonical_json, parse_json_object
from manifests.errors import MalformedDocument, RefusedByPolicy
from sandbox_profiles.profile import SandboxProfile


def seal_profile(profile: SandboxProfile) -> bytes:
    """Return the file that is sealed; its SHA-256 is `profile.sha256()`."""
    return canonical_json(profile.document())


def open_profile(data: bytes, *, source: str) -> SandboxProfile:
    """Return the profile that was sealed.

    The filter is rebuilt from the profile and must come out as it was sealed: a piste whose
    allow-list has changed since cannot run under the sealed one, and does not pretend to.

    Raises:
        MalformedDocument: the file is no sealed profile.
        RefusedByPolicy: this piste would build another filter.

    """
    document = parse_json_object(data, source=source)
    limits = {name: value for name, value in document.items() if name != "seccomp"}
    try:
        profile = SandboxProfile.model_validate(limits)
    except ValueError as error:
        raise MalformedDocument(f"{source}: not a sealed sandbox profile: {error}") from error
    if seal_profile(profile) != data:
        raise RefusedByPolicy(
            f"{source}: this piste builds another system-call filter than the one that was sealed; "
            "run the edition with the piste release that sealed it"
        )
    return profile
