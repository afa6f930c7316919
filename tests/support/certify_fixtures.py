"""An organizer with a small sealed edition on a real engine, and eyes for what a run leaves."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifests.statements import RunReserved, Statement
from orchestrator.engine.ports import ContainerEngine
from orchestrator.ledger.rules.quota import QuotaState
from orchestrator.runs.certify import CertifiedRun, CertifyRequest, certify
from orchestrator.runs.list_runs import team_quota
from orchestrator.runs.run_host import RunHost
from orchestrator.support.reporter import Reporter, SilentReporter
from orchestrator.wiring import samples as sample_wiring
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.add_team import add_team
from orchestrator.workspace.workspace import Workspace
from sandbox_profiles.profile import SandboxProfile
from tests.support.hostile_image import SMALL_PROFILE

EDITION = "small-2026"
HASTY_EDITION = "hasty-2026"
CLIPS = 4
PISTE = (sys.executable, "-c", "from orchestrator.cli.main import main; main()")
ROOMY_QUOTA = "{certified_runs: 90, attempts: 100}"
THREE_RUNS = "{certified_runs: 3, attempts: 10}"


def write_edition(
    folder: Path,
    *,
    edition: str = EDITION,
    clips: int = CLIPS,
    seed: int = 200,
    profile: SandboxProfile = SMALL_PROFILE,
    quota: str = THREE_RUNS,
    gpu: str = "optional",
) -> Path:
    """Write a sample edition under a profile of its own; return its edition.yaml."""
    sample_wiring.make_sample(
        folder, track="recognition", clips=clips, seed=seed, edition=edition, consumer=None
    )
    (folder / "profile.yaml").write_text(json.dumps(profile.model_dump(mode="json")))
    file = folder / "edition.yaml"
    text = file.read_text().replace("profile: certified", "profile: profile.yaml")
    file.write_text(f"{text}quota: {quota}\ngpu: {gpu}\n")
    return file


def seal_sample(root: Path, folder: Path, **fields: object) -> bytes:
    """Seal a sample edition in the workspace at `root`; return bytes of one of its clips."""
    file = write_edition(folder, **fields)  # type: ignore[arg-type]  # fields of write_edition
    wiring.seal(wiring.open_workspace(root), file, SilentReporter())
    return clip_mark(folder)


def clip_mark(folder: Path) -> bytes:
    """Return 48 bytes that stand in a clip's keypoints and nowhere else."""
    longest = max((folder / "keypoints").iterdir(), key=lambda path: path.stat().st_size)
    values = np.load(longest)
    detected = np.flatnonzero(np.abs(values).min(axis=(1, 2)) > 0)
    row = values[int(detected[0])] if detected.size else values.reshape(-1, 3)
    pieces = [part.tobytes() for part in row.reshape(-1, 12) if np.unique(part).size == 12]
    mark: bytes = pieces[0]
    return mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Organizer:
    """A workspace on disk, this machine's engine, and one team after another."""

    root: Path
    engine: ContainerEngine
    mark: bytes
    """Bytes of a sealed clip: they may be nowhere on a disk."""

    @property
    def workspace(self) -> Workspace:
        """Open the workspace anew, without picking up what a dead process left."""
        return wiring._workspace(self.root)

    def host(self) -> RunHost:
        """Return this machine as a host of runs."""
        return wiring.run_host(self.engine)

    def new_team(self) -> str:
        """Register a team and return its name."""
        name = f"team-{secrets.token_hex(4)}"
        opened = self.workspace
        add_team(
            name,
            organizer=False,
            data_track="open-data",
            ledger=opened.ledger,
            clock=opened.clock,
        )
        return name

    def certify(
        self,
        image: Path | str,
        *,
        team: str,
        edition: str = EDITION,
        reporter: Reporter | None = None,
        host: RunHost | None = None,
        repeat: int = 1,
    ) -> CertifiedRun:
        """Certify an archive or a reference."""
        request = CertifyRequest(edition=edition, team=team, image=str(image), repeat=repeat)
        reporter = reporter or SilentReporter()
        return certify(self.workspace, host or self.host(), request, reporter)

    def quota(self, team: str, edition: str = EDITION) -> QuotaState:
        """Return what the team has used and left."""
        return team_quota(self.workspace, edition=edition, team=team)

    def statements(self, team: str) -> list[Statement]:
        """Return what the ledger says of the team, its registration left out."""
        found = [entry.statement for entry in self.workspace.ledger.entries(team=team)]
        return [statement for statement in found if statement.kind != "team-registered"]

    def story(self, team: str) -> list[str]:
        """Return the kinds of the team's statements, in order."""
        return [statement.kind for statement in self.statements(team)]

    def run_ids(self, team: str) -> list[str]:
        """Return the ids of the team's runs."""
        return [s.run_id for s in self.statements(team) if isinstance(s, RunReserved)]

    def leftovers(self, team: str, image_id: str | None = None) -> list[str]:
        """Return everything that the team's runs left behind and should not have.

        Only things of these runs are looked at: other tests use the same engine.
        """
        found: list[str] = []
        for run_id in self.run_ids(team):
            found += self.engine.list_containers(f"piste-{run_id}")
            found += self.engine.list_volumes(f"piste-{run_id}")
        if image_id is not None and self.engine.inspect_image(image_id) is not None:
            found.append(image_id)
        found += [f"intent {name}" for name in self.workspace.store.intents()]
        found += [str(path) for path in self.root.rglob(".tmp-*")]
        return found + [str(path) for path in self.files_with(self.mark)]

    def files_with(self, mark: bytes) -> Iterator[Path]:
        """Find `mark` in the workspace and in the engine's volumes and container folders."""
        data_root = Path(self.engine.describe().data_root)
        for folder in (self.root, data_root / "volumes", data_root / "containers"):
            for place, _, names in os.walk(folder):  # passes over what vanishes meanwhile
                paths = [Path(place, name) for name in names]
                yield from (path for path in paths if _holds(path, mark))


def _holds(path: Path, mark: bytes) -> bool:
    try:
        return path.is_file() and not path.is_symlink() and mark in path.read_bytes()
    except OSError:
        return False  # removed meanwhile: another test's


def make_organizer(root: Path, engine: ContainerEngine, **fields: object) -> Organizer:
    """Make a workspace with one sealed sample edition below `root`."""
    workspace = root / "workspace"
    wiring.create_workspace(workspace, origin="example.org/piste")
    mark = seal_sample(workspace, root / "sample", **fields)
    return Organizer(root=workspace, engine=engine, mark=mark)


def piste(
    *arguments: str | Path, workspace: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a person does, in a process of its own."""
    return subprocess.run(
        [*PISTE, *map(str, arguments), "--workspace", str(workspace)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=dict(os.environ) | (environment or {}),
    )
