"""Sealing in processes of their own gives what sealing in this one gives, and leaves nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.digests import sha256_hex
from manifests.errors import MalformedDocument, PlatformFault
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.keys.age import sealing_processes
from orchestrator.keys.age.age_files import (
    AgeSealer,
    AgeUnsealer,
    generate_identity,
    parse_identities,
)
from orchestrator.keys.age.sealing_processes import WORTH_BYTES, SealingProcesses
from orchestrator.keys.rules.recipients import SealingPlan, any_of, both_of
from orchestrator.keys.sealing_port import BulkSealer
from tests.support.workspace_fixtures import sealed_clips_fault

FILE, RECIPIENT = generate_identity()
OTHER_FILE, OTHER_RECIPIENT = generate_identity()
UNSEALER = AgeUnsealer(
    [*parse_identities(FILE, source="x"), *parse_identities(OTHER_FILE, source="y")]
)
PLAN = any_of(RECIPIENT)
LARGE = os.urandom(WORTH_BYTES)


@pytest.fixture(params=["here", "processes"])
def sealer(request: pytest.FixtureRequest) -> Iterator[BulkSealer]:
    if request.param == "here":
        yield AgeSealer()
        return
    with closing(SealingProcesses()) as processes:
        yield processes


def seal(sealer: BulkSealer, plan: SealingPlan, *parts: bytes) -> bytes:
    taken: list[bytes] = []
    sha256 = sealer.seal_to(lambda sealed: taken.append(bytes(sealed)), parts, plan)
    (sealed,) = taken
    assert sha256 == sha256_hex(sealed)
    return sealed


def opened(sealed: bytes, *, layers: int = 1) -> bytes:
    return UNSEALER.open_sealed(sealed, layers=layers, source="x.age")


def children() -> set[int]:
    """Return this process's children, whichever thread has started them."""
    lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return {int(each) for text in lists for each in text.split()}


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_what_is_sealed_opens_again_whatever_its_size_and_its_parts(sealer: BulkSealer) -> None:
    whole = os.urandom(5 << 20)
    for size in (0, 1, WORTH_BYTES - 1, WORTH_BYTES, 65536 * 16, 5 << 20, WORTH_BYTES):
        plain = whole[:size]
        third = size // 3
        sealed = seal(sealer, PLAN, plain[:third], b"", plain[third:])
        assert opened(sealed) == plain


def test_every_layer_and_every_recipient_counts(sealer: BulkSealer) -> None:
    both = seal(sealer, both_of(RECIPIENT, OTHER_RECIPIENT), LARGE)
    assert opened(both, layers=2) == LARGE
    people = [generate_identity() for _ in range(16)]
    crowd = seal(sealer, any_of(*(recipient for _, recipient in people)), LARGE)
    for identity in (people[0][0], people[-1][0]):
        one = AgeUnsealer(parse_identities(identity, source="z"))
        assert one.open_sealed(crowd, layers=1, source="x.age") == LARGE


def test_a_recipient_that_is_none_is_refused_before_anything_is_sealed(sealer: BulkSealer) -> None:
    wrong = any_of(RECIPIENT[:-1] + ("q" if RECIPIENT[-1] != "q" else "p"))
    with pytest.raises(MalformedDocument, match="not an age recipient"):
        seal(sealer, wrong, LARGE)


def test_what_threads_seal_at_once_does_not_mix(sealer: BulkSealer) -> None:
    plains = [bytes([number]) * (WORTH_BYTES + number) for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        sealed = list(pool.map(lambda plain: seal(sealer, PLAN, plain), plains))
    assert [opened(each) for each in sealed] == plains


def test_nothing_is_sealed_twice_alike(sealer: BulkSealer) -> None:
    one, other = (seal(sealer, PLAN, LARGE) for _ in range(2))
    assert one != other


@pytest.mark.skipif(shutil.which("age") is None, reason="the age program is missing")
def test_the_stock_age_opens_what_a_process_sealed(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(FILE)
    with closing(SealingProcesses()) as processes:
        (tmp_path / "x.age").write_bytes(seal(processes, PLAN, LARGE))
    command = ["age", "-d", "-i", str(tmp_path / "key"), str(tmp_path / "x.age")]
    assert subprocess.run(command, check=True, capture_output=True).stdout == LARGE


def test_what_is_small_starts_no_process_and_leaving_ends_those_that_were_started() -> None:
    before, descriptors = children(), open_descriptors()
    with closing(SealingProcesses()) as processes:
        seal(processes, PLAN, b"small")
        assert children() == before
        seal(processes, PLAN, LARGE)
        seal(processes, PLAN, LARGE)
        assert len(children() - before) == 1
    assert children() == before
    assert open_descriptors() == descriptors


def test_a_process_that_was_killed_is_a_fault_of_ours_that_says_what_to_do() -> None:
    before = children()
    with closing(SealingProcesses()) as processes:
        seal(processes, PLAN, LARGE)
        (child,) = children() - before
        os.kill(child, signal.SIGKILL)
        with pytest.raises(PlatformFault, match="code -9: is there enough memory"):
            seal(processes, PLAN, LARGE)
        assert opened(seal(processes, PLAN, LARGE)) == LARGE


@pytest.mark.parametrize("fault", [OSError("no process"), AttributeError("memfd_create")])
def test_without_memory_files_or_processes_it_seals_here(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def refuse(_name: str) -> int:
        raise fault

    before = children()
    monkeypatch.setattr(os, "memfd_create", refuse)
    with closing(SealingProcesses()) as processes:
        assert opened(seal(processes, PLAN, LARGE)) == LARGE
        assert children() == before


class Dying:
    """Seals two clips and then loses its processes."""

    def __init__(self, processes: SealingProcesses) -> None:
        self._processes = processes
        self._others = children()
        self._left = 2

    def seal_to(
        self, write: Callable[[memoryview], None], parts: Sequence[bytes], plan: SealingPlan
    ) -> str:
        if self._left == 0:
            for child in children() - self._others:
                os.kill(child, signal.SIGKILL)
        self._left -= 1
        return self._processes.seal_to(write, parts, plan)


def test_a_seal_that_loses_its_processes_leaves_no_edition_and_can_be_done_again(
    sealing: SealingTools, sample: EditionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing_processes, "WORTH_BYTES", 0)
    editions = sealing.store.root / "editions"
    with closing(SealingProcesses()) as processes:
        dying = replace(sealing, clip_sealer=Dying(processes), workers=1)
        with pytest.raises(PlatformFault, match="Nothing was sealed; try again"):
            seal_edition(sample, dying)
    assert list(editions.iterdir()) == []
    with closing(SealingProcesses()) as processes:
        seal_edition(sample, replace(sealing, clip_sealer=processes))
    sealed = load_sealed_edition("sample-2026", store=sealing.store, ledger=sealing.ledger)
    assert len(sealed.cipher_sums) == 8
    assert sealed_clips_fault(sealing.store.root) is None


ORPHAN = """
import os, signal, sys
from orchestrator.keys.age.sealing_processes import SealingProcesses
from orchestrator.keys.rules.recipients import any_of
processes = SealingProcesses()
processes.seal_to(lambda sealed: None, [bytes(1 << 20)], any_of(sys.argv[1]))
print(processes._all[0]._child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_ends_with_a_parent_that_is_killed() -> None:
    command = [sys.executable, "-c", ORPHAN, RECIPIENT]
    child = int(subprocess.run(command, check=False, capture_output=True).stdout)
    deadline = time.monotonic() + 20
    while _is_alive(child):
        assert time.monotonic() < deadline, f"process {child} outlives its parent"
        time.sleep(0.02)


def _is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
