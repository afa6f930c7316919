"""Dry runs through the command line on a real engine: what is counted, shown, kept and removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.images.python.python_image import BuiltImage
from orchestrator.images.rules.image_archive import (
    ImageSettings,
    TarEntry,
    config_document,
    layer_from_entries,
)
from orchestrator.sandbox.parts import list_leftovers
from orchestrator.sandbox.rules.elf import Architecture, ProbeCall, syscall_probe_elf
from orchestrator.wiring import samples as sample_wiring
from tests.support.clumsy_image import PRELUDE, ClumsyImage
from tests.support.clumsy_images import CLUMSY
from tests.support.engine_fixtures import Build, LocalRegistry, SmallImage
from tests.support.hostile_image import SMALL_PROFILE

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
PISTE = (sys.executable, "-c", "from orchestrator.cli.main import main; main()")
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to look into a container")


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two open clips."""
    root = tmp_path_factory.mktemp("open") / "clips"
    sample_wiring.make_sample(
        root, track="recognition", clips=2, seed=7, edition="open-2026", consumer=None
    )
    return root


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "small.yaml"
    path.write_text(json.dumps(SMALL_PROFILE.model_dump(mode="json")))
    return path


def arguments(image: str | Path, clips: Path, profile: Path, *more: str) -> list[str]:
    start = [*PISTE, "dry-run", str(image), "--clips", str(clips), "--profile", str(profile)]
    return [*start, *more]


def dry_run(image: str | Path, clips: Path, profile: Path, *more: str) -> tuple[int, Any, str]:
    """Run the command with --json; return exit code, document and stderr."""
    done = subprocess.run(
        arguments(image, clips, profile, "--json", *more),
        capture_output=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    document = json.loads(done.stdout) if done.stdout else None
    return done.returncode, document, done.stderr.decode()


def clumsy(name: str) -> ClumsyImage:
    (image,) = [image for image in CLUMSY if image.name == name]
    return image


def program(name: str) -> str:
    """Return the source of a clumsy image, prelude included."""
    return PRELUDE + clumsy(name).source


@NEEDS_ROOT
def test_attempts_on_the_network_are_counted_and_loopback_is_not(
    warm_engine: DockerEngine, build_image: Build, clips: Path, profile: Path
) -> None:
    tried = build_image(program("reports-telemetry-if-it-can"))
    code, document, _ = dry_run(tried.path, clips, profile)
    assert code == 0
    assert document["network"] == {"attempts": 1, "unmeasured": None}
    assert [one["cause"] for one in document["findings"]] == ["network"]
    local = build_image(program("talks-to-itself-over-loopback") + "time.sleep(0.5)\n")
    code, document, _ = dry_run(local.path, clips, profile)
    assert code == 0
    assert document["network"] == {"attempts": 0, "unmeasured": None}
    assert document["findings"] == []


@NEEDS_ROOT
def test_peaks_are_measured_against_their_limits(
    warm_engine: DockerEngine, build_image: Build, clips: Path, profile: Path
) -> None:
    uses = build_image(
        program("answers-plainly")
        + """
import threading
held = bytearray(b"x") * (64 << 20)
with open("/tmp/model.bin", "wb") as out:
    out.write(bytes(4 << 20))
with open("/dev/shm/part", "wb") as out:
    out.write(bytes(2 << 20))
for _ in range(5):
    threading.Thread(target=time.sleep, args=(2,)).start()
time.sleep(2)
"""
    )
    code, document, _ = dry_run(uses.path, clips, profile)
    assert code == 0
    peaks = document["peaks"]
    mib = 2**20
    assert 64 * mib < peaks["memory_bytes"]["peak"] <= peaks["memory_bytes"]["limit"]
    assert 4 * mib <= peaks["tmp_bytes"]["peak"] < 5 * mib
    assert 2 * mib <= peaks["shm_bytes"]["peak"] < 3 * mib
    assert 6 <= peaks["processes"]["peak"] < 12
    assert document["score"]["public"]["counts"]["clips"] == 2


def test_an_image_of_the_engines_own_stays_and_is_named_by_its_id(
    warm_engine: DockerEngine,
    build_image: Build,
    brought_in: list[str],
    clips: Path,
    profile: Path,
) -> None:
    built: BuiltImage = build_image(program("answers-plainly"))
    subprocess.run(["docker", "load", "-i", str(built.path)], check=True, capture_output=True)
    brought_in.append(built.image_id)
    code, document, _ = dry_run(f"engine:{built.image_id}", clips, profile)
    assert (code, document["image_removed"]) == (0, False)
    assert document["image"]["config_digest"] == built.image_id
    assert warm_engine.inspect_image(built.image_id) is not None


def test_ctrl_c_leaves_no_container_volume_image_or_sample(
    warm_engine: DockerEngine, build_image: Build, profile: Path, tmp_path: Path
) -> None:
    built = build_image("print('begun', flush=True)\nimport time\ntime.sleep(60)\n")
    before = set(list_leftovers(warm_engine))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [*PISTE, "dry-run", str(built.path), "--profile", str(profile)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=dict(os.environ) | {"TMPDIR": str(temporary)},
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"begun" in line:
                break
        ours = set(list_leftovers(warm_engine)) - before
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
        assert process.wait(60) == 4, said
    assert ours, "the run was not seen at the engine"
    assert "interrupted" in said
    assert "Traceback" not in said
    remaining = ours & set(list_leftovers(warm_engine))
    give_up = time.monotonic() + 60
    while remaining and time.monotonic() < give_up:  # other tests' runs end by themselves
        time.sleep(0.5)
        remaining &= set(list_leftovers(warm_engine))
    assert remaining == set()
    assert warm_engine.inspect_image(built.image_id) is None
    assert list(temporary.iterdir()) == []


def test_the_screen_ends_with_the_verdict_and_stays_short(
    warm_engine: DockerEngine, image_cache: Path, clips: Path, profile: Path, tmp_path: Path
) -> None:
    built = clumsy("weights-for-root-alone").build(tmp_path / "image.tar", cache=image_cache)
    done = subprocess.run(
        arguments(built.path, clips, profile),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
        env=dict(os.environ) | {"COLUMNS": "80"},
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("root-only-files: ")
    assert "/opt/model/weights.bin" in lines[1] + lines[2]
    words = " ".join(done.stdout.split())
    assert words.endswith(
        "A certified run would record nonzero-exit (exit-failure, output-empty) and not score it."
    )


def test_a_malformed_archive_ends_with_2_and_one_line(
    clips: Path, profile: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.tar"
    broken.write_bytes(b"no tar at all")
    code, document, said = dry_run(broken, clips, profile)
    assert code == 2
    assert document["error"]["kind"] == "MalformedDocument"
    assert len(said.strip().splitlines()) == 1


def test_a_tag_is_resolved_to_a_digest_and_shown(
    engine: DockerEngine, registry: LocalRegistry, clips: Path, profile: Path
) -> None:
    ends_at_once = syscall_probe_elf(Architecture.AMD64, (ProbeCall(syscall="getuid"),))
    layer = layer_from_entries([TarEntry(path="/run", data=ends_at_once, mode=0o755)])
    settings = ImageSettings(entrypoint=("/run",), labels={"test": registry.repository})
    image = SmallImage(config=config_document(settings, [layer.diff_id]), layers=(layer,))
    digest = registry.push_image(image, tag="v1")
    done = subprocess.run(
        arguments(f"{registry.name}:v1", clips, profile),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert f"{registry.name}:v1 is {registry.name}@{digest}" in done.stderr.replace("\n", " ")
    assert "no-predictions (output-empty)" in done.stdout
    assert engine.inspect_image(image.image_id) is None
