"""What a container uses, read from the engine's own stream in a thread.

An engine takes half a second for each single answer: asked in the waiting loop, it would hide the
container's end for as long.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from manifests.errors import PlatformFault
from orchestrator.engine.docker.session import CALL_TIMEOUT_S, EngineSession
from orchestrator.engine.ports import UsageSample


def parse_usage(found: Mapping[str, Any]) -> UsageSample | None:
    """Return the sample in the engine's document; it holds no memory where nothing runs."""
    memory = found.get("memory_stats") or {}
    if "usage" not in memory:
        return None
    cache = memory.get("stats", {})
    reclaimable = cache.get("total_inactive_file", cache.get("inactive_file", 0))
    present = max(0, memory["usage"] - reclaimable)
    return UsageSample(
        memory_bytes=present,
        memory_peak_bytes=max(present, memory.get("max_usage", 0)),
        processes=found.get("pids_stats", {}).get("current", 0),
        cpu_s=found["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
    )


class UsageStream:
    """Keeps the newest sample of one container until the engine ends the stream."""

    def __init__(self, session: EngineSession, container: str) -> None:
        self._session = session
        self._container = container
        self.newest: UsageSample | None = None
        self._thread = threading.Thread(target=self._read, name="usage", daemon=True)

    def begin(self) -> UsageSample | None:
        """Take one sample at once, which the engine gives quickly, and go on in the thread."""
        response = self._stats(stream=False)
        self.newest = None if response is None else parse_usage(response.json())
        self._thread.start()
        return self.newest

    def _stats(self, *, stream: bool) -> Any:  # noqa: ANN401 - a response of requests, or None
        return self._session.call(
            "GET",
            f"/containers/{self._container}/stats",
            action="measure a container",
            params={"stream": int(stream), "one-shot": int(not stream)},
            absent_is_none=True,
            stream=stream,
            timeout_s=None if stream else CALL_TIMEOUT_S,
        )

    def _read(self) -> None:
        try:
            response = self._stats(stream=True)
            if response is None:
                return
            for found in self._session.lines(response):
                self.newest = parse_usage(found) or self.newest
        except PlatformFault:
            return  # the run's own calls notice a lost engine
