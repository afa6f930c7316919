"""Entrants that mean harm, as data: what each does, and how its run has to end.

Where the sandbox has to stop an act, the program checks that it was stopped, with which error, and
then answers honestly: `completed` says that the sandbox held, exit code 7 that something was let
through.
"""

from __future__ import annotations

import io
import json
import tarfile
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.adapters.docker import python_installation
from orchestrator.adapters.docker.python_image import BuiltImage, build_python_image, python_program
from orchestrator.core.images.image_archive import ImageSettings, TarEntry
from orchestrator.core.sandbox.container_options import RUN_LABEL
from sandbox_profiles.profile import SandboxProfile, load_profile

HERE = f"linux/{python_installation.architecture()}"
ELSEWHERE = "linux/arm64" if HERE == "linux/amd64" else "linux/amd64"
SOMEBODY_ELSE = "fedcba9876543210"
"""The id of a run that is none of ours."""

LET_THROUGH = 7

_MIB = 2**20

SMALL_PROFILE: SandboxProfile = load_profile("certified").model_copy(
    update={
        "name": "small",
        "memory_bytes": 384 * _MIB,
        "cpus": 1,
        "cpuset": "0",
        "pids": 64,
        "deadline_s": 90,
        "tmp_bytes": 16 * _MIB,
        "shm_bytes": 16 * _MIB,
    }
)
"""Little of everything, and time enough for a busy machine."""

HASTY_PROFILE: SandboxProfile = SMALL_PROFILE.model_copy(update={"name": "hasty", "deadline_s": 4})
"""For programs that never end by themselves."""

PRELUDE = f"""
import errno, json, os, signal, socket, struct, subprocess, sys, time

def answer(clips=None):
    exam = json.load(open("/input/exam.json"))
    gloss = open("/input/vocabulary.txt").readline().strip()
    with open("/output/predictions.jsonl", "w") as out:
        for clip in exam["clips"]:
            known = json.load(open(f"/input/annotations/{{clip}}.json"))
            line = {{"clip_id": clip, "signs": [gloss] * len(known["segments"])}}
            out.write(json.dumps(line) + "\\n")

def stopped(act, *errors):
    try:
        act()
    except OSError as error:
        name = errno.errorcode.get(error.errno, str(error.errno))
        if name in errors or (not errors and isinstance(error, socket.gaierror)):
            return
        print("stopped, but by", error, flush=True)
    sys.exit({LET_THROUGH})
"""
"""What every program of this list begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileImage:
    """One entrant. Either it runs and ends in `outcome`, or it is `refused` with these words."""

    name: str
    source: str
    outcome: Outcome = Outcome.COMPLETED
    diagnostics: tuple[Diagnostic, ...] = ()
    """All that have to be told; more may be."""
    refused: str | None = None
    profile: SandboxProfile = SMALL_PROFILE
    settings: ImageSettings = field(default_factory=ImageSettings)
    entries: tuple[TarEntry, ...] = ()
    platform: str = HERE
    repo_tags: tuple[str, ...] | None = None
    """Tags that the archive claims."""

    def build(self, destination: Path, *, cache: Path) -> BuiltImage:
        """Write the image as a docker-archive; every call makes another image."""
        labels = dict(self.settings.labels) | {"test": uuid.uuid4().hex}
        image = python_program(
            PRELUDE + self.source,
            entries=self.entries,
            settings=replace(self.settings, labels=labels),
        )
        built = build_python_image(replace(image, platform=self.platform), destination, cache=cache)
        if self.repo_tags is not None:
            claim_tags(destination, self.repo_tags)
        return built


def claim_tags(archive: Path, tags: tuple[str, ...]) -> None:
    """Append a manifest.json that claims `tags`; the older one is taken out."""
    with tarfile.open(archive) as tar:
        old = tar.extractfile("manifest.json")
        assert old is not None
        manifest = json.loads(old.read())
        # the manifest is the last member: what follows its header is written anew
        offset = tar.getmember("manifest.json").offset
    manifest[0]["RepoTags"] = list(tags)
    data = json.dumps(manifest).encode()
    member = tarfile.TarInfo("manifest.json")
    member.size = len(data)
    with archive.open("r+b") as file:
        file.truncate(offset)
        file.seek(offset)
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.addfile(member, io.BytesIO(data))


_NETWORK = (
    HostileImage(
        name="network-tcp",
        source="""
stopped(lambda: socket.create_connection(("192.0.2.1", 80), 3), "ENETUNREACH")
stopped(lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80)), "EADDRNOTAVAIL", "ENETUNREACH")
answer()
""",
    ),
    HostileImage(
        name="network-udp",
        source="""
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stopped(lambda: udp.sendto(b"clip", ("192.0.2.1", 9999)), "ENETUNREACH")
answer()
""",
    ),
    HostileImage(
        name="network-dns",
        source="""
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
query = struct.pack(">6H", 1, 256, 1, 0, 0, 0) + b"\\4clip\\7example\\0" + struct.pack(">2H", 1, 1)
stopped(lambda: udp.sendto(query, ("192.0.2.53", 53)), "ENETUNREACH")
stopped(lambda: socket.getaddrinfo("clip.example", 80))
answer()
""",
    ),
    HostileImage(
        name="socket-vsock",
        source='stopped(lambda: socket.socket(40, socket.SOCK_STREAM), "EAFNOSUPPORT")\nanswer()\n',
    ),
    HostileImage(
        name="socket-alg",
        source='stopped(lambda: socket.socket(38, socket.SOCK_SEQPACKET), "EAFNOSUPPORT")\nanswer()\n',
    ),
)

_WRITES = (
    HostileImage(
        name="write-root",
        source="""
for path in ("/clip", "/etc/clip", "/app/main.py", "/usr/local/bin/clip"):
    stopped(lambda: open(path, "w"), "EROFS", "EACCES")
stopped(lambda: open("/clip", "w"), "EROFS")
answer()
""",
    ),
    HostileImage(
        name="write-input",
        source="""
stopped(lambda: open("/input/clip", "w"), "EROFS")
stopped(lambda: open("/input/exam.json", "a"), "EROFS", "EACCES")
stopped(lambda: os.chmod("/input/exam.json", 0o777), "EROFS")
stopped(lambda: os.unlink("/input/exam.json"), "EROFS")
stopped(lambda: os.rename("/input/exam.json", "/input/x"), "EROFS")
answer()
""",
    ),
)

_GREED = (
    HostileImage(
        name="fork-bomb",
        profile=HASTY_PROFILE,
        outcome=Outcome.TIMED_OUT,
        diagnostics=(Diagnostic.KILLED_AT_DEADLINE,),
        source="""
answer()
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    ),
    HostileImage(
        name="memory-bomb",
        outcome=Outcome.OUT_OF_MEMORY,
        diagnostics=(Diagnostic.MEMORY_LIMIT,),
        source="""
answer()
blocks = []
while True:
    blocks.append(b"x" * 2**24)
""",
    ),
    HostileImage(
        name="memory-bomb-in-a-child",
        outcome=Outcome.OUT_OF_MEMORY,
        diagnostics=(Diagnostic.MEMORY_LIMIT,),
        source="""
answer()
child = "blocks = []\\nwhile True: blocks.append(b'x' * 2**24)"
assert subprocess.run([sys.executable, "-c", child]).returncode == -9
sys.exit(0)
""",
    ),
    HostileImage(
        name="sigterm-ignored",
        profile=HASTY_PROFILE,
        outcome=Outcome.TIMED_OUT,
        diagnostics=(Diagnostic.KILLED_AT_DEADLINE,),
        source="""
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
answer()
while True:
    time.sleep(600)
""",
    ),
    HostileImage(
        name="log-flood",
        source="""
answer()
lines = (b"clip " * 199 + b"clip\\n") * 1_000
for _ in range(200):
    left = memoryview(lines)
    while left:
        left = left[os.write(1, left):]
""",
    ),
    HostileImage(
        name="log-line",
        source="""
answer()
piece = b"x" * 10**6
for _ in range(200):
    left = memoryview(piece)
    while left:
        left = left[os.write(2, left):]
""",
    ),
)

VOLUME_MARK = "a-clip-that-leaked-into-a-volume"
VOLUME_SPELLINGS = ("/data", "/slash/", "/up/../dots", "//double", "/./here/.")

_VOLUMES = (
    *(
        HostileImage(
            name=f"volume-{number}",
            settings=ImageSettings(volumes=(spelling,)),
            source=f"""
place = os.path.normpath({spelling!r})
stopped(lambda: open(os.path.join(place, "clip"), "w").write({VOLUME_MARK!r}), "EROFS", "EACCES")
answer()
""",
        )
        for number, spelling in enumerate(VOLUME_SPELLINGS, start=1)
    ),
    HostileImage(
        name="volume-output",
        settings=ImageSettings(volumes=("/output", "/input/", "/tmp")),
        source='stopped(lambda: open("/input/clip", "w"), "EROFS")\nanswer()\n',
    ),
    HostileImage(
        name="volume-root",
        settings=ImageSettings(volumes=("/",)),
        refused='VOLUME "/"',
        source="answer()\n",
    ),
    HostileImage(
        name="volume-proc",
        settings=ImageSettings(volumes=("/data/../proc",)),
        refused="belongs to the engine",
        source="answer()\n",
    ),
    HostileImage(
        name="volume-in-output",
        settings=ImageSettings(volumes=("/output/pose",)),
        refused="belongs to the sandbox",
        source="answer()\n",
    ),
)


def _output(
    name: str, source: str, diagnostic: Diagnostic, outcome: Outcome = Outcome.OUTPUT_LIMIT
) -> HostileImage:
    return HostileImage(
        name=name,
        source=f'os.chdir("/output")\n{source}\n',
        outcome=outcome,
        diagnostics=(diagnostic,),
    )


_OUTPUTS = (
    _output(
        "output-symlink", 'os.symlink("/etc/passwd", "predictions.jsonl")', Diagnostic.OUTPUT_KIND
    ),
    _output("output-symlink-root", 'answer()\nos.symlink("/", "a")', Diagnostic.OUTPUT_KIND),
    _output(
        "output-hard-link",
        'answer()\nos.link("predictions.jsonl", "again.jsonl")',
        Diagnostic.OUTPUT_KIND,
    ),
    _output("output-fifo", 'os.mkfifo("predictions.jsonl")', Diagnostic.OUTPUT_KIND),
    _output("output-directory", 'answer()\nos.makedirs("a/b/c")', Diagnostic.OUTPUT_KIND),
    _output(
        "output-sparse",
        """
file = open("predictions.jsonl", "wb")
stopped(lambda: file.truncate(2**40), "EFBIG")
file.truncate(2**30)
""",
        Diagnostic.OUTPUT_TOO_LARGE,
    ),
    _output(
        "output-10000-files",
        """
answer()
made = 0
try:
    for made in range(10_000):
        open(f"{made}.txt", "w").close()
except OSError as error:
    assert error.errno == errno.ENOSPC
assert 2048 < made < 4096
""",
        Diagnostic.OUTPUT_TOO_MANY,
    ),
    _output("output-name-newline", 'open("a\\nb", "w")', Diagnostic.OUTPUT_NAME),
    _output("output-name-escape", 'open("\\x1b[2J", "w")', Diagnostic.OUTPUT_NAME),
    _output("output-name-bytes", 'open(b"a\\xff", "w")', Diagnostic.OUTPUT_NAME),
    _output("output-name-long", 'open("a" * 200, "w")', Diagnostic.OUTPUT_NAME),
    _output(
        "output-full",
        """
try:
    with open("predictions.jsonl", "wb") as file:
        while True:
            file.write(b" " * 2**20)
except OSError as error:
    assert error.errno == errno.ENOSPC
""",
        Diagnostic.OUTPUT_TOO_LARGE,
    ),
    _output(
        "predictions-100-mb",
        """
line = json.dumps({"clip_id": "0001", "signs": ["YOU"]}).encode() + b"\\n"
with open("predictions.jsonl", "wb") as file:
    for _ in range(100):
        file.write(line * (10**6 // len(line)))
""",
        Diagnostic.OUTPUT_TOO_LARGE,
    ),
    _output(
        "predictions-60-mb",
        """
line = json.dumps({"clip_id": "0001", "signs": ["YOU"]}).encode() + b"\\n"
with open("predictions.jsonl", "wb") as file:
    for _ in range(60):
        file.write(line * (10**6 // len(line)))
""",
        Diagnostic.PREDICTIONS_FORMAT,
        Outcome.INVALID_PREDICTIONS,
    ),
    _output(
        "predictions-deep",
        """
with open("predictions.jsonl", "w") as file:
    file.write('{"clip_id": "0001", "signs": ' + "[" * 10**6 + "]" * 10**6 + "}")
""",
        Diagnostic.PREDICTIONS_FORMAT,
        Outcome.INVALID_PREDICTIONS,
    ),
    _output(
        "predictions-unknown-clip",
        """
answer()
with open("predictions.jsonl", "a") as file:
    file.write('{"clip_id": "../../etc/passwd", "signs": []}')
""",
        Diagnostic.PREDICTIONS_FORMAT,
        Outcome.INVALID_PREDICTIONS,
    ),
    _output("predictions-none", "pass", Diagnostic.OUTPUT_EMPTY, Outcome.NO_PREDICTIONS),
)

_SETUID = python_installation.interpreter().read_bytes()

_CONFIGURATION = (
    HostileImage(
        name="setuid",
        entries=(TarEntry(path="/app/setuid", data=_SETUID, mode=0o6755),),
        source="""
assert os.stat("/app/setuid").st_mode & 0o6000 == 0o6000
ids = "import os; print(*os.getresuid(), *os.getresgid())"
child = subprocess.run(
    ["/app/setuid", "-c", ids], env={"PYTHONHOME": "/usr/local"}, capture_output=True, text=True
)
assert child.returncode == 0, child.stderr
if child.stdout.split() != ["65532"] * 6:
    sys.exit(7)
stopped(lambda: os.setuid(0), "EPERM")
answer()
""",
    ),
    HostileImage(
        name="user-root",
        settings=ImageSettings(user="0:0"),
        source="""
if (os.getuid(), os.getgid(), os.getgroups()) != (65532, 65532, os.getgroups()) or 0 in os.getgroups():
    sys.exit(7)
answer()
""",
    ),
    HostileImage(
        name="healthcheck",
        settings=ImageSettings(
            healthcheck=("CMD", "/usr/local/bin/python3", "-c", "open('/output/health', 'w')")
        ),
        source="""
time.sleep(2.5)
if os.path.exists("/output/health"):
    sys.exit(7)
answer()
""",
    ),
    HostileImage(
        name="stopsignal",
        profile=HASTY_PROFILE,
        settings=ImageSettings(stop_signal="SIGCONT"),
        outcome=Outcome.TIMED_OUT,
        diagnostics=(Diagnostic.KILLED_AT_DEADLINE,),
        source="answer()\ntime.sleep(600)\n",
    ),
    HostileImage(
        name="ld-preload",
        settings=ImageSettings(
            environment={
                "LD_PRELOAD": "/app/evil.so",
                "LD_AUDIT": "/app/evil.so",
                "GCONV_PATH": "/app",
                "HOME": "/root",
                "TZ": "Antarctica/Troll",
            }
        ),
        entries=(TarEntry(path="/app/evil.so", data=b"no library at all", mode=0o755),),
        source="""
if {"LD_PRELOAD", "LD_AUDIT", "GCONV_PATH"} & set(os.environ):
    sys.exit(7)
if (os.environ["HOME"], os.environ["TZ"]) != ("/tmp", "UTC"):
    sys.exit(7)
answer()
""",
    ),
    HostileImage(
        name="wrong-platform",
        platform=ELSEWHERE,
        refused=ELSEWHERE,
        source="answer()\n",
    ),
    HostileImage(
        name="tag-claim",
        repo_tags=("piste-holder:latest", "debian:12"),
        source="answer()\n",
    ),
    HostileImage(
        name="label-spoof",
        settings=ImageSettings(labels={RUN_LABEL: SOMEBODY_ELSE, "piste.holder": "1"}),
        source="answer()\n",
    ),
    HostileImage(
        name="entrypoint-missing",
        settings=ImageSettings(entrypoint=("/app/nothing",)),
        outcome=Outcome.NONZERO_EXIT,
        source="answer()\n",
    ),
    HostileImage(
        name="kills-itself",
        outcome=Outcome.NONZERO_EXIT,
        diagnostics=(Diagnostic.EXIT_ON_SIGNAL,),
        source="answer()\nos.kill(os.getpid(), signal.SIGKILL)\n",
    ),
)

HOSTILE: tuple[HostileImage, ...] = (
    *_NETWORK,
    *_WRITES,
    *_GREED,
    *_VOLUMES,
    *_OUTPUTS,
    *_CONFIGURATION,
)
"""Every entrant of this list, each with its own name."""

HONEST = HostileImage(name="honest", source="answer()\n")
"""No harm at all: what the others are compared with."""
