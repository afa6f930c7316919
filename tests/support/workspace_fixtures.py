"""A real workspace and a small sample edition, for whatever seals, opens or reveals."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from manifests.statements import WorkspaceCreated
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.seal_edition import SealingTools
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Result
from orchestrator.keys.age.age_files import AgeKeyring, AgeSealer, generate_identity
from orchestrator.keys.pem.signing_keys import create_signing_keys, load_signing_keys
from orchestrator.keys.rules.recipients import SealRecipients
from orchestrator.keys.sealing_port import Purpose
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.sql.sql_store import create_sql_ledger, open_sql_ledger
from orchestrator.samples.files.sample_folder import SampleFolder
from orchestrator.samples.sample_edition import SampleRequest, make_sample_edition
from orchestrator.support.reporter import SilentReporter
from orchestrator.workspace.files.new_workspace import stage_workspace
from orchestrator.workspace.files.workspace_files import open_workspace
from orchestrator.workspace.initialise import WorkspaceMakers, initialise
from tests.support.synthetic_evidence import verify

OPENS = datetime(2026, 1, 1, tzinfo=UTC)
CLOSES = datetime(2026, 7, 1, tzinfo=UTC)


class FixedClock:
    """A clock that stands still while the sample edition is open."""

    def now(self) -> datetime:
        return datetime(2026, 3, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture(scope="session")
def workspace_makers() -> WorkspaceMakers:
    return WorkspaceMakers(
        stage=stage_workspace,
        create_signing_keys=create_signing_keys,
        create_ledger=_create_ledger,
        generate_identity=generate_identity,
        clock=FixedClock(),
    )


def _create_ledger(folder: Path, created: WorkspaceCreated, keys: SigningKeys) -> None:
    create_sql_ledger(folder / "ledger.sqlite", created, keys=keys)


@pytest.fixture
def workspace_root(tmp_path: Path, workspace_makers: WorkspaceMakers) -> Path:
    root = tmp_path / "workspace"
    initialise(root, origin="example.org/piste", make=workspace_makers)
    return root


@pytest.fixture
def keyring(workspace_root: Path) -> AgeKeyring:
    return AgeKeyring(workspace_root / "keys")


@pytest.fixture
def sealing(workspace_root: Path, keyring: AgeKeyring) -> SealingTools:
    return tools_of(workspace_root, keyring)


@pytest.fixture(scope="session")
def tools_at() -> Callable[[Path], SealingTools]:
    return lambda root: tools_of(root, AgeKeyring(root / "keys"))


def tools_of(root: Path, keyring: AgeKeyring) -> SealingTools:
    return SealingTools(
        store=open_workspace(root),
        ledger=open_sql_ledger(root / "ledger.sqlite", keys=load_signing_keys(root / "keys")),
        sealer=AgeSealer(),
        clip_sealer=AgeSealer(),
        clock=FixedClock(),
        reporter=SilentReporter(),
        recipients=SealRecipients(
            clips=keyring.plan(Purpose.CLIPS), labels=keyring.plan(Purpose.LABELS)
        ),
        load_profile=lambda _source, name: f"profile: {name}\n".encode(),
    )


@pytest.fixture
def sample_root(tmp_path: Path) -> Path:
    """A folder with the edition `sample-2026`: eight invented clips."""
    root = tmp_path / "sample"
    request = SampleRequest(edition="sample-2026", opens=OPENS, closes=CLOSES, clips=8)
    make_sample_edition(SampleFolder(root), request)
    return root


@pytest.fixture
def sample(sample_root: Path) -> EditionFile:
    return EditionFile(sample_root / "edition.yaml")


def sealed_clips_fault(root: Path) -> tuple[str, ...] | None:
    """Return what `piste verify` finds wrong with a workspace's sealed clips; None for nothing."""
    (found,) = (one for one in verify(root).results if one.check is Check.CIPHERTEXTS)
    assert found.result is not Result.SKIPPED
    return found.faults or None


@pytest.fixture(scope="session")
def contents_of() -> Callable[[Path], dict[str, bytes]]:
    """Read every file of a folder but the locks, which stay."""

    def read(root: Path) -> dict[str, bytes]:
        files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
        return {str(path.relative_to(root)): path.read_bytes() for path in files}

    return read


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 512 KiB; a test may remount it read-only."""
    root = tmp_path / "small-disk"
    root.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(root)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a tmpfs, as root has")
    yield root
    subprocess.run(["umount", "-l", str(root)], check=True)
