"""The recognition scorer stands alone: nothing heavy, nothing of the orchestrator."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys
from scorers.recognition import ClipLabels, Position, RecognitionParameters, score
card = score(
    [ClipLabels("1", "ALPHA", ("YOU", "I"))],
    {"1": (Position(("YOU",), 0.9), Position(("I",), 0.8))},
    ("YOU", "I"),
    RecognitionParameters(resamples=10),
)
assert card.as_document()["public"]["macro_f1"] == 1.0
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_a_card_needs_neither_the_orchestrator_nor_heavy_libraries() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROBE], check=True, capture_output=True, text=True, timeout=60
    )
    loaded = set(found.stdout.split())
    assert {"scorers", "manifests", "numpy", "rapidfuzz"} <= loaded
    assert not loaded & {"orchestrator", "docker", "sqlalchemy", "scipy", "sklearn", "sacrebleu"}
