"""Entrants whose output means harm: kinds, names, sizes and predictions."""

from __future__ import annotations

from manifests.outcomes import Diagnostic, Outcome
from tests.support.hostile_image import HostileImage


def _output(
    name: str, source: str, diagnostic: Diagnostic, outcome: Outcome = Outcome.OUTPUT_LIMIT
) -> HostileImage:
    return HostileImage(
        name=name,
        source=f'os.chdir("/output")\n{source}\n',
        outcome=outcome,
        diagnostics=(diagnostic,),
    )


OUTPUTS = (
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
