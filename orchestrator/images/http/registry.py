"""Read manifests and configs from a registry (OCI distribution-spec 1.1) with `requests`.

Credentials are those that `docker login` left; they go to the registry or to the token service that
it names, never over plain HTTP to another machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import parse_http_list, parse_keqv_list

import requests
from requests.auth import AuthBase

from manifests.digests import oci_digest
from manifests.encoding import parse_json
from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.oci import (
    INDEX_TYPES,
    LARGEST_CONFIG_BYTES,
    LARGEST_MANIFEST_BYTES,
    MANIFEST_TYPES,
)
from manifests.references import DOCKER_HUB, ImageReference
from manifests.text import escape_untrusted
from orchestrator.images.http.answers import bounded_body, raise_for_status
from orchestrator.images.http.credentials import (
    Credentials,
    LoadCredentials,
    docker_login,
)
from orchestrator.images.registry_port import RegistryDocument

_HUB_HOST = "registry-1.docker.io"
_ACCEPT = ", ".join(sorted(INDEX_TYPES | MANIFEST_TYPES))
_TIMEOUT_S = (10.0, 30.0)  # to connect, and between two bytes
_LARGEST_TOKEN_BYTES = 1 << 20
_CERTIFICATES = Path("/etc/docker/certs.d")


class _Authorization(AuthBase):
    """Sets the header itself, so that no netrc entry takes its place."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._value is not None:
            request.headers["Authorization"] = self._value
        return request


def is_loopback(registry: str) -> bool:
    """Tell whether `host[:port]` is this machine, where engines allow plain HTTP."""
    host = urlsplit(f"//{registry}").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class HttpRegistry:
    """Implements the Registry port over HTTP."""

    def __init__(
        self,
        *,
        insecure_registries: Iterable[str] = (),
        credentials: LoadCredentials = docker_login,
        timeout_s: tuple[float, float] = _TIMEOUT_S,
    ) -> None:
        """`insecure_registries` are those that the engine reaches over plain HTTP too."""
        self._insecure = frozenset(insecure_registries)
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._schemes: dict[str, str] = {}
        self._tokens: dict[str, str] = {}

    def fetch_manifest(self, reference: ImageReference) -> RegistryDocument:
        """Return the index or manifest; the bytes are checked against a digest."""
        wanted = reference.digest or reference.tag
        place = str(reference)
        with self._get(reference, f"manifests/{wanted}", place) as response:
            data = self._read(response, LARGEST_MANIFEST_BYTES, place)
            media_type = response.headers.get("Content-Type", "").partition(";")[0].strip()
        self._require_digest(data, reference.digest, place)
        return RegistryDocument(data=data, digest=oci_digest(data), media_type=media_type)

    def fetch_config(self, reference: ImageReference, digest: str, size_bytes: int) -> bytes:
        """Return the config blob, checked."""
        place = f"{reference}: config {digest}"
        if size_bytes > LARGEST_CONFIG_BYTES:
            raise MalformedDocument(
                f"{place}: {size_bytes} bytes, at most {LARGEST_CONFIG_BYTES} are taken"
            )
        with self._get(reference, f"blobs/{digest}", place) as response:
            data = self._read(response, size_bytes, place)
        self._require_digest(data, digest, place)
        return data

    @staticmethod
    def _require_digest(data: bytes, digest: str | None, place: str) -> None:
        if digest is not None and oci_digest(data) != digest:
            raise PlatformFault(
                f"{place}: the registry sent other bytes ({oci_digest(data)}); nothing was pulled"
            )

    def _read(self, response: requests.Response, limit_bytes: int, place: str) -> bytes:
        try:
            return bounded_body(response, limit_bytes, place)
        except requests.RequestException as error:
            raise PlatformFault(f"{place}: the connection was lost; try again") from error

    def _get(self, reference: ImageReference, path: str, place: str) -> requests.Response:
        """GET once, and once more with a token when the registry asks for one."""
        scope = reference.name
        response = self._send(reference, path, place, self._tokens.get(scope))
        if response.status_code == 401:
            with response:
                challenge = response.headers.get("WWW-Authenticate", "")
                authorization = self._authorize(reference, challenge, place)
                if authorization is None:
                    raise_for_status(response, place)
            self._tokens[scope] = authorization
            response = self._send(reference, path, place, authorization)
        if response.status_code != 200:
            with response:
                raise_for_status(response, place)
        return response

    def _send(
        self, reference: ImageReference, path: str, place: str, authorization: str | None
    ) -> requests.Response:
        host = _HUB_HOST if reference.registry == DOCKER_HUB else reference.registry
        schemes = self._schemes_for(reference.registry)
        for scheme in schemes:
            url = f"{scheme}://{host}/v2/{reference.repository}/{path}"
            try:
                response = self._request(
                    "GET", url, registry=reference.registry, authorization=authorization
                )
            except (requests.exceptions.SSLError, requests.exceptions.ConnectionError) as error:
                if scheme == schemes[-1] or isinstance(error, requests.exceptions.Timeout):
                    raise self._unreachable(place, host, error) from error
            except requests.RequestException as error:
                raise self._unreachable(place, host, error) from error
            else:
                self._schemes[reference.registry] = scheme
                return response
        raise AssertionError("there is at least one scheme")

    def _schemes_for(self, registry: str) -> tuple[str, ...]:
        """Return what to try: plain HTTP only where the engine itself would, and only after TLS."""
        if registry in self._schemes:
            return (self._schemes[registry],)
        return ("https", "http") if self._may_be_plain(registry) else ("https",)

    def _may_be_plain(self, registry: str) -> bool:
        return is_loopback(registry) or registry in self._insecure

    def _request(
        self,
        method: str,
        url: str,
        *,
        registry: str,
        authorization: str | None,
        **fields: Mapping[str, str] | None,
    ) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = not is_loopback(registry)
            session.max_redirects = 5
            authority = _CERTIFICATES / registry / "ca.crt"
            return session.request(
                method,
                url,
                headers={"Accept": f"{_ACCEPT}, application/json, */*"},
                auth=_Authorization(authorization),
                timeout=self._timeout_s,
                stream=True,
                verify=str(authority) if authority.is_file() else True,
                params=fields.get("params"),
                data=fields.get("data"),
            )

    @staticmethod
    def _unreachable(place: str, host: str, error: requests.RequestException) -> PlatformFault:
        words = escape_untrusted(str(error), 200)
        if isinstance(error, requests.exceptions.SSLError):
            return PlatformFault(
                f"{place}: the certificate of {host} is not accepted ({words}); put its authority "
                f"in {_CERTIFICATES}/{host}/ca.crt"
            )
        if isinstance(error, requests.exceptions.Timeout):
            return PlatformFault(f"{place}: {host} did not answer in time; try again later")
        return PlatformFault(f"{place}: {host} cannot be reached ({words}); is the network up?")

    def _authorize(self, reference: ImageReference, challenge: str, place: str) -> str | None:
        """Return an Authorization header for the challenge, or None where nothing can be given."""
        kind, _, rest = challenge.partition(" ")
        credentials = self._credentials(reference.registry)
        if kind.lower() == "basic" and credentials.can_be_basic:
            if self._schemes[reference.registry] == "http" and not is_loopback(reference.registry):
                raise RefusedByPolicy(
                    f"{place}: the registry asks for a password over plain HTTP; give it TLS"
                )
            return credentials.basic()
        if kind.lower() != "bearer":
            return None
        return self._bearer(reference, _parameters(rest), credentials, place)

    def _bearer(
        self,
        reference: ImageReference,
        challenge: Mapping[str, str],
        credentials: Credentials,
        place: str,
    ) -> str:
        """Fetch a token from the service that the registry names (distribution token spec)."""
        realm = challenge.get("realm", "")
        host = urlsplit(realm).netloc
        if not realm.startswith("https://") and not (
            realm.startswith("http://") and self._may_be_plain(host)
        ):
            raise PlatformFault(
                f'{place}: the registry names the token service "{escape_untrusted(realm)}", which '
                "is not reached over TLS"
            )
        asked = {"scope": f"repository:{reference.repository}:pull"}
        if service := challenge.get("service"):
            asked["service"] = service
        try:
            response = self._ask_for_token(realm, host, asked, credentials)
        except requests.RequestException as error:
            raise self._unreachable(place, host, error) from error
        with response:
            if response.status_code != 200:
                raise_for_status(response, f"{place}: token service {host}")
            data = self._read(response, _LARGEST_TOKEN_BYTES, place)
        return f"Bearer {_token(data, place)}"

    def _ask_for_token(
        self, realm: str, host: str, asked: dict[str, str], credentials: Credentials
    ) -> requests.Response:
        if credentials.identity_token:
            form = asked | {
                "grant_type": "refresh_token",
                "client_id": "piste",
                "refresh_token": credentials.identity_token,
            }
            return self._request("POST", realm, registry=host, authorization=None, data=form)
        basic = credentials.basic() if credentials.can_be_basic else None
        return self._request("GET", realm, registry=host, authorization=basic, params=asked)


def _parameters(challenge: str) -> dict[str, str]:
    """Parse the parameters of a challenge (RFC 9110, 11.2); one without a value is left out."""
    return parse_keqv_list([part for part in parse_http_list(challenge) if "=" in part])


def _token(data: bytes, place: str) -> str:
    document = parse_json(data, source=f"{place}: token")
    fields = document if isinstance(document, dict) else {}
    token = fields.get("token") or fields.get("access_token")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise PlatformFault(f"{place}: the token service sent no token")
    return token
