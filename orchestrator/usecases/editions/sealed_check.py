"""Check the ciphertexts of an edition against `sealed.sha256`, both ways."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from manifests.errors import ClaimDoesNotHold
from orchestrator.ports.reporter import Reporter, SilentReporter, Step
from orchestrator.ports.store import FileAbsent, WorkspaceStore

_CHUNK_BYTES = 1 << 20
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class CheckedSet:
    """What was read and found to be what was sealed."""

    files: int
    size_bytes: int


def check_sealed_set(
    folder: str,
    sums: Mapping[str, str],
    *,
    store: WorkspaceStore,
    reporter: Reporter | None = None,
    workers: int = 4,
) -> CheckedSet:
    """Read every ciphertext below `folder` and compare; `sums` maps `sealed/0001.age` to SHA-256.

    Unlike `sha256sum -c`, this sees a file that no line lists.

    Raises:
        ClaimDoesNotHold: a file is missing, changed, or listed nowhere; all of them are counted.

    """
    reporter = reporter or SilentReporter()
    present = {f"sealed/{name}" for name in store.list_names(f"{folder}/sealed")}
    faults = [f"{name} is not listed" for name in sorted(present - sums.keys())]
    size_bytes = 0
    with ThreadPoolExecutor(workers) as pool:
        results = pool.map(lambda name: _digest(store, f"{folder}/{name}"), sums)
        for done, (name, found) in enumerate(zip(sums, results, strict=True), start=1):
            reporter.progress(Step.LOAD, done, len(sums), "clips")
            if found is None:
                faults.append(f"{name} is missing")
            elif found[0] != sums[name]:
                faults.append(f"{name} was changed")
            else:
                size_bytes += found[1]
    if faults:
        more = f", and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise ClaimDoesNotHold(
            f"{store.root}/{folder}: {len(faults)} of {len(sums)} sealed clips do not hold: "
            f"{', '.join(faults[:_SHOWN])}{more}; restore the folder from a backup"
        )
    return CheckedSet(files=len(sums), size_bytes=size_bytes)


def _digest(store: WorkspaceStore, name: str) -> tuple[str, int] | None:
    digest, size_bytes = hashlib.sha256(), 0
    try:
        for chunk in store.stream(name, _CHUNK_BYTES):
            digest.update(chunk)
            size_bytes += len(chunk)
    except FileAbsent:
        return None
    return digest.hexdigest(), size_bytes
