"""GPU editions on a machine that has none: what can be shown without one."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import RefusedByPolicy
from manifests.outcomes import Diagnostic, Outcome
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.python.python_image import BuiltImage
from orchestrator.sandbox.nvidia.nvidia_smi import list_gpu_uuids
from orchestrator.sandbox.rules.gpu import GpuFacts, GpuKind, GpuRequest
from orchestrator.support.reporter import SilentReporter, Step
from tests.support.certify_fixtures import Organizer, seal_sample
from tests.support.hostile_image import HostileImage

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(bool(list_gpu_uuids()), reason="needs a machine without a GPU"),
]

UUID = "GPU-00000000-1111-2222-3333-444444444444"
FACTS = GpuFacts(
    uuid=UUID,
    name="Invented",
    driver_version="550.0",
    memory_total_mib="81920",
    compute_capability="9.0",
    mig_mode="Disabled",
    ecc_mode="Enabled",
    power_limit_w="700",
    clocks_max_sm_mhz="1980",
    vbios_version="96.0",
    pci_bus_id="00000000:01:00.0",
)


class PromisedGpus:
    """A list that lies: it names a GPU that the engine cannot give."""

    kind = GpuKind.UUID

    def available(self) -> tuple[str, ...]:
        return (UUID,)

    def probe(self, request: GpuRequest) -> tuple[GpuFacts, ...]:
        del request
        return (FACTS,)


@pytest.fixture(scope="module")
def editions(organizer: Organizer, tmp_path_factory: pytest.TempPathFactory) -> Organizer:
    """The organizer with two more editions: one that requires a GPU, one that forbids it."""
    for policy in ("required", "forbidden"):
        folder = tmp_path_factory.mktemp(policy)
        seal_sample(organizer.root, folder, edition=f"gpu-{policy}", gpu=policy, clips=2)
    return organizer


def test_a_required_gpu_that_is_absent_refuses_before_anything_is_reserved(
    editions: Organizer, silent_archive: BuiltImage
) -> None:
    team = editions.new_team()
    with pytest.raises(RefusedByPolicy, match=r"requires a GPU.*nothing was spent") as refusal:
        editions.certify(silent_archive.path, team=team, edition="gpu-required")
    assert refusal.value.exit_code == 3
    assert editions.story(team) == []
    assert editions.leftovers(team, silent_archive.image_id) == []


def test_a_forbidden_gpu_is_hidden_also_from_an_image_that_asks_for_all(
    editions: Organizer, image_cache: Path, tmp_path: Path
) -> None:
    image = HostileImage(
        name="asks-for-gpus",
        source='if os.environ["NVIDIA_VISIBLE_DEVICES"] != "void":\n    sys.exit(7)\nanswer()\n',
    )
    settings = replace(image.settings, environment={"NVIDIA_VISIBLE_DEVICES": "all"})
    built = replace(image, settings=settings).build(tmp_path / "image.tar", cache=image_cache)
    team = editions.new_team()
    run = editions.certify(built.path, team=team, edition="gpu-forbidden")
    assert run.record.outcome is Outcome.COMPLETED
    assert run.record.gpu is None
    effective = json.loads((Path(run.folder) / "effective.json").read_bytes())
    assert "NVIDIA_VISIBLE_DEVICES=void" in effective["config"]["Env"]
    assert "DeviceRequests" not in effective["host_config"]


class SeesDeviceRequests(SilentReporter):
    """Looks at the created container before it is started."""

    def __init__(self, organizer: Organizer, team: str) -> None:
        self.organizer = organizer
        self.team = team
        self.requests: list[dict[str, Any]] = []

    def step(self, step: Step) -> None:
        if step is Step.START:
            (run_id,) = self.organizer.run_ids(self.team)
            found = DockerEngine(os.environ).inspect_container(f"piste-{run_id}-entrant")
            assert found is not None
            self.requests = found["HostConfig"]["DeviceRequests"]


def test_a_gpu_that_the_engine_cannot_give_is_asked_for_by_uuid_and_costs_the_team_nothing(
    editions: Organizer, silent_archive: BuiltImage
) -> None:
    team = editions.new_team()
    reporter = SeesDeviceRequests(editions, team)
    host = replace(editions.host(), gpus=PromisedGpus())
    run = editions.certify(
        silent_archive.path, team=team, edition="gpu-required", host=host, reporter=reporter
    )
    (asked,) = reporter.requests
    assert asked["DeviceIDs"] == [UUID]
    assert asked["Capabilities"] == [["gpu", "compute", "utility"]]
    assert run.record.outcome is Outcome.PLATFORM_FAULT
    assert run.record.diagnostics[0] is Diagnostic.GPU_UNAVAILABLE
    assert run.record.voided is not None
    assert run.record.gpu == {
        "requested": [UUID],
        "before": [FACTS.document()],
        "after": [FACTS.document()],
    }
    assert (run.quota.used, run.quota.voided, run.quota.left) == (0, 1, 3)
    assert editions.leftovers(team, silent_archive.image_id) == []
