"""Entrants that mean harm, as data: what each does, and how its run has to end."""

from __future__ import annotations

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.images.python import python_installation
from orchestrator.images.rules.image_archive import ImageSettings, TarEntry
from orchestrator.sandbox.rules.container_options import RUN_LABEL
from tests.support.hostile_image import (
    ELSEWHERE,
    HASTY_PROFILE,
    SOMEBODY_ELSE,
    HostileImage,
)
from tests.support.hostile_outputs import OUTPUTS

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
    *OUTPUTS,
    *_CONFIGURATION,
)
"""Every entrant of this list, each with its own name."""

HONEST = HostileImage(name="honest", source="answer()\n")
"""No harm at all: what the others are compared with."""
