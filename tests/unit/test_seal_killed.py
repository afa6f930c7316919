"""A seal that is killed: the ledger alone decides whether the edition exists."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.statements import EditionSealed
from orchestrator.adapters.epee_folder import EditionFile
from orchestrator.usecases.seal_edition import SealingTools, seal_edition
from orchestrator.usecases.sealed_check import check_sealed_set
from orchestrator.usecases.sealed_editions import load_sealed_edition
from orchestrator.usecases.settle_editions import settle_abandoned

ContentsOf = Callable[[Path], dict[str, bytes]]
EDITION = "editions/sample-2026"
NPY_MAGIC = b"\x93NUMPY"


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


KILLED_SEAL = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[4])
from orchestrator.adapters import stored_ledger
from orchestrator.adapters.age_files import AgeKeyring
from orchestrator.adapters.epee_folder import EditionFile
from orchestrator.adapters.staged_editions import StagedFolder
from orchestrator.usecases.seal_edition import seal_edition
import importlib.util
spec = importlib.util.spec_from_file_location("fixtures", sys.argv[5])
fixtures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fixtures)

root, source, point = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
def before(owner, name):
    setattr(owner, name, die)
def after(owner, name):
    real = getattr(owner, name)
    def wrapped(*arguments, **options):
        real(*arguments, **options)
        die()
    setattr(owner, name, wrapped)
def at_file(wanted):
    real = StagedFolder.add
    def add(self, name, *parts):
        if name == wanted:
            data = b"".join(parts)
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_bytes(data[: len(data) // 2])
            die()
        real(self, name, *parts)
    StagedFolder.add = add
where, _, what = point.partition(" ")
if where == "within":
    at_file(what)
else:
    owner = {"decide": stored_ledger.StoredLedger}.get(what, StagedFolder)
    {"before": before, "after": after}[where](owner, what)
seal_edition(EditionFile(source), fixtures.tools_of(root, AgeKeyring(root / "keys")))
"""

UNDECIDED = (
    "within edition.yaml",
    "within sealed/0001.age",
    "within sealed/0006.age",
    "within labels/labels-v1.age",
    "within seal.json",
    "before make_durable",
    "after make_durable",
    "before decide",
)
DECIDED = ("after decide", "before publish", "after publish")


def kill_seal(sealing: SealingTools, sample: EditionFile, point: str) -> None:
    here = Path(__file__)
    arguments = [str(sealing.store.root), sample.place, point, str(here.parents[2])]
    command = [sys.executable, "-c", KILLED_SEAL, *arguments, str(here.with_name("conftest.py"))]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.parametrize("point", UNDECIDED)
def test_a_seal_killed_before_its_statement_leaves_no_edition(
    sealing: SealingTools, sample: EditionFile, point: str, contents_of: ContentsOf
) -> None:
    kill_seal(sealing, sample, point)
    assert not any(NPY_MAGIC in data for data in contents_of(sealing.store.root).values())
    assert not sealing.store.exists(EDITION)
    assert settle_abandoned(sealing.store, sealing.ledger) == ()
    assert names_in(sealing.store.root / "editions") == []
    assert seal_edition(sample, sealing).clips == 8


@pytest.mark.parametrize("point", DECIDED)
def test_a_seal_killed_after_its_statement_is_finished_by_the_next_command(
    sealing: SealingTools, sample: EditionFile, point: str, contents_of: ContentsOf
) -> None:
    kill_seal(sealing, sample, point)
    assert not any(NPY_MAGIC in data for data in contents_of(sealing.store.root).values())
    settle_abandoned(sealing.store, sealing.ledger)
    loaded = load_sealed_edition("sample-2026", store=sealing.store, ledger=sealing.ledger)
    assert check_sealed_set(EDITION, loaded.cipher_sums, store=sealing.store).files == 8
    assert names_in(sealing.store.root / "editions") == ["sample-2026"]
    statements = [entry.statement for entry in sealing.ledger.entries(edition="sample-2026")]
    assert [type(statement) for statement in statements] == [EditionSealed]


def test_a_live_seal_is_not_settled_by_another_process(
    sealing: SealingTools, sample: EditionFile
) -> None:
    with sealing.store.stage_edition("sample-2026") as staged:
        staged.add("seal.json", b"{}")
        assert settle_abandoned(sealing.store, sealing.ledger) == ()
        assert staged.read_optional("seal.json") == b"{}"
