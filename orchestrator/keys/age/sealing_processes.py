"""Seal in processes of their own: age holds the interpreter's lock, so threads wait for each other.

What is sealed goes there and back through memory files, which have no name and end with their
holders: nothing of it lies on a disk or outlives a kill.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final

from manifests.errors import PlatformFault
from orchestrator.keys.age import sealing_program
from orchestrator.keys.age.age_files import AgeSealer
from orchestrator.keys.age.sealing_program import Memory
from orchestrator.keys.rules.recipients import SealingPlan

WORTH_BYTES: Final = 128 << 10
"""Less than this is sealed sooner than it is carried there and back."""

_GRAIN_BYTES: Final = 1 << 20
_END_S: Final = 5.0


class SealingProcesses:
    """Implements `orchestrator.keys.sealing_port.BulkSealer`; it has to be closed.

    There are as many processes as threads that seal at the same time.
    """

    def __init__(self) -> None:
        self._sealer = AgeSealer()
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        self._all: list[_Process] = []

    def close(self) -> None:
        """End the processes, whatever they do."""
        for process in self._all:
            process.end()

    def seal_to(
        self, write: Callable[[memoryview], None], parts: Sequence[bytes], plan: SealingPlan
    ) -> str:
        """Hand the joined `parts` as age to `write`, and return the SHA-256 of that.

        Raises:
            MalformedDocument: for a recipient that is none.
            PlatformFault: when a process ended by itself.

        """
        self._sealer.check(plan)
        process = self._take() if sum(map(len, parts)) >= WORTH_BYTES else None
        if process is None:
            return self._sealer.seal_to(write, parts, plan)
        sha256 = process.seal_to(write, parts, plan)
        self._idle.put(process)
        return sha256

    def _take(self) -> _Process | None:
        """Return a process that nobody uses; None where the system has none to give."""
        with suppress(Empty):
            return self._idle.get_nowait()
        try:
            process = _Process()
        except (AttributeError, OSError):  # no memory files, or no further process
            return None
        self._all.append(process)
        return process


class _Process:
    """One program at work. One thread uses it at a time."""

    def __init__(self) -> None:
        self._source = Memory(os.memfd_create("piste-plain"))
        self._target = Memory(os.memfd_create("piste-sealed"))
        self._room_bytes = 0
        descriptors = (self._source.descriptor, self._target.descriptor)
        # A session of its own: Ctrl+C at the terminal is for us, and we end it.
        self._child = subprocess.Popen(
            [sys.executable, "-P", str(sealing_program.__file__), *map(str, descriptors)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=True,
        )

    def seal_to(
        self, write: Callable[[memoryview], None], parts: Sequence[bytes], plan: SealingPlan
    ) -> str:
        size_bytes = sum(map(len, parts))
        self._make_room(size_bytes, plan)
        self._source.fill(parts)
        answer = self._ask({"size_bytes": size_bytes, "layers": plan.layers})
        with memoryview(self._target.mapped()) as whole, whole[: answer["size_bytes"]] as sealed:
            write(sealed)
        return str(answer["sha256"])

    def _make_room(self, size_bytes: int, plan: SealingPlan) -> None:
        """See that both files hold the plaintext, and what each layer adds to it."""
        room_bytes = size_bytes
        for layer in plan.layers:
            # header with a stanza for each recipient; 16 bytes for each chunk of 64 KiB
            room_bytes += 4096 + 256 * len(layer) + 16 * (room_bytes // 65536 + 1)
        if room_bytes > self._room_bytes:
            self._room_bytes = -(-room_bytes // _GRAIN_BYTES) * _GRAIN_BYTES
            for memory in (self._source, self._target):
                os.ftruncate(memory.descriptor, self._room_bytes)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._child.stdin, self._child.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(request).encode("ascii") + b"\n")
            stdin.flush()
            answer = stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            raise PlatformFault(
                f"a process that encrypts ended with code {self._child.wait()}: is there enough "
                "memory? Nothing was sealed; try again"
            )
        return dict(json.loads(answer))

    def end(self) -> None:
        """End the program, whatever it does, and let go of its memory."""
        self._child.kill()
        self._child.wait(_END_S)
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # what an ended program was not told any more
                pipe.close()
        for memory in (self._source, self._target):
            memory.close()
