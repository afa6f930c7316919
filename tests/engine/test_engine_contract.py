"""One suite for the simulated and the real engine."""

from __future__ import annotations

import io
import os
import secrets
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.engine.ports import (
    ChangeKind,
    ContainerEngine,
    EngineError,
    StartRefused,
    VolumeSpec,
)
from orchestrator.images.rules.image_config import neutralise
from orchestrator.sandbox.parts import (
    ensure_image,
    holder_image,
    list_leftovers,
    remove_leftovers,
)
from orchestrator.sandbox.rules.collector import CollectedFiles, OutputRules, collect_output
from orchestrator.sandbox.rules.container_options import (
    EntrantSpec,
    HolderSpec,
    entrant_options,
    holder_options,
)
from orchestrator.sandbox.rules.effective import differences
from orchestrator.sandbox.rules.elf import Architecture, ProbeCall, syscall_probe_elf
from orchestrator.sandbox.rules.tiny_image import TinyImage, tiny_image
from orchestrator.support.reporter import SilentReporter
from sandbox_profiles.profile import load_profile
from tests.support.engine_simulator import EngineSimulator
from tests.support.simulated_world import Entrant, SimulatedClock, SimulatedEnd

AMD64 = Architecture.AMD64
PROFILE = load_profile("certified")
PREDICTIONS = b'{"clip_id":"0001","signs":[]}\n'
WRITES_AND_REPORTS = (
    ProbeCall(syscall="openat", arguments=(-100, b"/output/predictions.jsonl\0", 0o101, 0o644)),
    ProbeCall(syscall="write", arguments=(3, PREDICTIONS, len(PREDICTIONS))),
    ProbeCall(syscall="getuid"),
)
REPORT = b"aaaaaaaaaaaaaaad\naaaaaaaaaaaaaabo\naaaaaaaaaaaapppm\n"


@dataclass(frozen=True)
class World:
    engine: ContainerEngine
    run_id: str

    def name(self, part: str) -> str:
        return f"piste-{self.run_id}-{part}"

    def image(self, calls: tuple[ProbeCall, ...], entrant: Entrant) -> TinyImage:
        """An image that on a real engine makes the calls, and in the simulator acts alike."""
        program = {"probe": syscall_probe_elf(AMD64, calls)}
        image = tiny_image(program, entrypoint=("/probe",), architecture=AMD64)
        ensure_image(self.engine, image)
        if isinstance(self.engine, EngineSimulator):
            self.engine.script(image.image_id, entrant)
        return image

    def volumes(self) -> None:
        for part, uid in (("input", 0), ("output", 65532)):
            self.engine.create_volume(
                VolumeSpec(
                    name=self.name(part),
                    size_bytes=2**20,
                    inodes=64,
                    uid=uid,
                    gid=uid,
                    mode=0o755,
                )
            )

    def holder(self) -> str:
        image_id = ensure_image(self.engine, holder_image(AMD64))
        options = holder_options(
            HolderSpec(
                run_id=self.run_id,
                image_id=image_id,
                platform="linux/amd64",
                input_volume=self.name("input"),
                output_volume=self.name("output"),
                seccomp=PROFILE.seccomp(),
            )
        )
        container = self.engine.create_container(self.name("holder"), options)
        self.engine.start_container(container)
        return container

    def options(self, image: TinyImage) -> dict[str, Any]:
        return entrant_options(
            EntrantSpec(
                run_id=self.run_id,
                image_id=image.image_id,
                platform=image.platform,
                input_volume=self.name("input"),
                output_volume=self.name("output"),
                profile=PROFILE,
            )
        )

    def entrant(self, image: TinyImage) -> str:
        return self.engine.create_container(self.name("entrant"), self.options(image))


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.docker)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    simulated = request.param == "simulated"
    engine: ContainerEngine = (
        EngineSimulator(SimulatedClock()) if simulated else DockerEngine(os.environ)
    )
    made = World(engine, secrets.token_hex(8))
    yield made
    assert remove_leftovers(engine, made.run_id) == ()


def tar_of(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def writes(_files: Mapping[str, bytes]) -> SimulatedEnd:
    return SimulatedEnd(files={"predictions.jsonl": PREDICTIONS}, log=REPORT)


def test_an_engine_says_what_it_is_and_can_limit(world: World) -> None:
    description = world.engine.describe()
    assert description.limits["memory"]
    assert description.limits["pids"]
    assert description.cpus >= 1
    assert "runc" in description.runtimes
    assert description.kernel.split(".")[0].isdigit()


def test_what_is_absent_is_none_or_removed_in_silence(world: World) -> None:
    engine, absent = world.engine, "sha256:" + "0" * 64
    assert engine.inspect_image(absent) is None
    assert engine.inspect_container(world.name("entrant")) is None
    engine.remove_image(absent)
    engine.remove_container(world.name("entrant"))
    engine.remove_volume(world.name("input"))
    engine.kill_container(world.name("entrant"))
    assert engine.wait_for_exit(world.name("entrant"), 0.1)


def test_a_loaded_image_has_the_id_that_was_known_before(world: World) -> None:
    salt = ProbeCall(syscall="write", arguments=(9, secrets.token_bytes(8), 0))
    image = world.image((salt,), writes)
    inspected = world.engine.inspect_image(image.image_id)
    assert inspected is not None
    assert inspected["Config"]["Entrypoint"] == ["/probe"]
    assert not inspected["RepoTags"]
    assert image.image_id in world.engine.list_image_ids()
    world.engine.remove_image(image.image_id)
    assert world.engine.inspect_image(image.image_id) is None
    assert image.image_id not in world.engine.list_image_ids()


def test_a_saved_image_holds_its_configuration(world: World) -> None:
    image = world.image(WRITES_AND_REPORTS, writes)
    saved = b"".join(world.engine.save_image(image.image_id))
    digest = image.image_id.removeprefix("sha256:")
    with tarfile.open(fileobj=io.BytesIO(saved)) as tar:
        assert any(digest in name for name in tar.getnames())


def test_a_volume_name_is_taken_once(world: World) -> None:
    world.volumes()
    names = world.engine.list_volumes(f"piste-{world.run_id}-")
    assert names == (world.name("input"), world.name("output"))
    with pytest.raises(EngineError, match="is there already"):
        world.volumes()


def test_a_container_name_is_taken_once(world: World) -> None:
    image = world.image(WRITES_AND_REPORTS, writes)
    world.volumes()
    world.entrant(image)
    with pytest.raises(EngineError):
        world.entrant(image)
    assert world.engine.list_containers(f"piste-{world.run_id}") == (world.name("entrant"),)


def test_the_engine_makes_what_was_asked_for_and_nothing_else(world: World) -> None:
    image = world.image(WRITES_AND_REPORTS, writes)
    world.volumes()
    inspected = world.engine.inspect_container(world.entrant(image))
    assert inspected is not None
    neutral = neutralise({"Entrypoint": ["/probe"]})
    assert differences(world.options(image), neutral, inspected) == ()


def test_output_outlives_the_entrant_in_the_holder(world: World) -> None:
    engine = world.engine
    image = world.image(WRITES_AND_REPORTS, writes)
    world.volumes()
    holder = world.holder()
    engine.put_archive(holder, "/input", (tar_of({"exam.json": b"{}", "a/b.npy": b"x"}),))
    container = world.entrant(image)
    engine.start_container(container)
    assert engine.wait_for_exit(container, 30)
    inspected = engine.inspect_container(container)
    assert inspected is not None
    assert inspected["State"]["ExitCode"] == 0
    assert not engine.saw_oom(container)
    assert engine.read_log(container, 1000) == REPORT
    assert engine.read_log(container, 20) == REPORT[:20]
    assert b"".join(engine.follow_log(container)) == REPORT
    engine.remove_container(container)
    assert engine.inspect_container(container) is None
    rules = OutputRules(total_bytes=1000, file_bytes=1000, files=3)
    collected = collect_output(engine.get_archive(holder, "/output"), rules)
    assert collected == CollectedFiles({"predictions.jsonl": PREDICTIONS})
    with tarfile.open(fileobj=io.BytesIO(b"".join(engine.get_archive(holder, "/input")))) as tar:
        assert {"input/exam.json", "input/a/b.npy"} <= set(tar.getnames())


def test_a_wait_ends_at_its_own_deadline_and_a_kill_ends_the_container(world: World) -> None:
    engine = world.engine
    world.volumes()
    holder = world.holder()
    begin = time.monotonic()
    assert not engine.wait_for_exit(holder, 0.5)
    assert time.monotonic() - begin < 5
    usage = engine.sample_usage(holder)
    assert usage is not None
    assert usage.memory_peak_bytes > 0
    engine.kill_container(holder)
    assert engine.wait_for_exit(holder, 10)
    engine.kill_container(holder)
    inspected = engine.inspect_container(holder)
    assert inspected is not None
    assert inspected["State"]["ExitCode"] == 137
    assert not engine.saw_oom(holder)
    assert engine.sample_usage(holder) is None


def test_a_refused_start_carries_the_engines_words(world: World) -> None:
    image = world.image(WRITES_AND_REPORTS, writes)
    world.volumes()
    options = world.options(image)
    options["HostConfig"]["DeviceRequests"] = [
        {"Driver": "no-such-driver", "Count": -1, "Capabilities": [["gpu"]]}
    ]
    container = world.engine.create_container(world.name("entrant"), options)
    with pytest.raises(StartRefused) as refused:
        world.engine.start_container(container)
    assert "could not select device driver" in refused.value.engine_message


def test_an_unknown_image_cannot_be_a_container(world: World) -> None:
    image = world.image(WRITES_AND_REPORTS, writes)
    world.volumes()
    options = {**world.options(image), "Image": "sha256:" + "1" * 64}
    with pytest.raises(EngineError):
        world.engine.create_container(world.name("entrant"), options)


def test_leftovers_are_found_by_their_names(world: World) -> None:
    world.volumes()
    world.holder()
    assert set(list_leftovers(world.engine)[world.run_id]) == {
        world.name("holder"),
        world.name("input"),
        world.name("output"),
    }
    assert remove_leftovers(world.engine, world.run_id) == ()
    assert world.run_id not in list_leftovers(world.engine)


def test_archives_are_loaded_through_any_chunking(world: World) -> None:
    image = holder_image(AMD64)
    chunks = (image.archive[at : at + 700] for at in range(0, len(image.archive), 700))
    loaded = world.engine.load_archive(chunks, len(image.archive), SilentReporter())
    assert loaded == (image.image_id,)


def test_changes_name_what_was_written_outside_the_mounts(world: World) -> None:
    calls = (ProbeCall(syscall="openat", arguments=(-100, b"/left\0", 0o101, 0o644)),)
    image = world.image(calls, lambda _files: SimulatedEnd(changed=("/left",)))
    world.volumes()
    world.holder()
    options = world.options(image)
    sealed = world.entrant(image)
    world.engine.start_container(sealed)
    assert world.engine.wait_for_exit(sealed, 10)
    assert "/left" not in {change.path for change in world.engine.changes(sealed)}
    writable = options | {
        "User": "0:0",
        "HostConfig": options["HostConfig"] | {"ReadonlyRootfs": False},
    }
    container = world.engine.create_container(world.name("entrant2"), writable)
    world.engine.put_archive(container, "/", (tar_of({"made/there": b""}),))
    world.engine.start_container(container)
    assert world.engine.wait_for_exit(container, 10)
    found = {change.path: change.kind for change in world.engine.changes(container)}
    assert found["/left"] is ChangeKind.ADDED
    assert found["/made/there"] is ChangeKind.ADDED
