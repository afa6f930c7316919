"""How long `piste verify` takes on a workspace with every run's folder, up to 10,000 runs.

Nothing is left out: each run has its record, predictions, cards, sums, signature and envelope, and
all 26 checks run. Each row compares with its share of the largest one.
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from manifests.digests import sha256_hex
from manifests.dsse import Envelope, Signature, pre_authentication_encoding, render_envelope
from manifests.encoding import canonical_json, parse_json_object, readable_json
from manifests.statements import (
    STATEMENT,
    RunReserved,
    RunScored,
    Statement,
    TeamRegistered,
)
from manifests.sums import render_sums
from orchestrator.keys.signing_port import Signer
from orchestrator.runs.rules.run_files import (
    IN_TOTO_PAYLOAD_TYPE,
    UNLISTED,
    in_toto_statement,
    is_private,
    record_bytes,
)
from orchestrator.runs.rules.run_record import run_history, run_record
from tests.support.synthetic_evidence import EDITION, Scenario, add_run, new_scenario, verify
from tests.support.synthetic_ledger import append_in_bulk

RUNS = 10_000
SIZES = (1_000, 3_000, RUNS)
BOUND_S = 60.0
BOUND_BYTES = 500_000_000
RUNS_OF_A_TEAM = 3


class RunFactory:
    """Copies one real run under other ids: statements and folder, signed anew."""

    def __init__(self, scenario: Scenario) -> None:
        workspace = scenario.open()
        self.root = scenario.root
        self.signer: Signer = workspace.signing.signer("run")
        run_id = add_run(scenario, "template")
        folder = scenario.root / "runs" / run_id
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        for name in ("score.json", "score.private.json"):
            card = parse_json_object(self.files[name], source=name)
            card.pop("provenance")  # it names the run: the copies' cards are all alike
            self.files[name] = readable_json(card)
        self.statements = [
            entry.statement for entry in scenario.open().ledger.entries(run_id=run_id)
        ]
        self.next = scenario.open().ledger.size()
        self.kept = {
            name: self.files[name] for name in ("log.age", "predictions.jsonl", "effective.json")
        }

    def make(self, number: int) -> Iterator[Statement]:
        """Write the folder of run `number` and yield its statements."""
        team = f"team-{number // RUNS_OF_A_TEAM}"
        if number % RUNS_OF_A_TEAM == 0:
            self.next += 1
            yield TeamRegistered(at=self.statements[0].at, team=team)
        statements = [
            self._copied(statement, number, team=team, sequence=self.next + place)
            for place, statement in enumerate(self.statements)
        ]
        self.next += len(statements)
        self._write(statements, k=number % RUNS_OF_A_TEAM + 1)
        yield from statements

    def _copied(self, statement: Statement, number: int, *, team: str, sequence: int) -> Statement:
        changes: dict[str, object] = {"run_id": f"{number:016x}", "team": team}
        if isinstance(statement, RunReserved):
            changes["attempt"] = number % RUNS_OF_A_TEAM + 1
        if isinstance(statement, RunScored):
            changes["public_sha256"] = sha256_hex(self.files["score.json"])
            changes["private_sha256"] = sha256_hex(self.files["score.private.json"])
        copied = statement.model_copy(update={**changes, "sequence": sequence})
        return STATEMENT.validate_python(copied.model_dump())

    def _write(self, statements: list[Statement], *, k: int) -> None:
        record = run_record(run_history(statements), certified_run=k)
        files = {
            **self.kept,
            "run.json": record_bytes(record),
            "score.json": self.files["score.json"],
            "score.private.json": self.files["score.private.json"],
            "run.pub": self.signer.public_key.pem.encode("ascii"),
        }
        private = {name: sha256_hex(data) for name, data in files.items() if is_private(name)}
        files["private.sha256"] = render_sums(private)
        public = {
            name: sha256_hex(data)
            for name, data in files.items()
            if name not in UNLISTED and not is_private(name)
        }
        sums = files["SHA256SUMS"] = render_sums(public)
        files["SHA256SUMS.sig"] = _line(self.signer.sign(sums))
        subjects = public | {"SHA256SUMS": sha256_hex(sums)}
        payload = canonical_json(in_toto_statement(record, subjects, builder="0.1.0"))
        files["run.dsse.json"] = _envelope(payload, self.signer)
        folder = self.root / "runs" / record.run_id
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)


def _line(signature: bytes) -> bytes:
    return base64.b64encode(signature) + b"\n"


def _envelope(payload: bytes, signer: Signer) -> bytes:
    signature = signer.sign(pre_authentication_encoding(IN_TOTO_PAYLOAD_TYPE, payload))
    key_id = signer.public_key.key_id
    return render_envelope(
        Envelope(
            payload=payload,
            payload_type=IN_TOTO_PAYLOAD_TYPE,
            signatures=(Signature(key_id=key_id, signature=signature),),
        )
    )


def make_workspace(root: Path, *, runs: int) -> Path:
    """Write a workspace with `runs` completed runs and all their evidence."""
    scenario = new_scenario(root)
    factory = RunFactory(scenario)
    statements = itertools.chain.from_iterable(factory.make(number) for number in range(runs))
    append_in_bulk(root / "ledger.sqlite", statements, keys=scenario.open().signing)
    return root


def measure() -> list[dict[str, object]]:
    """Return one row a size; `holds` is the promise kept on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        roots = {runs: make_workspace(Path(folder, str(runs)), runs=runs) for runs in SIZES}
        verified = {runs: _verify_apart(root) for runs, root in roots.items()}
    return [_row(runs, verified) for runs in SIZES]


def _row(runs: int, verified: dict[int, tuple[float, int]]) -> dict[str, object]:
    (ours, peak_bytes), (largest, _) = verified[runs], verified[RUNS]
    share = largest * runs / RUNS
    linear = 0.4 < ours / share < 2.5  # quadratic work would show 0.1 at a tenth
    within = ours < BOUND_S * runs / RUNS + 5 and peak_bytes < BOUND_BYTES
    return {
        "work": f"verify a workspace of {runs} runs ({peak_bytes / 1e6:.0f} MB)",
        "ours_s": ours,
        "peer": f"its share of {RUNS} runs",
        "peer_s": share,
        "ratio": ours / share,
        "bound": f"linear; {RUNS} runs < {BOUND_S:.0f} s and < {BOUND_BYTES / 1e6:.0f} MB",
        "holds": linear and within,
    }


def _verify_apart(root: Path) -> tuple[float, int]:
    """Verify in a process of its own; return seconds and its peak memory in bytes."""
    command = [sys.executable, "-m", "benchmarks.bench_verify", str(root)]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return answer["seconds"], answer["peak_bytes"]


def _verify_here(root: Path) -> None:
    begin = time.perf_counter()
    report = verify(root)
    seconds = time.perf_counter() - begin
    if not report.holds:
        faults = [fault for result in report.results for fault in result.faults]
        sys.exit(f"{EDITION}: {faults[0]}")
    # Not ru_maxrss: a child of a large process inherits that process's peak.
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = [line for line in status if line.startswith("VmHWM:")]
    print(json.dumps({"seconds": seconds, "peak_bytes": int(peak.split()[1]) * 1024}))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _verify_here(Path(sys.argv[1]))
    else:
        print(json.dumps(measure(), indent=2))
