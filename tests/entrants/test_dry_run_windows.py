"""Counters of a network namespace, programs' heads, log lines for a terminal, images looked into."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.images import ImageIdentity, Transport
from orchestrator.cli.views.dry_run_view import MOST_LINES, LogLines
from orchestrator.entrants.image_look import look_into_image
from orchestrator.entrants.proc.container_window import ProcWindows
from orchestrator.entrants.proc.network_counters import attempts_of, count_attempts, parse_snmp
from orchestrator.entrants.rules.programs import FileKind, ImageFile, read_program
from orchestrator.entrants.rules.quantities import size_text
from orchestrator.sandbox.rules.elf import Architecture, pause_elf
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.support.reporter import SilentReporter
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_images import refusal
from tests.support.simulated_world import SimulatedClock

SNMP = """Ip: Forwarding DefaultTTL OutDiscards OutNoRoutes
Ip: 1 64 0 2
Tcp: RtoAlgorithm MaxConn
Tcp: 1 -1
Udp: InDatagrams NoPorts
Udp: 0 3
"""


def test_counters_are_read_by_name() -> None:
    assert parse_snmp(SNMP)["Tcp.MaxConn"] == -1
    found = attempts_of(SNMP, "Ip6OutNoRoutes \t4\nUdp6NoPorts 1\n")
    assert (found.unroutable, found.unanswered, found.total) == (6, 4, 10)
    assert attempts_of("", "").total == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to enter a network namespace")
def test_ones_own_namespace_can_be_counted_and_is_not_left() -> None:
    before = Path("/proc/self/ns/net").readlink()
    descriptor = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        found = count_attempts(descriptor)
    finally:
        os.close(descriptor)
    assert not isinstance(found, str)
    assert found.total >= 0
    assert Path("/proc/self/ns/net").readlink() == before


def test_what_is_no_namespace_gives_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    descriptor = os.open(file, os.O_RDONLY)
    try:
        found = count_attempts(descriptor)
    finally:
        os.close(descriptor)
    assert isinstance(found, str)
    assert "cannot be entered" in found


def test_a_process_that_is_not_the_containers_is_not_looked_into() -> None:
    opener = ProcWindows()
    assert isinstance(opener.open_window("f" * 64, 0), str)
    found = opener.open_window("f" * 64, os.getpid())
    assert isinstance(found, str)
    assert "runs elsewhere" in found


def test_programs_say_what_they_need() -> None:
    script = read_program(b"#!/usr/bin/env python3\nimport os\n")
    assert script is not None
    assert (script.interpreter, script.is_script) == ("/usr/bin/env", True)
    windows = read_program(b"#!/bin/sh\r\necho\r\n")
    assert windows is not None
    assert windows.has_carriage_return
    static = read_program(pause_elf(Architecture.ARM64))
    assert static is not None
    assert (static.machine, static.interpreter) == ("arm64", None)
    assert read_program(b"echo hello\n") is None


def test_a_dynamic_program_of_this_machine_names_its_loader() -> None:
    found = read_program(Path("/bin/sh").read_bytes()[: 64 * 1024])
    assert found is not None
    assert found.interpreter is not None
    assert Path(found.interpreter).exists()


@settings(max_examples=80)
@given(st.binary(max_size=300))
def test_no_head_of_a_file_breaks_the_reading(head: bytes) -> None:
    for prefix in (b"", b"#!", b"\x7fELF\x02\x01"):
        found = read_program(prefix + head)
        assert found is None or len(found.interpreter or "") <= 4 * 255


def test_modes_count_for_the_owner_the_group_and_others() -> None:
    closed = ImageFile(path="/a", kind=FileKind.FILE, mode=0o640, uid=0, gid=65532)
    assert closed.permits(4, user_id=65532)
    assert not closed.permits(2, user_id=65532)
    assert not closed.permits(4, user_id=1000)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (4 * 2**30, "4 GiB"), (2**30 - 1, "1 GiB")],
)
def test_sizes_are_written_as_people_read_them(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


@settings(max_examples=80)
@given(st.lists(st.binary(max_size=200), max_size=20))
def test_log_lines_are_printable_bounded_and_in_order(pieces: list[bytes]) -> None:
    reading = LogLines(40)
    lines = [line for piece in pieces for line in reading.take(piece)]
    lines += reading.rest()
    whole = b"".join(pieces)
    expected = whole.count(b"\n") + bool(whole.rpartition(b"\n")[2])
    assert len(lines) == expected
    assert all(line.isprintable() and len(line) <= 40 for line in lines)


def test_a_flood_of_lines_is_cut_with_one_remark() -> None:
    reading = LogLines(40)
    lines = list(reading.take(b"line\n" * 5000))
    assert len(lines) == MOST_LINES
    assert lines[-1].startswith("… more than")


def test_a_line_without_an_end_does_not_pile_up() -> None:
    reading = LogLines(40)
    for _ in range(100):
        assert list(reading.take(b"x" * 100_000)) == []
    assert list(reading.rest()) == ["x" * 39 + "…"]


class _FilesEngine(EngineSimulator):
    """A simulator whose containers show the given members of an image."""

    def __init__(self, members: dict[str, tarfile.TarInfo], data: dict[str, bytes]) -> None:
        super().__init__(SimulatedClock())
        self.members, self.data = members, data

    def get_archive(self, container: str, path: str) -> Any:
        if path not in self.members:
            raise refusal("no such path", 404)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.addfile(self.members[path], io.BytesIO(self.data.get(path, b"")))
        return iter((buffer.getvalue(),))


def member(name: str, *, mode: int = 0o755, kind: bytes = tarfile.REGTYPE, **fields: Any) -> Any:
    made = tarfile.TarInfo(name)
    made.mode, made.type = mode, kind
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def test_an_image_is_looked_into_through_links_and_its_own_path() -> None:
    script, passwd = b"#!/opt/bin/tool\n", b"root:x:0:0::/:\nme:x:65532:65532::/tmp:/bin/sh\n"
    members = {
        "/opt/app/run": member("run", kind=tarfile.SYMTYPE, linkname="../real/run"),
        "/opt/real/run": member("run", size=len(script)),
        "/etc/passwd": member("passwd", size=len(passwd)),
        "/srv": member("srv", mode=0o700, kind=tarfile.DIRTYPE),
        "/srv/w": member("w", mode=0o600),
    }
    engine = _FilesEngine(members, {"/opt/real/run": script, "/etc/passwd": passwd})
    image = tiny_image({"run": b"x"}, entrypoint=("/run",), architecture=Architecture.AMD64)
    engine.load_archive([image.archive], len(image.archive), SilentReporter())
    identity = ImageIdentity(
        reference="image.tar",
        transport=Transport.DOCKER_ARCHIVE,
        config_digest=image.image_id,
        diff_ids=(),
        platform="linux/amd64",
        size_bytes=1,
        engine_image_id=image.image_id,
    )
    facts = look_into_image(
        engine,
        identity,
        {"Entrypoint": ["run"], "Env": ["PATH=/bin:/opt/app"]},
        run_id="0123456789abcdef",
        paths=("/srv/w", "/srv/none"),
    )
    assert facts.program == "/opt/app/run"
    program = facts.files["/opt/app/run"]
    assert program is not None
    assert program.head == script
    assert facts.files["/opt/bin/tool"] is None
    assert facts.has_passwd_entry
    folder = facts.files["/srv"]
    assert folder is not None
    assert (folder.kind, folder.mode) == (FileKind.DIRECTORY, 0o700)
    assert facts.files["/srv/none"] is None
    assert engine.list_containers("piste-") == ()
