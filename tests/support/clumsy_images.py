"""Honest entrants with one mistake each, as data; tests/support/clumsy_image.py says how to read them."""

from __future__ import annotations

from manifests.outcomes import Outcome
from orchestrator.entrants.rules.findings import Cause
from orchestrator.images.python.python_image import (
    MAIN,
    PYTHON,
)
from orchestrator.images.rules.image_archive import EntryKind, ImageSettings, TarEntry
from tests.support.clumsy_image import ENTRANT, PASSWD, ClumsyImage, fails, invalid, works
from tests.support.hostile_image import ELSEWHERE, HASTY_PROFILE

_NETWORK = (
    fails(
        "downloads-weights",
        Cause.NETWORK,
        """
import urllib.request
urllib.request.urlopen("http://example.org/weights.bin", timeout=5)
answer()
""",
        remedy="when it is built",
    ),
    fails(
        "asks-the-model-hub",
        Cause.NETWORK,
        """
import http.client
try:
    http.client.HTTPSConnection("huggingface.co", timeout=5).request("GET", "/api/models/x")
except OSError as error:
    raise OSError(
        "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find "
        "them in the cached files."
    ) from error
""",
    ),
    fails(
        "waits-for-a-server",
        Cause.NETWORK,
        """
import socket
while True:
    try:
        socket.create_connection(("192.0.2.7", 5432), 1)
    except OSError:
        time.sleep(0.2)
""",
        outcome=Outcome.TIMED_OUT,
        profile=HASTY_PROFILE,
    ),
    ClumsyImage(
        name="reports-telemetry-if-it-can",
        cause=Cause.NETWORK,
        source="""
import socket
try:
    socket.create_connection(("192.0.2.7", 443), 1)
except OSError:
    pass
answer()
time.sleep(0.5)
""",
    ),
)

_WRITING = (
    fails(
        "logs-beside-itself",
        Cause.WRITES_OUTSIDE,
        """
open("/app/run.log", "w").write("begin")
answer()
""",
        remedy="/output",
    ),
    fails(
        "caches-in-roots-home",
        Cause.HOME_OR_CACHE,
        """
os.makedirs("/root/.cache/model", exist_ok=True)
open("/root/.cache/model/index", "w").write("x")
answer()
""",
        entries=(TarEntry(path="/root", kind=EntryKind.DIRECTORY, mode=0o700),),
        remedy="XDG_CACHE_HOME",
    ),
    fails(
        "caches-in-a-fixed-home",
        Cause.HOME_OR_CACHE,
        """
os.makedirs("/home/user/.cache/torch")
answer()
""",
        entries=(TarEntry(path="/home/user", kind=EntryKind.DIRECTORY, mode=0o777),),
    ),
    fails(
        "answers-in-the-working-folder",
        Cause.OUTPUT_ELSEWHERE,
        """
write(lines(), "predictions.jsonl")
""",
        settings=ImageSettings(working_directory="/app"),
        remedy="/output/predictions.jsonl",
    ),
    fails(
        "answers-under-another-name",
        Cause.OUTPUT_ELSEWHERE,
        """
write(lines(), "/output/results.json")
""",
        outcome=Outcome.NO_PREDICTIONS,
    ),
    fails(
        "answers-in-another-folder",
        Cause.OUTPUT_ELSEWHERE,
        """
write(lines(), "/tmp/predictions.jsonl")
""",
        outcome=Outcome.NO_PREDICTIONS,
    ),
    fails(
        "answers-in-a-subfolder",
        Cause.OUTPUT_NOT_ACCEPTED,
        """
os.mkdir("/output/run1")
write(lines(), "/output/run1/predictions.jsonl")
""",
        outcome=Outcome.OUTPUT_LIMIT,
    ),
    fails(
        "answers-nothing",
        Cause.NO_OUTPUT,
        """
print("0 clips found in /data")
""",
        outcome=Outcome.NO_PREDICTIONS,
    ),
)

_USER = (
    fails(
        "asks-who-it-is",
        Cause.NO_PASSWD_ENTRY,
        """
import pwd
print(pwd.getpwuid(os.getuid()).pw_name)
answer()
""",
        entries=(PASSWD,),
        remedy="/etc/passwd",
    ),
    works(
        "is-in-passwd",
        """
import getpass
assert getpass.getuser() == "entrant"
answer()
""",
        entries=(ENTRANT,),
    ),
    fails(
        "weights-for-root-alone",
        Cause.ROOT_ONLY_FILES,
        """
open("/opt/model/weights.bin", "rb").read()
answer()
""",
        entries=(TarEntry(path="/opt/model/weights.bin", data=b"weights", mode=0o600),),
        remedy="chmod -R a+rX /opt/model",
    ),
    fails(
        "a-folder-for-root-alone",
        Cause.ROOT_ONLY_FILES,
        """
open("/srv/model/weights.bin", "rb").read()
answer()
""",
        entries=(
            TarEntry(path="/srv/model", kind=EntryKind.DIRECTORY, mode=0o700),
            TarEntry(path="/srv/model/weights.bin", data=b"weights"),
        ),
    ),
)

_LIMITS = (
    fails(
        "takes-all-memory",
        Cause.OUT_OF_MEMORY,
        """
held = []
while True:
    held.append(bytearray(b"x") * (8 << 20))
""",
        outcome=Outcome.OUT_OF_MEMORY,
        remedy="one clip at a time",
    ),
    fails(
        "a-worker-takes-all-memory",
        Cause.OUT_OF_MEMORY,
        """
import multiprocessing
def work():
    held = []
    while True:
        held.append(bytearray(b"x") * (8 << 20))
if __name__ == "__main__":
    worker = multiprocessing.Process(target=work)
    worker.start()
    worker.join()
    answer()
""",
        outcome=Outcome.OUT_OF_MEMORY,
    ),
    fails(
        "shares-large-arrays",
        Cause.SHARED_MEMORY,
        """
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=64 << 20)
block.buf[:] = bytes(64 << 20)
answer()
""",
        remedy="num_workers=0",
    ),
    fails(
        "starts-a-thread-per-clip-and-frame",
        Cause.PROCESS_LIMIT,
        """
import threading
for number in range(500):
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
answer()
""",
        remedy="OMP_NUM_THREADS",
    ),
    fails(
        "opens-every-file-at-once",
        Cause.OPEN_FILES,
        """
held = [open("/input/exam.json") for _ in range(5000)]
answer()
""",
    ),
    fails(
        "unpacks-its-model-into-tmp",
        Cause.TMP_FULL,
        """
with open("/tmp/model.bin", "wb") as out:
    for _ in range(64):
        out.write(bytes(1 << 20))
answer()
""",
        remedy="when the image is built",
    ),
    fails(
        "keeps-features-in-output",
        Cause.OUTPUT_FULL,
        """
for number in range(40):
    with open(f"/output/features{number}.bin", "wb") as out:
        for _ in range(4):
            out.write(bytes(1 << 20))
answer()
""",
    ),
    fails(
        "writes-one-huge-file",
        Cause.FILE_TOO_LARGE,
        """
with open("/tmp/features.bin", "wb") as out:
    out.truncate(3 << 30)
answer()
""",
    ),
    fails(
        "is-too-slow",
        Cause.DEADLINE,
        """
for line in lines():
    print("working on", line["clip_id"], flush=True)
    time.sleep(60)
""",
        outcome=Outcome.TIMED_OUT,
        profile=HASTY_PROFILE,
        remedy="clips are done",
    ),
)

_STARTING = (
    ClumsyImage(
        name="built-for-another-processor",
        cause=Cause.WRONG_PLATFORM,
        source="answer()",
        outcome=None,
        platform=ELSEWHERE,
        remedy="--platform",
    ),
    fails(
        "entrypoint-is-missing",
        Cause.ENTRYPOINT_MISSING,
        "answer()",
        settings=ImageSettings(entrypoint=("/app/run.sh",)),
    ),
    fails(
        "entrypoint-is-not-on-the-path",
        Cause.ENTRYPOINT_MISSING,
        "answer()",
        settings=ImageSettings(entrypoint=("predict",)),
    ),
    fails(
        "entrypoint-is-not-executable",
        Cause.ENTRYPOINT_NOT_EXECUTABLE,
        "answer()",
        settings=ImageSettings(entrypoint=("/app/run",)),
        entries=(TarEntry(path="/app/run", data=f"#!{PYTHON}\n".encode(), mode=0o644),),
        remedy="chmod",
    ),
    fails(
        "interpreter-is-missing",
        Cause.INTERPRETER_MISSING,
        "answer()",
        settings=ImageSettings(entrypoint=("/app/run",)),
        entries=(TarEntry(path="/app/run", data=b"#!/usr/bin/ruby\n", mode=0o755),),
    ),
    fails(
        "script-from-windows",
        Cause.INTERPRETER_MISSING,
        "answer()",
        settings=ImageSettings(entrypoint=("/app/run",)),
        entries=(TarEntry(path="/app/run", data=f"#!{PYTHON}\r\n".encode(), mode=0o755),),
        remedy="Unix line ends",
    ),
    fails(
        "script-was-not-copied",
        Cause.ENTRYPOINT_MISSING,
        "answer()",
        settings=ImageSettings(entrypoint=(PYTHON, "/app/predict.py")),
    ),
    fails(
        "expects-arguments",
        Cause.ARGUMENTS_EXPECTED,
        """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", required=True)
parser.parse_args()
answer()
""",
        remedy="CMD",
    ),
    works(
        "gets-its-arguments-from-the-image",
        """
assert sys.argv[1:] == ["--fast"]
answer()
""",
        settings=ImageSettings(entrypoint=(PYTHON, MAIN), command=("--fast",)),
    ),
    fails("forgot-a-module", Cause.MODULE_MISSING, "import torch\nanswer()"),
    fails(
        "expects-a-gpu",
        Cause.GPU_ABSENT,
        """
import ctypes
ctypes.CDLL("libcuda.so.1")
answer()
""",
        remedy="map_location",
    ),
    fails(
        "reads-labels-that-are-not-there",
        Cause.INPUT_NAME,
        """
open("/input/metadata.csv").read()
answer()
""",
        remedy="exam.json",
    ),
    fails("crashes", Cause.CRASH, "import ctypes\nctypes.string_at(0)", remedy="faulthandler"),
    fails("has-a-bug", Cause.PROGRAM_ERROR, "print([][1])"),
)

_ANSWERS = (
    invalid(
        "divides-by-zero-confidence",
        """
found = list(lines())
found[0]["signs"][0] = {"candidates": ["YOU"], "confidence": float("nan")}
write(found)
""",
    ),
    invalid(
        "names-clips-after-files",
        """
write({**line, "clip_id": line["clip_id"] + ".npy"} for line in lines())
""",
    ),
    invalid(
        "answers-once-too-often",
        """
write({**line, "signs": [*line["signs"], "YOU"]} for line in lines())
""",
    ),
    invalid("answers-twice", "found = list(lines())\nwrite(found + found[:1])"),
    invalid(
        "writes-one-array",
        """
json.dump(list(lines()), open("/output/predictions.jsonl", "w"), indent=1)
""",
    ),
    invalid(
        "leaves-out-hard-clips", "write(list(lines())[1:])", cause=Cause.INCOMPLETE_PREDICTIONS
    ),
    ClumsyImage(
        name="draws-lots",
        cause=Cause.NON_DETERMINISTIC,
        source="""
import random
words = [word.strip() for word in open("/input/vocabulary.txt")]
chance = random.SystemRandom()
write({**line, "signs": chance.choices(words, k=len(line["signs"]))} for line in lines())
""",
        repeat=2,
        remedy="seed",
    ),
)

_REAL_SOFTWARE = (
    works("answers-plainly", "answer()"),
    works("answers-alike-when-asked-again", "answer()", repeat=2),
    works(
        "caches-in-its-home",
        """
folder = os.path.expanduser("~/.cache/tool")
os.makedirs(folder)
open(os.path.join(folder, "index"), "w").write("x")
answer()
""",
    ),
    works(
        "maps-compiled-code-from-its-cache",
        """
import mmap
folder = os.environ["NUMBA_CACHE_DIR"]
os.makedirs(folder)
with open(os.path.join(folder, "kernel.so"), "w+b") as file:
    file.write(bytes(4096))
    file.flush()
    mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
answer()
""",
    ),
    works(
        "uses-a-pool",
        """
from multiprocessing import Pool
def work(line):
    return line
if __name__ == "__main__":
    with Pool(2) as pool:
        write(pool.map(work, list(lines())))
""",
    ),
    works(
        "talks-to-itself-over-loopback",
        """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
client.sendall(b"hello")
assert peer.recv(5) == b"hello"
answer()
""",
    ),
    works(
        "reads-cpuinfo",
        """
assert "processor" in open("/proc/cpuinfo").read()
assert len(os.sched_getaffinity(0)) == 1
answer()
""",
    ),
    works(
        "plots-with-matplotlib",
        """
import matplotlib
matplotlib.use("agg")
from matplotlib import pyplot
pyplot.plot([1, 2])
pyplot.savefig("/tmp/figure.png")
answer()
""",
        needs="matplotlib",
    ),
)

CLUMSY: tuple[ClumsyImage, ...] = (
    *_NETWORK,
    *_WRITING,
    *_USER,
    *_LIMITS,
    *_STARTING,
    *_ANSWERS,
    *_REAL_SOFTWARE,
)
