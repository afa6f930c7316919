"""The life of a container at the engine: wait without trusting a timeout, watch, remove."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from orchestrator.engine.docker.session import EngineSession
from orchestrator.engine.ports import (
    Change,
    ChangeKind,
    EngineError,
    EngineUnavailable,
)

_WAIT_SLICE_S: Final = 20.0
_RECONNECT_S: Final = 10.0
_RETRY_S: Final = 0.2
_REMOVAL_S: Final = 30.0
_OOM_NEWS_S: Final = 1.0
_OOM_LOOK_S: Final = 0.1
_CHANGES: Final = (ChangeKind.MODIFIED, ChangeKind.ADDED, ChangeKind.DELETED)
_ENDED: Final = frozenset({"exited", "dead", "removing"})


def inspect(session: EngineSession, container: str) -> Mapping[str, Any] | None:
    """Return the container's inspection, or None."""
    response = session.call(
        "GET",
        f"/containers/{container}/json",
        action="inspect a container",
        absent_is_none=True,
    )
    return None if response is None else dict(response.json())


def has_ended(session: EngineSession, container: str) -> bool:
    """Tell whether it has ended, or is not there any more."""
    found = inspect(session, container)
    return found is None or found["State"]["Status"] in _ENDED


def _has_ended_after_reconnecting(session: EngineSession, container: str) -> bool:
    """Ask again for some seconds: with live-restore, containers outlive an engine's restart."""
    give_up = time.monotonic() + _RECONNECT_S
    while True:
        try:
            return has_ended(session, container)
        except EngineUnavailable:
            if time.monotonic() >= give_up:
                raise
            time.sleep(_RETRY_S)


def _wait_once(session: EngineSession, container: str, timeout_s: float) -> None:
    """Block until the engine answers or the socket's timeout; both only mean `look again`."""
    try:
        session.call(
            "POST",
            f"/containers/{container}/wait",
            action="wait for a container",
            params={"condition": "not-running"},
            timeout_s=timeout_s,
            absent_is_none=True,
        )
    except EngineUnavailable:
        return


def wait_for_exit(session: EngineSession, container: str, timeout_s: float) -> bool:
    """Return whether the container ended within `timeout_s`, by our own monotonic clock.

    The transport reports its read timeout and a lost engine alike, so neither is believed: the
    container's state decides.
    """
    deadline = time.monotonic() + timeout_s
    while (left := deadline - time.monotonic()) > 0:
        _wait_once(session, container, min(left, _WAIT_SLICE_S))
        if _has_ended_after_reconnecting(session, container):
            return True
    return _has_ended_after_reconnecting(session, container)


def remove(session: EngineSession, container: str) -> None:
    """Remove with anonymous volumes and see that it is gone, within bounds."""
    give_up = time.monotonic() + _REMOVAL_S
    while True:
        try:
            session.call(
                "DELETE",
                f"/containers/{container}",
                action="remove a container",
                params={"v": 1, "force": 1},
                absent_is_none=True,
            )
        except EngineError as error:
            # 409: another removal is under way; 500: the engine is still letting go of it.
            if error.status not in {409, 500} or time.monotonic() >= give_up:
                raise
        if inspect(session, container) is None:
            return
        if time.monotonic() >= give_up:
            raise EngineUnavailable(
                f"the engine did not remove a container within {_REMOVAL_S:.0f} s; restart it"
            )
        time.sleep(_RETRY_S)


def saw_oom(session: EngineSession, container: str) -> bool:
    """Tell by the state's flag, or by the engine's event where cgroup v2 stacks miss the flag.

    The engine hears of the kill and of the exit on two ways: after an exit that a kill could
    explain, the flag is waited for.
    """
    give_up = time.monotonic() + _OOM_NEWS_S
    while True:
        found = inspect(session, container)
        if found is None:
            return False
        if _oom_is_known(session, found):
            return True
        if found["State"].get("ExitCode") == 0 or time.monotonic() >= give_up:
            return False
        time.sleep(_OOM_LOOK_S)


def _oom_is_known(session: EngineSession, found: Mapping[str, Any]) -> bool:
    if found["State"].get("OOMKilled"):
        return True
    response = session.answer(
        "GET",
        "/events",
        action="list events",
        params={
            "since": int(datetime.fromisoformat(found["Created"]).timestamp()),
            "until": f"{time.time():.3f}",
            "filters": json.dumps({"container": [found["Id"]], "event": ["oom"]}),
        },
        stream=True,
    )
    return any(
        event.get("Action", event.get("status")) == "oom" for event in session.lines(response)
    )


def changes(session: EngineSession, container: str) -> tuple[Change, ...]:
    """Return how the container's root differs from its image, by path."""
    response = session.answer(
        "GET", f"/containers/{container}/changes", action="compare a container with its image"
    )
    found = [
        Change(path=str(item["Path"]), kind=_CHANGES[item["Kind"]])
        for item in response.json() or ()
    ]
    return tuple(sorted(found, key=lambda change: change.path))
