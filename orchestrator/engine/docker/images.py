"""The engine's images: pull, load, save, inspect, remove; always by full id or digest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from docker.auth import get_config_header, resolve_repository_name

from orchestrator.engine.docker.session import EngineSession, explained
from orchestrator.engine.ports import EngineError, PullFailed
from orchestrator.support.reporter import Reporter, Step

_IMAGE_ID: Final = re.compile(r"sha256:[0-9a-f]{64}")
_LOADED: Final = re.compile(r"Loaded image ID: (sha256:[0-9a-f]{64})")


def _full_id(image_id: str) -> str:
    """Refuse anything that an engine would resolve as a name."""
    if _IMAGE_ID.fullmatch(image_id) is None:
        message = "only a full id names an image"
        raise EngineError(explained("find an image", message), engine_message=message)
    return image_id


def _auth_header(session: EngineSession, repository: str) -> dict[str, str]:
    """Return the login of Docker's own configuration for the repository's registry."""
    with session.errors():
        registry, _ = resolve_repository_name(repository)
        header = get_config_header(session.client(), registry)
    if not header:
        return {}
    return {"X-Registry-Auth": header.decode() if isinstance(header, bytes) else header}


def _report_layers(events: Iterable[dict[str, Any]], reporter: Reporter) -> str | None:
    """Add up the layers' progress; return the engine's error, if there was one."""
    totals: dict[str, int] = {}
    done: dict[str, int] = {}
    for event in events:
        if "error" in event:
            return str(event["error"])
        layer, detail = str(event.get("id", "")), event.get("progressDetail") or {}
        if event.get("status") == "Downloading" and "total" in detail:
            totals[layer], done[layer] = int(detail["total"]), int(detail["current"])
        elif event.get("status") in {"Download complete", "Pull complete"} and layer in totals:
            done[layer] = totals[layer]
        else:
            continue
        reporter.progress(Step.PULL, sum(done.values()), sum(totals.values()), "bytes")
    return None


def pull(
    session: EngineSession, repository: str, digest: str, platform: str, reporter: Reporter
) -> None:
    """Pull by digest; no deadline, for a large image is slow and not wrong."""
    action = f"pull {repository}@{digest[:19]}…"
    headers = _auth_header(session, repository)
    params = {"fromImage": repository, "tag": digest, "platform": platform}
    try:
        response = session.answer(
            "POST",
            "/images/create",
            action=action,
            params=params,
            headers=headers,
            stream=True,
            timeout_s=None,
        )
    except EngineError as error:
        raise PullFailed(
            explained(action, error.engine_message),
            engine_message=error.engine_message,
            status=error.status,
        ) from error
    message = _report_layers(session.lines(response), reporter)
    if message is not None:
        raise PullFailed(explained(action, message), engine_message=message)


def _counted(chunks: Iterable[bytes], size_bytes: int, reporter: Reporter) -> Iterator[bytes]:
    sent = 0
    for chunk in chunks:
        yield chunk
        sent += len(chunk)
        reporter.progress(Step.PULL, sent, size_bytes, "bytes")


def load(
    session: EngineSession, archive: Iterable[bytes], size_bytes: int, reporter: Reporter
) -> tuple[str, ...]:
    """Load an archive; return the ids that the engine names."""
    response = session.answer(
        "POST",
        "/images/load",
        action="load the image archive",
        params={"quiet": 1},
        data=gathered(_counted(archive, size_bytes, reporter)),
        headers={"Content-Type": "application/x-tar"},
        stream=True,
        timeout_s=None,
    )
    loaded: list[str] = []
    for event in session.lines(response):
        if "error" in event:
            message = str(event["error"])
            raise EngineError(explained("load the image archive", message), engine_message=message)
        loaded += _LOADED.findall(str(event.get("stream", "")))
    return tuple(loaded)


def inspect(session: EngineSession, image_id: str) -> Mapping[str, Any] | None:
    """Return the image's inspection, or None."""
    response = session.call(
        "GET",
        f"/images/{_full_id(image_id)}/json",
        action="inspect an image",
        absent_is_none=True,
    )
    return None if response is None else dict(response.json())


def list_ids(session: EngineSession) -> tuple[str, ...]:
    """Return the ids of all images."""
    response = session.answer("GET", "/images/json", action="list images", params={"all": 1})
    return tuple(sorted({str(image["Id"]) for image in response.json()}))


def save(session: EngineSession, image_id: str) -> Iterator[bytes]:
    """Stream the image as an archive."""
    response = session.answer(
        "GET",
        f"/images/{_full_id(image_id)}/get",
        action="save an image",
        stream=True,
        timeout_s=None,
    )
    return session.chunks(response)


def remove(session: EngineSession, image_id: str) -> None:
    """Remove the image with all its names."""
    session.call(
        "DELETE",
        f"/images/{_full_id(image_id)}",
        action="remove an image",
        params={"force": 1},
        absent_is_none=True,
    )


def gathered(chunks: Iterable[bytes], size_bytes: int = 2**18) -> Iterator[bytes]:
    """Join small chunks: each becomes an HTTP chunk and a system call of its own."""
    waiting: list[bytes] = []
    length = 0
    for chunk in chunks:
        if not chunk:
            continue
        waiting.append(chunk)
        length += len(chunk)
        if length >= size_bytes:
            yield b"".join(waiting)
            waiting, length = [], 0
    if waiting:
        yield b"".join(waiting)
