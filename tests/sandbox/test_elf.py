"""The sandbox's own programs, run on this machine and compared with the C library's answers."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from orchestrator.sandbox.rules.elf import (
    Architecture,
    ProbeCall,
    parse_probe_report,
    pause_elf,
    syscall_probe_elf,
)
from orchestrator.sandbox.rules.tiny_image import tiny_image

HERE = next((a for a in Architecture if a.machine == platform.machine()), None)
needs_known_processor = pytest.mark.skipif(
    HERE is None, reason=f"no program is built for {platform.machine()}"
)


def installed(folder: Path, program: bytes) -> str:
    path = folder / "program"
    path.write_bytes(program)
    path.chmod(0o755)
    return str(path)


@needs_known_processor
def test_the_probe_reports_what_the_kernel_answers(tmp_path: Path) -> None:
    assert HERE is not None
    target = tmp_path / "out"
    calls = [
        ProbeCall(syscall="getuid"),
        ProbeCall(syscall="openat", arguments=(-100, b"/no/such/file\0", 0)),
        ProbeCall(syscall="openat", arguments=(-100, f"{target}\0".encode(), 0o102, 0o600)),
        ProbeCall(syscall="write", arguments=(3, b"sign", 4)),
        ProbeCall(syscall="fallocate", arguments=(3, 0, 0, 100)),
    ]
    program = installed(tmp_path, syscall_probe_elf(HERE, calls))
    ended = subprocess.run([program], capture_output=True, timeout=10, check=True)
    assert parse_probe_report(ended.stdout) == [os.getuid(), -2, 3, 4, 0]
    assert target.read_bytes() == b"sign" + bytes(96)


@needs_known_processor
def test_a_child_of_the_probe_pauses_and_the_parent_goes_on(tmp_path: Path) -> None:
    assert HERE is not None
    fork = ProbeCall(syscall="clone", arguments=(signal.SIGCHLD,), child_pauses=True)
    program = installed(tmp_path, syscall_probe_elf(HERE, [fork, ProbeCall(syscall="getgid")]))
    report = tmp_path / "report"
    with report.open("wb") as output:
        probe = subprocess.Popen([program], stdout=output, start_new_session=True)
        assert probe.wait(10) == 0
    child, group = parse_probe_report(report.read_bytes())
    assert group == os.getgid()
    os.kill(child, 0)
    os.killpg(probe.pid, signal.SIGKILL)


@needs_known_processor
def test_the_holder_sleeps_until_it_is_killed(tmp_path: Path) -> None:
    assert HERE is not None
    holder = subprocess.Popen([installed(tmp_path, pause_elf(HERE))])
    time.sleep(0.1)
    assert holder.poll() is None
    holder.kill()
    assert holder.wait(10) == -signal.SIGKILL


def test_the_same_calls_give_the_same_bytes() -> None:
    calls = [ProbeCall(syscall="write", arguments=(1, b"x", 1))]
    for architecture in Architecture:
        first = syscall_probe_elf(architecture, calls)
        assert first == syscall_probe_elf(architecture, calls)
        assert first[:4] == b"\x7fELF"
        assert int.from_bytes(first[18:20], "little") == architecture.value[2]


def test_only_whole_report_lines_are_results() -> None:
    text = b"aaaaaaaaaaaaaaab\npppppppppppppppp\nnoise\naaaaaaaaaaaaaaaz\naaaa"
    assert parse_probe_report(text) == [1, -1]


def test_a_tiny_images_id_is_the_digest_of_its_configuration() -> None:
    image = tiny_image({"pause": b"x"}, entrypoint=("/pause",), architecture=Architecture.ARM64)
    with tarfile.open(fileobj=io.BytesIO(image.archive)) as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
    (entry,) = json.loads(files["manifest.json"])
    assert entry["RepoTags"] is None
    assert image.image_id == f"sha256:{hashlib.sha256(files[entry['Config']]).hexdigest()}"
    config = json.loads(files[entry["Config"]])
    (layer,) = entry["Layers"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(files[layer]).hexdigest()}"]
    assert config["architecture"] == "arm64"
    assert image.platform == "linux/arm64"
    again = tiny_image({"pause": b"x"}, entrypoint=("/pause",), architecture=Architecture.ARM64)
    assert again == image
