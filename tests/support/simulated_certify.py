"""A real workspace and a simulated engine: certified runs in milliseconds."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from manifests.errors import MalformedDocument
from manifests.references import ImageReference
from manifests.statements import RunReserved, Statement
from orchestrator.images.files.archive_file import ArchiveFile
from orchestrator.images.registry_port import RegistryDocument
from orchestrator.images.resolve_image import ImageSources
from orchestrator.ledger.rules.quota import QuotaState
from orchestrator.runs.certify import CertifiedRun, CertifyRequest, certify
from orchestrator.runs.list_runs import team_quota
from orchestrator.runs.run_host import RunHost
from orchestrator.sandbox.ports import NoGpus
from orchestrator.sandbox.rules.elf import Architecture
from orchestrator.sandbox.rules.tiny_image import tiny_image
from orchestrator.support.reporter import SilentReporter, Step
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.workspace import Workspace
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import Entrant, SimulatedClock, SimulatedEnd
from tests.support.small_exams import new_workspace, register, seal_edition

EDITION, TEAM = "simulated-final", "nova"


class NoRegistry:
    """A registry that holds nothing."""

    def fetch_manifest(self, reference: ImageReference) -> RegistryDocument:
        raise MalformedDocument(f"{reference}: nothing is here")

    def fetch_config(self, reference: ImageReference, digest: str, size_bytes: int) -> bytes:
        raise MalformedDocument(f"{reference}: nothing is here")


def honest(files: Mapping[str, bytes]) -> SimulatedEnd:
    """Answer every sign with the first gloss."""
    return SimulatedEnd(files={"predictions.jsonl": answers(files)}, runs_s=3.0, log=b"clip bytes")


def answers(files: Mapping[str, bytes]) -> bytes:
    gloss = files["vocabulary.txt"].split(b"\n")[0].decode()
    lines = []
    for clip in json.loads(files["exam.json"])["clips"]:
        known = json.loads(files[f"annotations/{clip}.json"])
        lines.append(json.dumps({"clip_id": clip, "signs": [gloss] * len(known["segments"])}))
    return ("\n".join(lines) + "\n").encode()


class WatchingReporter(SilentReporter):
    """Remembers steps and warnings; may act at a step."""

    def __init__(self, acts: Mapping[Step, object] | None = None) -> None:
        self.steps: list[Step] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self._acts = acts or {}

    def step(self, step: Step) -> None:
        self.steps.append(step)
        act = self._acts.get(step)
        if callable(act):
            act()

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass(slots=True, kw_only=True)
class Simulation:
    """One organizer with a workspace on disk and an engine in memory."""

    workspace: Workspace
    engine: EngineSimulator
    host: RunHost
    archive: Path
    image_id: str
    reporter: WatchingReporter = field(default_factory=WatchingReporter)

    def certify(self, entrant: Entrant = honest, **changes: object) -> CertifiedRun:
        self.engine.script(self.image_id, entrant)
        fields = {"edition": EDITION, "team": TEAM, "image": str(self.archive)} | changes
        request = CertifyRequest(**fields)  # type: ignore[arg-type]  # the request's own fields
        return certify(self.workspace, self.host, request, self.reporter)

    def statements(self, team: str = TEAM) -> list[Statement]:
        found = [entry.statement for entry in self.workspace.ledger.entries(team=team)]
        return [statement for statement in found if statement.kind != "team-registered"]

    def story(self, team: str = TEAM) -> list[str]:
        return [statement.kind for statement in self.statements(team)]

    def run_ids(self) -> list[str]:
        return [s.run_id for s in self.statements() if isinstance(s, RunReserved)]

    @property
    def quota(self) -> QuotaState:
        return team_quota(self.workspace, edition=EDITION, team=TEAM)

    def left(self) -> list[str]:
        """Return what is left at the engine and in the workspace."""
        return [
            *self.engine.list_containers("piste-"),
            *self.engine.list_volumes("piste-"),
            *(image for image in self.engine.list_image_ids() if image == self.image_id),
            *self.workspace.store.intents(),
        ]


def seal_workspace(root: Path, *, extra: str = "") -> Path:
    """Make a workspace with a sealed edition and a team below `root`; return its folder."""
    workspace = new_workspace(root / "workspace")
    seal_edition(workspace, root / "edition", EDITION, extra=extra)
    register(workspace, TEAM)
    return root / "workspace"


def simulate(root: Path) -> Simulation:
    """Open the workspace below `root`, beside an engine in memory."""
    clock = SimulatedClock(seconds=86400)
    workspace = replace(wiring.open_workspace(root / "workspace"), clock=clock)
    image = tiny_image(
        {"run": os.urandom(8)}, entrypoint=("/run",), architecture=Architecture.AMD64
    )
    archive = root / "entrant.tar"
    archive.write_bytes(image.archive)
    engine = EngineSimulator(clock)
    host = RunHost(
        name="host-1",
        sources=ImageSources(engine=engine, registry=NoRegistry(), open_archive=ArchiveFile),
        free_bytes=lambda _folder: None,
        gpus=NoGpus(),
        self_test=lambda _profile, _run_id: None,
    )
    return Simulation(
        workspace=workspace,
        engine=engine,
        host=host,
        archive=archive,
        image_id=image.image_id,
    )
