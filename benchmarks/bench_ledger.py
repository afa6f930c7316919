"""How fast a run is reserved and a ledger is audited, as the ledger grows to 10,000 runs.

Each row compares with something measured in the same run: a reservation and a proof with the same
in a ledger of a tenth, an audit with its share of the largest one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from manifests.statements import QuotaRule
from orchestrator.ledger.rules.log_audit import audit_log
from orchestrator.ledger.rules.quota import decide_reservation
from orchestrator.ledger.sql.sql_store import open_sql_ledger
from orchestrator.ledger.stored_ledger import StoredLedger
from tests.support.synthetic_ledger import EDITION, TEAM, create_synthetic_ledger, run_reserved

RUNS = 10_000
RESERVE_BOUND_S = 0.1
AUDIT_BOUND_S = 60.0
AUDIT_BOUND_BYTES = 500_000_000
SIZES = (1_000, 3_000, RUNS)


def measure() -> list[dict[str, object]]:
    """Return one row a promise; `holds` is the promise kept on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {runs: Path(folder, f"{runs}.sqlite") for runs in SIZES}
        ledgers = {runs: create_synthetic_ledger(path, runs=runs) for runs, path in paths.items()}
        audits = {runs: _audit_apart(path) for runs, path in paths.items()}
        return [
            _reservation_row(ledgers[RUNS], ledgers[SIZES[0]]),
            _proof_row(ledgers[RUNS], ledgers[SIZES[0]]),
            *(_audit_row(runs, audits) for runs in SIZES),
        ]


def _reservation_row(large: StoredLedger, small: StoredLedger) -> dict[str, object]:
    ours = max(_time(partial(_reserve, large, number)) for number in range(3))
    peer = max(_time(partial(_reserve, small, number)) for number in range(3))
    return _row(
        f"reserve a run in a ledger of {RUNS} runs (slowest of 3)",
        ours,
        (f"the same in a ledger of {SIZES[0]} runs", peer),
        f"< {RESERVE_BOUND_S} s",
        holds=ours < RESERVE_BOUND_S,
    )


def _proof_row(large: StoredLedger, small: StoredLedger) -> dict[str, object]:
    ours, peer = (
        statistics.median(_time(partial(ledger.inclusion_proof, 777)) for _ in range(20))
        for ledger in (large, small)
    )
    return _row(
        f"inclusion proof in a ledger of {RUNS} runs",
        ours,
        (f"the same in a ledger of {SIZES[0]} runs", peer),
        "< 3 × for 10 × the runs",
        holds=ours < 3 * peer,
    )


def _audit_row(runs: int, audits: dict[int, tuple[float, int]]) -> dict[str, object]:
    (ours, peak_bytes), (largest, _) = audits[runs], audits[RUNS]
    share = largest * runs / RUNS
    linear = 0.4 < ours / share < 2.5  # quadratic work would show 0.1 at a tenth
    within = ours < AUDIT_BOUND_S * runs / RUNS + 5 and peak_bytes < AUDIT_BOUND_BYTES
    return _row(
        f"audit a ledger of {runs} runs ({peak_bytes / 1e6:.0f} MB)",
        ours,
        (f"its share of the audit of {RUNS} runs", share),
        f"linear; {RUNS} runs < {AUDIT_BOUND_S:.0f} s and < {AUDIT_BOUND_BYTES / 1e6:.0f} MB",
        holds=linear and within,
    )


def _row(
    work: str, ours_s: float, peer: tuple[str, float], bound: str, *, holds: bool
) -> dict[str, object]:
    name, peer_s = peer
    return {
        "work": work,
        "ours_s": ours_s,
        "peer": name,
        "peer_s": peer_s,
        "ratio": ours_s / peer_s,
        "bound": bound,
        "holds": holds,
    }


def _time(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def _reserve(ledger: StoredLedger, number: int) -> None:
    run_id = f"{RUNS + number:016x}"
    ledger.decide(
        lambda history: decide_reservation(
            history,
            quota=QuotaRule(),
            edition=EDITION,
            team=TEAM,
            make=lambda attempt: run_reserved(run_id, attempt),
        ),
        edition=EDITION,
        team=TEAM,
    )


def _audit_apart(path: Path) -> tuple[float, int]:
    """Audit in a process of its own; return seconds and its peak memory in bytes."""
    command = [sys.executable, "-m", "benchmarks.bench_ledger", str(path)]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return answer["seconds"], answer["peak_bytes"]


def _audit_here(path: Path) -> None:
    ledger = open_sql_ledger(path)
    begin = time.perf_counter()
    audit = audit_log(ledger.stored_leaves(), checkpoint=ledger.checkpoint())
    seconds = time.perf_counter() - begin
    if audit.faults:
        sys.exit(audit.faults[0].text)
    # Not ru_maxrss: a child of a large process inherits that process's peak.
    (peak,) = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    peak_bytes = int(peak.split()[1]) * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes}))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _audit_here(Path(sys.argv[1]))
    else:
        print(json.dumps(measure(), indent=2))
