"""One connection to a Docker engine; all its errors become ours here."""

from __future__ import annotations

import json
import socket
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import docker
import requests
import urllib3
from docker.errors import DockerException
from docker.utils import kwargs_from_env
from requests import Response

from manifests.text import escape_untrusted
from orchestrator.engine.ports import EngineError, EngineUnavailable

CALL_TIMEOUT_S: Final = 60.0
_CHUNK_BYTES: Final = 2**20
_TRANSPORT_ERRORS: Final = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    DockerException,
    ConnectionError,
)
Params = Mapping[str, str | int]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that it wraps; the transport nests the system's error in arguments."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        present = waiting.pop()
        if id(present) in seen:
            continue
        seen.add(id(present))
        yield present
        inner = [present.__cause__, present.__context__, getattr(present, "reason", None)]
        waiting += [item for item in [*inner, *present.args] if isinstance(item, BaseException)]


def _unavailable(error: BaseException, address: str) -> EngineUnavailable:
    where = escape_untrusted(address, 120)
    if any(isinstance(cause, PermissionError) for cause in _causes(error)):
        return EngineUnavailable(
            f"no permission on the Docker engine at {where}: join its group "
            "(`sudo usermod -aG docker $USER`, then log in again) or run as root"
        )
    if any(
        isinstance(cause, FileNotFoundError | ConnectionRefusedError) for cause in _causes(error)
    ):
        return EngineUnavailable(
            f"no Docker engine answers at {where}: start it (`sudo systemctl start docker`) or "
            "point DOCKER_HOST at one"
        )
    fact = escape_untrusted(str(error), 160)
    return EngineUnavailable(
        f"the Docker engine at {where} was lost in mid-call ({fact}); see `piste doctor`"
    )


class EngineSession:
    """Calls of the engine's API. Connects at the first call, so that importing costs nothing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Honour `DOCKER_HOST`, `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH` of `environment`."""
        self._environment = dict(environment)
        self._address = environment.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        self._client: docker.APIClient | None = None

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn every error of the transport into EngineUnavailable."""
        try:
            yield
        except _TRANSPORT_ERRORS as error:
            raise _unavailable(error, self._address) from error

    def _reach(self) -> None:
        """See that somebody listens: the client itself leaks a socket for each vain attempt."""
        scheme, _, path = self._address.partition("://")
        if scheme != "unix":
            return
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(CALL_TIMEOUT_S)
                probe.connect(path)
        except OSError as error:
            raise _unavailable(error, self._address) from error

    def client(self) -> docker.APIClient:
        """Return the connected client; it is closed when this session is no longer used."""
        self._reach()
        if self._client is None:
            with self.errors():
                options = kwargs_from_env(environment=self._environment)
                self._client = docker.APIClient(
                    version="auto", timeout=int(CALL_TIMEOUT_S), **options
                )
            # The engine would compress what it streams, at a tenth of the speed.
            self._client.headers["Accept-Encoding"] = "identity"
            weakref.finalize(self, self._client.close)
        return self._client

    def call(
        self,
        method: str,
        path: str,
        *,
        action: str,
        params: Params | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
        absent_is_none: bool = False,
        **request: Any,  # noqa: ANN401 - passed on to requests as it is
    ) -> Response | None:
        """Make one call. `action` completes `the engine could not …` in a message.

        Returns None for status 404 where `absent_is_none`. Raises EngineError for any other
        refusal and EngineUnavailable when no answer comes.
        """
        client = self.client()
        url = f"{client.base_url}/v{client.api_version}{path}"
        with self.errors():
            response = client.request(method, url, params=params, timeout=timeout_s, **request)
            if response.status_code < 400:
                return response
            message = _message(response)
        if response.status_code == 404 and absent_is_none:
            return None
        raise engine_error(action, message, response.status_code)

    def answer(self, method: str, path: str, *, action: str, **request: Any) -> Response:  # noqa: ANN401
        """Make one call that has to find what it names."""
        response = self.call(method, path, action=action, **request)
        assert response is not None
        return response

    def lines(self, response: Response) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of a streamed answer; the engine's own error ends it."""
        with self.errors(), response:
            for line in response.iter_lines(chunk_size=4096):
                if line:
                    yield json.loads(line)

    def chunks(self, response: Response) -> Iterator[bytes]:
        """Yield a streamed answer's bytes; closing the generator closes the connection."""
        with self.errors(), response:
            yield from response.iter_content(_CHUNK_BYTES)

    def frames(self, response: Response) -> Iterator[bytes]:
        """Yield the payloads of the engine's log frames, stdout and stderr alike."""
        with self.errors(), response:
            while len(header := response.raw.read(8)) == 8:
                left = int.from_bytes(header[4:], "big")
                while left:
                    piece = response.raw.read(min(left, _CHUNK_BYTES))
                    if not piece:
                        return
                    left -= len(piece)
                    yield piece


def _message(response: Response) -> str:
    """Return the engine's own words, at most a few kilobytes of them."""
    body = next(response.iter_content(8192), b"")
    response.close()
    try:
        text = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace")
    return str(text)


def explained(action: str, message: str) -> str:
    """Return the message for a refusal: the act, the engine's words, the next step."""
    fact = escape_untrusted(" ".join(message.split()), 300)
    step = "see `piste doctor`"
    if "no space left on device" in message.lower():
        step = "free space on the engine's data root, then try again"
    return f"the engine could not {action}: {fact}; {step}"


def engine_error(action: str, message: str, status: int | None = None) -> EngineError:
    """Return the error for a refusal."""
    return EngineError(explained(action, message), engine_message=message, status=status)
