"""Small sealed editions of translation and segmentation, and the images that answer them."""

from __future__ import annotations

import json
import os
import tarfile
import uuid
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import requests

from manifests.digests import oci_digest
from manifests.editions import Track
from manifests.encoding import canonical_json
from manifests.oci import OCI_CONFIG, OCI_LAYER, OCI_MANIFEST
from orchestrator.images.python.python_image import BuiltImage, build_python_image, python_program
from orchestrator.images.rules.image_archive import ImageSettings, TarEntry
from orchestrator.runs.run_host import RunHost
from orchestrator.samples.train_baselines import PROGRAM_OF_TRACK, train_baseline
from orchestrator.support.reporter import SilentReporter
from orchestrator.wiring import samples as sample_wiring
from orchestrator.wiring import workspaces as wiring
from sandbox_profiles.profile import SandboxProfile
from tests.support.certify_fixtures import Organizer
from tests.support.hostile_image import SMALL_PROFILE

if TYPE_CHECKING:
    from tests.support.engine_fixtures import LocalRegistry

TRAINING_CLIPS = 120
CLIPS = 8


def write_edition(
    folder: Path,
    *,
    track: Track,
    edition: str,
    consumer: str | None = None,
    profile: SandboxProfile = SMALL_PROFILE,
    extra: str = "",
) -> Path:
    """Write a sample edition of a track under a small profile; return its edition.yaml.

    Every call draws other clips: tests that run beside this one look for theirs on the disk.
    """
    seed = int.from_bytes(os.urandom(4), "big")
    sample_wiring.make_sample(
        folder, track=track, clips=CLIPS, seed=seed, edition=edition, consumer=consumer
    )
    (folder / "profile.yaml").write_text(json.dumps(profile.model_dump(mode="json")))
    file = folder / "edition.yaml"
    text = file.read_text().replace("profile: certified", "profile: profile.yaml")
    file.write_text(f"{text}{extra}")
    return file


def seal_edition(root: Path, file: Path) -> None:
    """Seal a written edition in the workspace at `root`."""
    wiring.seal(wiring.open_workspace(root), file, SilentReporter())


def quick_host(organizer: Organizer) -> RunHost:
    """Return this machine as a host that tests each profile once, not before every run."""
    made = organizer.host()
    passed: set[str] = set()

    def once(profile: SandboxProfile, run_id: str) -> None:
        if profile.sha256() not in passed:
            made.self_test(profile, run_id)
            passed.add(profile.sha256())

    return replace(made, self_test=once)


def baseline_archive(
    track: Track, destination: Path, *, cache: Path, around: str | None = None
) -> BuiltImage:
    """Write an image of the shipped baseline; `around` is a program that imports it instead.

    Every call makes another image.
    """
    program, knowledge = PROGRAM_OF_TRACK[track]
    source = resources.files("orchestrator.samples.baselines").joinpath(program).read_bytes()
    module = program.removesuffix(".py")
    start = f"""
        from pathlib import Path
        import {module}
        {module}.main(Path("/input"), Path("/output"), Path("/app/{knowledge}"))
    """
    image = python_program(
        "\n".join(line.strip() for line in start.splitlines()) + "\n" + (around or ""),
        entries=(
            TarEntry(path=f"/app/{program}", data=source),
            TarEntry(path=f"/app/{knowledge}", data=train_baseline(track, clips=TRAINING_CLIPS)),
        ),
        settings=ImageSettings(labels={"test": uuid.uuid4().hex}),
    )
    return build_python_image(image, destination, cache=cache)


def push_archive(registry: LocalRegistry, archive: Path) -> str:
    """Push a `docker save` archive to the registry on loopback; return `repo@sha256:…`."""
    with tarfile.open(archive) as tar:

        def read(name: str) -> bytes:
            member = tar.extractfile(name)
            assert member is not None
            return member.read()

        listed = json.loads(read("manifest.json"))[0]
        config = read(listed["Config"])
        registry.push_blob(config)
        for name in listed["Layers"]:
            registry.push_blob(read(name))
        diff_ids = json.loads(config)["rootfs"]["diff_ids"]
        sizes = [tar.getmember(name).size for name in listed["Layers"]]
    layers = [
        {"mediaType": OCI_LAYER, "digest": digest, "size": size}
        for digest, size in zip(diff_ids, sizes, strict=True)
    ]
    described = {"mediaType": OCI_CONFIG, "digest": oci_digest(config), "size": len(config)}
    document = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described}
    digest = registry.push_manifest(canonical_json(document | {"layers": layers}), OCI_MANIFEST)
    return f"{registry.name}@{digest}"


def forget_manifest(reference: str) -> None:
    """Delete a manifest from the registry, as a registry that loses an image does."""
    repository, _, digest = reference.partition("@")
    host, _, name = repository.partition("/")
    done = requests.delete(f"http://{host}/v2/{name}/manifests/{digest}", timeout=10)
    assert done.status_code == 202, done.text
