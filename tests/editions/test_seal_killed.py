"""A seal that is killed: the ledger alone decides whether the edition exists."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.statements import EditionSealed
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.editions.settle_editions import settle_abandoned
from orchestrator.keys.age.age_files import AgeKeyring
from orchestrator.ledger.stored_ledger import StoredLedger
from orchestrator.workspace.files.staged_editions import StagedFolder
from tests.support.killed_processes import die, die_after, die_before, exit_code
from tests.support.workspace_fixtures import sealed_clips_fault, tools_of

ContentsOf = Callable[[Path], dict[str, bytes]]
EDITION = "editions/sample-2026"
NPY_MAGIC = b"\x93NUMPY"


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def die_within(wanted: str) -> None:
    """Die with half of one staged file written."""
    real = StagedFolder.add

    def add(self: StagedFolder, name: str, *parts: bytes) -> None:
        if name == wanted:
            data = b"".join(parts)
            real(self, name, data[: len(data) // 2])
            die()
        real(self, name, *parts)

    setattr(StagedFolder, "add", add)  # noqa: B010 - a method is not assigned to otherwise


def seal_and_die(root: Path, source: Path, point: str) -> None:
    where, _, what = point.partition(" ")
    owner = StoredLedger if what == "decide" else StagedFolder
    match where:
        case "within":
            die_within(what)
        case "before":
            die_before(owner, what)
        case "after":
            die_after(owner, what)
    seal_edition(EditionFile(source), tools_of(root, AgeKeyring(root / "keys")))


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
    code = exit_code(seal_and_die, sealing.store.root, Path(sample.place), point)
    assert code == -signal.SIGKILL


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
    assert len(loaded.cipher_sums) == 8
    assert sealed_clips_fault(sealing.store.root) is None
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
