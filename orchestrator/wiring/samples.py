"""Put together what makes samples and images: no run needs any of it."""

from __future__ import annotations

import os
from datetime import timedelta
from importlib import resources
from pathlib import Path

from manifests.editions import Edition, Track
from manifests.errors import RefusedByPolicy
from orchestrator.images.build_image import BuiltEntry, build_image
from orchestrator.images.python.image_builder import PythonImageBuilder
from orchestrator.images.rules.image_archive import TarEntry
from orchestrator.samples.files.sample_folder import SampleFolder
from orchestrator.samples.sample_edition import SampleRequest, make_sample_edition
from orchestrator.samples.train_baselines import PROGRAM_OF_TRACK, train_baseline
from orchestrator.support.system_clock import SystemClock


def image_cache() -> Path:
    """Return the folder that keeps base layers of images which piste builds itself."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "piste"


def make_sample(
    folder: Path, *, track: Track, clips: int, seed: int, edition: str, consumer: str | None
) -> Edition:
    """Write a sample edition that is open from today for a year."""
    if folder.exists() and any(folder.iterdir()):
        raise RefusedByPolicy(f"{folder}: not empty; name a new folder for the sample")
    now = SystemClock().now()
    today = now.replace(hour=0, minute=0, second=0)
    request = SampleRequest(
        edition=edition,
        opens=today,
        closes=today + timedelta(days=365),
        track=track,
        clips=clips,
        seed=seed,
        consumer=consumer,
    )
    return make_sample_edition(SampleFolder(folder), request)


def build_baseline(track: Track, output: Path) -> BuiltEntry:
    """Build the shipped baseline of a track: its program and what it learned."""
    program, knowledge_file = PROGRAM_OF_TRACK[track]
    entrants = resources.files("orchestrator.samples.baselines")
    builder = PythonImageBuilder(image_cache())
    entries = (
        TarEntry(path=f"/app/{program}", data=entrants.joinpath(program).read_bytes()),
        TarEntry(path=f"/app/{knowledge_file}", data=train_baseline(track)),
    )
    image_id = builder.build_program(
        entries, output, distributions=(), entrypoint=(f"/app/{program}",)
    )
    return BuiltEntry(path=output, image_id=image_id, files=len(entries))


def build_program(
    folder: Path, output: Path, *, main: str, distributions: tuple[str, ...]
) -> BuiltEntry:
    """Build an entrant's folder into an image."""
    return build_image(
        folder,
        output,
        builder=PythonImageBuilder(image_cache()),
        main=main,
        distributions=distributions,
    )
