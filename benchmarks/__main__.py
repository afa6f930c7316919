"""Measure every row, print a table and write bench.json. `python -m benchmarks [NAME …]`."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

REPORT = Path("bench.json")
HERE = Path(__file__).parent
EXIT_BOUND_MISSED = 1
WIDTH_OF_A_LOG = 160


def modules(wanted: list[str]) -> Iterator[str]:
    """Yield the benchmark modules, all or those whose name holds a wanted word."""
    for path in sorted(HERE.glob("bench_*.py")):
        if not wanted or any(word in path.stem for word in wanted):
            yield path.stem


def seconds(value: float | None) -> str:
    """Return a duration a person can read."""
    if value is None:
        return "—"
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.2f} s"


def table(rows: list[dict[str, Any]]) -> Table:
    """Return all rows as a table."""
    shown = Table(box=None, pad_edge=False)
    for name in ("work", "piste", "peer", "peer takes", "ratio", "bound", ""):
        shown.add_column(name, overflow="fold")
    for row in rows:
        ratio = row.get("ratio")
        shown.add_row(
            row["work"],
            seconds(row.get("ours_s")),
            str(row.get("peer") or "—"),
            seconds(row.get("peer_s")),
            "—" if ratio is None else f"{ratio:.2f}×",
            str(row.get("bound") or "—"),
            "holds" if row["holds"] else "MISSED",
            style=None if row["holds"] else "bold red",
        )
    return shown


def main() -> int:
    """Run the benchmarks and return the exit code: 1 when a bound is missed."""
    rows: list[dict[str, Any]] = []
    for name in modules(sys.argv[1:]):
        sys.stderr.write(f"· {name}\n")
        rows += [row | {"module": name} for row in import_module(f"benchmarks.{name}").measure()]
    facts = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "rows": rows,
    }
    REPORT.write_text(json.dumps(facts, indent=2) + "\n")
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH_OF_A_LOG
    console.print(table(rows))
    return 0 if all(row["holds"] for row in rows) else EXIT_BOUND_MISSED


if __name__ == "__main__":
    raise SystemExit(main())
