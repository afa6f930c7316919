"""The form of a clumsy entrant: what it does, how that ends, and what a dry run has to say of it.

`cause` is the first finding's cause. None: the program works, and nothing is to be said.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from manifests.outcomes import Outcome
from orchestrator.entrants.rules.findings import Cause
from orchestrator.images.python.python_image import (
    BuiltImage,
    build_python_image,
    python_program,
)
from orchestrator.images.rules.image_archive import ImageSettings, TarEntry
from sandbox_profiles.profile import SandboxProfile
from tests.support.hostile_image import HERE, SMALL_PROFILE

PRELUDE = """
import json, os, sys, time

def lines():
    exam = json.load(open("/input/exam.json"))
    gloss = open("/input/vocabulary.txt").readline().strip()
    for clip in exam["clips"]:
        known = json.load(open(f"/input/annotations/{clip}.json"))
        yield {"clip_id": clip, "signs": [gloss] * len(known["segments"])}

def write(found, path="/output/predictions.jsonl"):
    with open(path, "w") as out:
        for line in found:
            out.write(json.dumps(line) + "\\n")

def answer():
    write(lines())
"""
"""What every program of this list begins with."""

PASSWD = TarEntry(path="/etc/passwd", data=b"root:x:0:0::/root:/bin/sh\n")
ENTRANT = TarEntry(path="/etc/passwd", data=PASSWD.data + b"entrant:x:65532:65532::/tmp:/bin/sh\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClumsyImage:
    """One entrant. A `refused` one never starts; `needs` is a distribution that it brings along."""

    name: str
    source: str
    cause: Cause | None
    outcome: Outcome | None = Outcome.COMPLETED
    profile: SandboxProfile = SMALL_PROFILE
    settings: ImageSettings = field(default_factory=ImageSettings)
    entries: tuple[TarEntry, ...] = ()
    platform: str = HERE
    repeat: int = 1
    needs: str | None = None
    remedy: str = ""
    """A word that the remedy has to hold."""

    @property
    def missing(self) -> str | None:
        """Return the distribution that this machine would have to have, if it has not."""
        if self.needs is None:
            return None
        try:
            distribution(self.needs)
        except PackageNotFoundError:
            return self.needs
        return None

    def build(self, destination: Path, *, cache: Path) -> BuiltImage:
        """Write the image as a docker-archive; every call makes another image."""
        labels = {"test": uuid.uuid4().hex}
        image = python_program(
            PRELUDE + self.source,
            entries=self.entries,
            distributions=() if self.needs is None else (self.needs,),
            settings=replace(self.settings, labels=labels),
        )
        return build_python_image(replace(image, platform=self.platform), destination, cache=cache)


def fails(name: str, cause: Cause, source: str, **fields: object) -> ClumsyImage:
    values = {"outcome": Outcome.NONZERO_EXIT} | fields
    return ClumsyImage(name=name, cause=cause, source=source, **values)  # type: ignore[arg-type]


def invalid(name: str, source: str, cause: Cause = Cause.INVALID_PREDICTIONS) -> ClumsyImage:
    return fails(name, cause, source, outcome=Outcome.INVALID_PREDICTIONS)


def works(name: str, source: str, **fields: object) -> ClumsyImage:
    return ClumsyImage(name=name, cause=None, source=source, **fields)  # type: ignore[arg-type]
