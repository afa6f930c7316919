"""Credentials of a registry, as `docker login` and its helpers keep them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

from docker.auth import load_config
from docker.errors import DockerException

from manifests.errors import PlatformFault
from manifests.references import DOCKER_HUB


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A user's name and password, or a token for the token service, or nothing."""

    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)

    @property
    def can_be_basic(self) -> bool:
        """Whether there is a name to send."""
        return bool(self.username)

    def basic(self) -> str:
        """Return the header's value (RFC 7617)."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode('ascii')}"


LoadCredentials = Callable[[str], Credentials]


def docker_login(registry: str) -> Credentials:
    """Return what `docker login` kept for `registry`; nothing where it kept nothing.

    Raises:
        PlatformFault: when Docker's config or its credential helper cannot be read.

    """
    try:
        config = load_config()
        found = config.resolve_authconfig(None if registry == DOCKER_HUB else registry) or {}
    except DockerException as error:
        raise PlatformFault(
            f"the credentials for {registry} cannot be read: {error}; run `docker login` again"
        ) from error
    return Credentials(
        username=found.get("Username") or found.get("username") or "",
        password=found.get("Password") or found.get("password") or "",
        identity_token=found.get("IdentityToken") or found.get("identitytoken") or "",
    )
