"""Real CPython under the certified and the strict profile."""

from __future__ import annotations

import io
import json
import os
import secrets
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from manifests.digests import sha256_hex
from manifests.outcomes import Diagnostic, Outcome
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.python.python_image import build_python_image, python_program
from orchestrator.sandbox.parts import list_leftovers
from orchestrator.sandbox.request import SandboxRequest, SandboxResult
from orchestrator.sandbox.run_in_sandbox import run_in_sandbox
from orchestrator.support.reporter import SilentReporter
from orchestrator.support.system_clock import SystemClock
from sandbox_profiles.profile import SandboxProfile, load_profile

pytestmark = pytest.mark.docker

CERTIFIED = load_profile("certified")
CACHE = Path.home() / ".cache" / "piste"


MAIN = """
import json
source = json.load(open("/input/exam.json"))["source"]
exec(compile(source, "<exam>", "exec"), globals())
"""
"""The one image of this module runs what the input tells it: building it once is enough."""


def input_files(source: str) -> dict[str, bytes]:
    exam = json.dumps({"source": source}).encode()
    return {"exam.json": exam, "keypoints/0001.npy": bytes(100_000)}


def input_tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o444
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


class Sandbox:
    """Runs Python sources in one image."""

    def __init__(self, engine: DockerEngine, image_id: str) -> None:
        self.engine = engine
        self.image_id = image_id
        self.run_ids: list[str] = []

    def run(self, source: str, *, profile: SandboxProfile = CERTIFIED) -> SandboxResult:
        inspected = self.engine.inspect_image(self.image_id)
        assert inspected is not None
        self.run_ids.append(secrets.token_hex(8))
        files = input_files(source)
        request = SandboxRequest(
            run_id=self.run_ids[-1],
            image_id=self.image_id,
            image_config=inspected["Config"],
            platform=f"linux/{inspected['Architecture']}",
            profile=profile,
            input_members=lambda: (input_tar(files),),
            input_bytes=100_100 + 2 * len(source),
            input_sums={name: sha256_hex(data) for name, data in files.items()},
            before_start=lambda _facts: None,
        )
        return run_in_sandbox(self.engine, SystemClock(), SilentReporter(), request=request)


@pytest.fixture(scope="module")
def image_id(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    engine = DockerEngine(os.environ)
    image = python_program(f"{MAIN}# {secrets.token_hex(8)}\n", distributions=("numpy",))
    archive = tmp_path_factory.mktemp("image") / "image.tar"
    built = build_python_image(image, archive, cache=CACHE)
    with built.path.open("rb") as file:
        chunks = iter(lambda: file.read(2**20), b"")
        engine.load_archive(chunks, built.size_bytes, SilentReporter())
    yield built.image_id
    engine.remove_image(built.image_id)
    assert engine.inspect_image(built.image_id) is None


@pytest.fixture
def sandbox(image_id: str) -> Iterator[Sandbox]:
    made = Sandbox(DockerEngine(os.environ), image_id)
    yield made
    leftovers = list_leftovers(made.engine)
    assert [run_id for run_id in made.run_ids if run_id in leftovers] == []


def answers(result: SandboxResult) -> dict[str, object]:
    shown = result.log.decode("utf-8", "replace")
    assert result.outcome is Outcome.COMPLETED, (result.diagnostics, shown)
    found: dict[str, object] = json.loads(result.files["predictions.jsonl"])
    return found


ORDINARY_PROGRAM = """
import asyncio, json, multiprocessing as mp, os, socket, subprocess, sys, tempfile, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import shared_memory
import numpy as np

def square(x):
    return x * x

async def echo():
    async def serve(reader, writer):
        writer.write(await reader.read(5)); await writer.drain(); writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello"); await writer.drain()
    answer = await reader.read(); writer.close(); server.close()
    return answer.decode()

if __name__ == "__main__":
    found = {}
    found["matrix"] = float((np.ones((200, 200)) @ np.ones((200, 200))).sum())
    with mp.Pool(2) as pool:
        found["pool"] = pool.map(square, range(4))
    with ProcessPoolExecutor(2) as executor:
        found["executor"] = list(executor.map(square, range(3)))
    with ThreadPoolExecutor(8) as executor:
        found["threads"] = sum(executor.map(square, range(10)))
    block = shared_memory.SharedMemory(create=True, size=200 * 2**20)
    block.buf[-1] = 7
    found["shared"] = block.buf[-1]
    block.close(); block.unlink()
    found["child"] = subprocess.run(
        [sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    found["loopback"] = asyncio.run(echo())
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"x" * 1000); file.flush()
        found["tmp"] = os.path.dirname(file.name)
    found["uid"] = os.getuid()
    found["home"] = os.path.expanduser("~")
    found["affinity"] = sorted(os.sched_getaffinity(0))
    found["omp"] = os.environ["OMP_NUM_THREADS"]
    found["clips"] = sorted(os.listdir("/input/keypoints"))
    with open("/output/predictions.jsonl", "w") as out:
        json.dump(found, out)
"""


def test_an_ordinary_program_finds_all_it_needs(sandbox: Sandbox) -> None:
    result = sandbox.run(ORDINARY_PROGRAM)
    assert answers(result) == {
        "matrix": 8_000_000.0,
        "pool": [0, 1, 4, 9],
        "executor": [0, 1, 4],
        "threads": 285,
        "shared": 7,
        "child": "42",
        "loopback": "hello",
        "tmp": "/tmp",
        "uid": 65532,
        "home": "/tmp",
        "affinity": [0, 1],
        "omp": "2",
        "clips": ["0001.npy"],
    }
    assert result.diagnostics == ()
    assert result.effective["profile_sha256"] == CERTIFIED.sha256()


ESCAPES = """
import errno, json, os, socket
found = {}
def attempt(name, act):
    try:
        act(); found[name] = "allowed"
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno, str(error.errno))
attempt("tcp", lambda: socket.create_connection(("192.0.2.1", 80), 5))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)))
attempt("dns", lambda: socket.getaddrinfo("example.org", 80))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("alg", lambda: socket.socket(38, 5))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("root", lambda: open("/x", "w"))
attempt("etc", lambda: open("/etc/x", "w"))
attempt("input", lambda: open("/input/x", "w"))
attempt("input file", lambda: open("/input/exam.json", "a"))
attempt("chmod input", lambda: os.chmod("/input/exam.json", 0o777))
attempt("setuid", lambda: os.setuid(0))
attempt("device", lambda: os.mknod("/tmp/dev", 0o20666, os.makedev(1, 3)))
attempt("xattr", lambda: os.setxattr("/output", "user.x", b"x"))
with open("/output/predictions.jsonl", "w") as out:
    json.dump(found, out)
"""


def test_no_way_leads_out(sandbox: Sandbox) -> None:
    found = answers(sandbox.run(ESCAPES))
    assert found.pop("dns") != "allowed"
    assert found == {
        "tcp": "ENETUNREACH",
        "udp": "ENETUNREACH",
        "vsock": "EAFNOSUPPORT",
        "alg": "EAFNOSUPPORT",
        "raw": "EPERM",
        "root": "EROFS",
        "etc": "EROFS",
        "input": "EROFS",
        "input file": "EACCES",
        "chmod input": "EROFS",
        "setuid": "EPERM",
        "device": "EPERM",
        "xattr": "EPERM",
    }


def test_the_strict_profile_has_local_sockets_only_and_no_shared_memory(sandbox: Sandbox) -> None:
    source = """
import json, os, socket
found = {"shm": os.path.exists("/dev/shm"), "unix": bool(socket.socketpair())}
try:
    socket.socket(socket.AF_INET)
except OSError as error:
    found["inet"] = error.errno
with open("/output/predictions.jsonl", "w") as out:
    json.dump(found, out)
"""
    result = sandbox.run(source, profile=load_profile("strict"))
    assert answers(result) == {"shm": False, "unix": True, "inet": 97}


SMALL = CERTIFIED.model_copy(
    update={"memory_bytes": 128 * 2**20, "pids": 64, "deadline_s": 20, "output_bytes": 2**20}
)


def test_memory_beyond_the_limit_is_out_of_memory(sandbox: Sandbox) -> None:
    result = sandbox.run("x = bytearray(300 * 2**20)", profile=SMALL)
    assert result.outcome is Outcome.OUT_OF_MEMORY
    assert Diagnostic.MEMORY_LIMIT in result.diagnostics
    assert result.facts.exit_code == 137


def test_a_killed_child_is_out_of_memory_though_the_parent_exits_with_zero(
    sandbox: Sandbox,
) -> None:
    source = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "x = bytearray(300 * 2**20)"])
open("/output/predictions.jsonl", "w").write("{}")
"""
    result = sandbox.run(source, profile=SMALL)
    assert result.facts.exit_code == 0
    assert result.outcome is Outcome.OUT_OF_MEMORY
    assert result.files == {"predictions.jsonl": b"{}"}


def test_a_program_that_ignores_sigterm_is_killed_at_the_deadline(sandbox: Sandbox) -> None:
    source = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("/output/predictions.jsonl", "w").write("{}")
time.sleep(600)
"""
    profile = SMALL.model_copy(update={"deadline_s": 2})
    result = sandbox.run(source, profile=profile)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.diagnostics == (Diagnostic.KILLED_AT_DEADLINE,)
    assert 2 <= result.elapsed_s < 6
    assert result.usage.processes is not None
    assert result.files == {"predictions.jsonl": b"{}"}


def test_a_fork_bomb_meets_the_process_limit(sandbox: Sandbox) -> None:
    source = """
import os, time
children = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        children += 1
except BlockingIOError:
    open("/output/predictions.jsonl", "w").write(str(children))
    os._exit(3)
"""
    result = sandbox.run(source, profile=SMALL)
    assert result.outcome is Outcome.NONZERO_EXIT
    assert Diagnostic.EXIT_FAILURE in result.diagnostics
    assert 40 < int(result.files["predictions.jsonl"]) < 64


def test_a_flood_of_log_is_capped(sandbox: Sandbox) -> None:
    source = """
import os
line = b"y" * 2**20
for _ in range(60):
    os.write(1, line)
"""
    result = sandbox.run(source)
    assert result.outcome is Outcome.NO_PREDICTIONS
    assert 0 < len(result.log) <= CERTIFIED.log_bytes


@pytest.mark.parametrize(
    ("source", "outcome", "diagnostic"),
    [
        ('os.symlink("/etc/passwd", "predictions.jsonl")', "output-limit", "output-kind"),
        ('open("a", "w"); os.link("a", "predictions.jsonl")', "output-limit", "output-kind"),
        ('os.mkfifo("predictions.jsonl")', "output-limit", "output-kind"),
        ('os.makedirs("predictions.jsonl/" + "/".join("d" * 40))', "output-limit", "output-kind"),
        ('open("p", "w").truncate(900 * 2**20)', "output-limit", "output-too-large"),
        ('open("bad\\nname", "w")', "output-limit", "output-name"),
        ('open(b"bad\\xff", "w")', "output-limit", "output-name"),
        ('open("\\x1b[2J", "w")', "output-limit", "output-name"),
        ('[open(f"{i}", "w").close() for i in range(3000)]', "output-limit", "output-too-many"),
        ('open("other.txt", "w").write("x")', "no-predictions", "predictions-missing"),
        ("pass", "no-predictions", "output-empty"),
        ("sys.exit(3)", "nonzero-exit", "exit-failure"),
        ("os.abort()", "nonzero-exit", "exit-on-signal"),
        ("open('p', 'wb').write(bytes(200 * 2**20))", "nonzero-exit", "exit-failure"),
    ],
)
def test_hostile_output_has_one_outcome(
    sandbox: Sandbox, source: str, outcome: str, diagnostic: str
) -> None:
    result = sandbox.run(f'import os, sys\nos.chdir("/output")\n{source}\n')
    assert (result.outcome, diagnostic in result.diagnostics) == (outcome, True), (
        result.diagnostics,
        result.log[-500:],
    )


def test_a_terabyte_of_nothing_is_stopped_in_the_container(sandbox: Sandbox) -> None:
    result = sandbox.run('open("/output/predictions.jsonl", "w").truncate(2**40)')
    assert result.outcome is Outcome.NONZERO_EXIT
    assert b"File too large" in result.log
