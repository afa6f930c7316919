"""The registry client checks bytes, answers challenges and quotes the registry's words."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from manifests.digests import oci_digest
from manifests.errors import MalformedDocument, PisteError, PlatformFault, RefusedByPolicy
from manifests.oci import LARGEST_MANIFEST_BYTES, OCI_MANIFEST
from manifests.references import ImageReference
from orchestrator.images.http.credentials import Credentials, docker_login
from orchestrator.images.http.registry import HttpRegistry, is_loopback

BODY = json.dumps({"schemaVersion": 2, "note": "a manifest"}).encode()


class Answer:
    """What a scripted registry says."""

    def __init__(self, status: int = 200, body: bytes = BODY, **headers: str) -> None:
        self.status, self.body = status, body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


Script = Callable[[BaseHTTPRequestHandler], Answer]


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """Serve plain HTTP on loopback; yield `host:port`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = script(self)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client(credentials: Credentials | None = None, timeout_s: float = 2.0) -> HttpRegistry:
    return HttpRegistry(
        credentials=lambda registry: credentials or Credentials(),
        timeout_s=(timeout_s, timeout_s),
    )


def reference(host: str, **fields: str) -> ImageReference:
    return ImageReference(registry=host, repository="team/nova", **fields)


def error_document(code: str, message: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": message}]}).encode()


def test_a_manifest_comes_with_its_digest_and_media_type() -> None:
    seen: list[tuple[str, str | None]] = []

    def script(request: BaseHTTPRequestHandler) -> Answer:
        seen.append((request.path, request.headers["Accept"]))
        return Answer(Content_Type=f"{OCI_MANIFEST}; charset=utf-8")

    with serving(script) as host:
        document = client().fetch_manifest(reference(host, tag="v1"))
    assert (document.data, document.digest) == (BODY, oci_digest(BODY))
    assert document.media_type == OCI_MANIFEST
    assert seen[-1][0] == "/v2/team/nova/manifests/v1"
    assert OCI_MANIFEST in str(seen[-1][1])


def test_other_bytes_than_the_digest_says_are_not_taken() -> None:
    with serving(lambda request: Answer(body=BODY + b" ")) as host:
        with pytest.raises(PlatformFault, match="sent other bytes"):
            client().fetch_manifest(reference(host, digest=oci_digest(BODY)))
        with pytest.raises(PlatformFault, match="sent other bytes"):
            client().fetch_config(reference(host, tag="v1"), oci_digest(BODY), len(BODY) + 1)


def test_a_body_beyond_its_bound_is_not_read() -> None:
    with serving(lambda request: Answer(body=bytes(LARGEST_MANIFEST_BYTES + 1))) as host:
        with pytest.raises(MalformedDocument, match=f"more than {LARGEST_MANIFEST_BYTES} bytes"):
            client().fetch_manifest(reference(host, tag="v1"))
        with pytest.raises(MalformedDocument, match="more than 5 bytes"):
            client().fetch_config(reference(host, tag="v1"), oci_digest(BODY), 5)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (Answer(401, error_document("UNAUTHORIZED", "who are you"), WWW_Authenticate="Nonsense"), RefusedByPolicy, r"401 \(UNAUTHORIZED: who are you\).*docker login"),
        (Answer(403, error_document("DENIED", "not yours")), RefusedByPolicy, r"403 \(DENIED: not yours\)"),
        (Answer(404, error_document("MANIFEST_UNKNOWN", "manifest unknown")), MalformedDocument, r"404 \(MANIFEST_UNKNOWN: manifest unknown\)"),
        (Answer(429, error_document("TOOMANYREQUESTS", "slow down"), Retry_After="60"), PlatformFault, r"429 \(TOOMANYREQUESTS: slow down\).*after 60"),
        (Answer(500, b"<html>"), PlatformFault, r"500 \(Internal Server Error\)"),
        (Answer(503, b'{"errors": [{"code": "X", "message": "a\\u001b[2J"}]}'), PlatformFault, r"X: a\\x1b\[2J"),
    ],
)  # fmt: skip
def test_a_refusal_quotes_the_registry_and_says_what_to_do(
    answer: Answer, kind: type[PisteError], words: str
) -> None:
    with serving(lambda request: answer) as host, pytest.raises(kind, match=words) as caught:
        client().fetch_manifest(reference(host, tag="v1"))
    assert type(caught.value) is kind
    assert host in str(caught.value)


def test_a_bearer_challenge_is_answered_with_a_token_for_this_repository_only() -> None:
    asked: list[tuple[dict[str, list[str]], str | None]] = []

    def script(request: BaseHTTPRequestHandler) -> Answer:
        url = urlsplit(request.path)
        if url.path == "/token":
            asked.append((parse_qs(url.query), request.headers["Authorization"]))
            return Answer(body=b'{"token": "t0ken"}')
        if request.headers["Authorization"] == "Bearer t0ken":
            return Answer()
        realm = f"http://{request.headers['Host']}/token"
        challenge = f'Bearer realm="{realm}",service="registry.example",scope="ignored"'
        return Answer(401, b"{}", WWW_Authenticate=challenge)

    with serving(script) as host:
        registry = client(Credentials(username="nova", password="s:cret"))
        assert registry.fetch_manifest(reference(host, tag="v1")).data == BODY
        assert registry.fetch_config(reference(host, tag="v1"), oci_digest(BODY), 100) == BODY
    expected = "Basic " + base64.b64encode(b"nova:s:cret").decode()
    assert asked == [
        ({"scope": ["repository:team/nova:pull"], "service": ["registry.example"]}, expected)
    ]


def test_a_basic_challenge_is_answered_with_the_login() -> None:
    expected = "Basic " + base64.b64encode(b"nova:pw").decode()

    def script(request: BaseHTTPRequestHandler) -> Answer:
        if request.headers["Authorization"] == expected:
            return Answer()
        return Answer(401, b"{}", WWW_Authenticate='Basic realm="x"')

    with serving(script) as host:
        good = client(Credentials(username="nova", password="pw"))
        assert good.fetch_manifest(reference(host, tag="v1")).data == BODY
        with pytest.raises(RefusedByPolicy, match="401"):
            client(Credentials(username="nova", password="no")).fetch_manifest(
                reference(host, tag="v1")
            )
        with pytest.raises(RefusedByPolicy, match="401"):
            client().fetch_manifest(reference(host, tag="v1"))


def test_a_token_service_without_tls_elsewhere_gets_no_password() -> None:
    challenge = 'Bearer realm="http://192.0.2.1/token",service="x"'
    with (
        serving(lambda request: Answer(401, b"{}", WWW_Authenticate=challenge)) as host,
        pytest.raises(PlatformFault, match="not reached over TLS"),
    ):
        client(Credentials(username="nova", password="pw")).fetch_manifest(
            reference(host, tag="v1")
        )


def test_a_silent_registry_is_given_up_after_the_timeout() -> None:
    release = threading.Event()

    def script(request: BaseHTTPRequestHandler) -> Answer:
        release.wait(5)
        return Answer()

    with serving(script) as host:
        try:
            with pytest.raises(PlatformFault, match="did not answer in time"):
                client(timeout_s=0.2).fetch_manifest(reference(host, tag="v1"))
        finally:
            release.set()


def test_nobody_listening_is_a_platform_fault_with_the_place() -> None:
    with serving(lambda request: Answer()) as host:
        pass
    with pytest.raises(PlatformFault, match=f"{host} cannot be reached"):
        client().fetch_manifest(reference(host, tag="v1"))


@pytest.mark.parametrize(
    ("registry", "loopback"),
    [
        ("127.0.0.1:5000", True),
        ("127.9.9.9", True),
        ("localhost:1", True),
        ("[::1]:5000", True),
        ("localhost.example", False),
        ("10.0.0.1:5000", False),
        ("docker.io", False),
    ],
)
def test_only_this_machine_is_loopback(registry: str, loopback: bool) -> None:
    assert is_loopback(registry) is loopback


def test_the_login_comes_from_dockers_own_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = base64.b64encode(b"nova:pw").decode()
    config = {"auths": {"127.0.0.1:5000": {"auth": pair}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    found = docker_login("127.0.0.1:5000")
    assert (found.username, found.password) == ("nova", "pw")
    assert not docker_login("elsewhere.example").can_be_basic
    assert "pw" not in repr(found)
