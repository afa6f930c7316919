"""What an entrant that means harm is made of, and the small profiles that it runs under.

Where the sandbox has to stop an act, the program checks that it was stopped, with which error, and
then answers honestly: `completed` says that the sandbox held, exit code 7 that something was let
through.
"""

from __future__ import annotations

import io
import json
import tarfile
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.images.python import python_installation
from orchestrator.images.python.python_image import BuiltImage, build_python_image, python_program
from orchestrator.images.rules.image_archive import ImageSettings, TarEntry
from sandbox_profiles.profile import SandboxProfile, load_profile

HERE = f"linux/{python_installation.architecture()}"
ELSEWHERE = "linux/arm64" if HERE == "linux/amd64" else "linux/amd64"
SOMEBODY_ELSE = "fedcba9876543210"
"""The id of a run that is none of ours."""

LET_THROUGH = 7

_MIB = 2**20

SMALL_PROFILE: SandboxProfile = load_profile("certified").model_copy(
    update={
        "name": "small",
        "memory_bytes": 384 * _MIB,
        "cpus": 1,
        "cpuset": "0",
        "pids": 64,
        "deadline_s": 90,
        "tmp_bytes": 16 * _MIB,
        "shm_bytes": 16 * _MIB,
    }
)
"""Little of everything, and time enough for a busy machine."""

HASTY_PROFILE: SandboxProfile = SMALL_PROFILE.model_copy(update={"name": "hasty", "deadline_s": 4})
"""For programs that never end by themselves."""

PRELUDE = f"""
import errno, json, os, signal, socket, struct, subprocess, sys, time

def answer(clips=None):
    exam = json.load(open("/input/exam.json"))
    gloss = open("/input/vocabulary.txt").readline().strip()
    with open("/output/predictions.jsonl", "w") as out:
        for clip in exam["clips"]:
            known = json.load(open(f"/input/annotations/{{clip}}.json"))
            line = {{"clip_id": clip, "signs": [gloss] * len(known["segments"])}}
            out.write(json.dumps(line) + "\\n")

def stopped(act, *errors):
    try:
        act()
    except OSError as error:
        name = errno.errorcode.get(error.errno, str(error.errno))
        if name in errors or (not errors and isinstance(error, socket.gaierror)):
            return
        print("stopped, but by", error, flush=True)
    sys.exit({LET_THROUGH})
"""
"""What every program of this list begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileImage:
    """One entrant. Either it runs and ends in `outcome`, or it is `refused` with these words."""

    name: str
    source: str
    outcome: Outcome = Outcome.COMPLETED
    diagnostics: tuple[Diagnostic, ...] = ()
    """All that have to be told; more may be."""
    refused: str | None = None
    profile: SandboxProfile = SMALL_PROFILE
    settings: ImageSettings = field(default_factory=ImageSettings)
    entries: tuple[TarEntry, ...] = ()
    platform: str = HERE
    repo_tags: tuple[str, ...] | None = None
    """Tags that the archive claims."""

    def build(self, destination: Path, *, cache: Path) -> BuiltImage:
        """Write the image as a docker-archive; every call makes another image."""
        labels = dict(self.settings.labels) | {"test": uuid.uuid4().hex}
        image = python_program(
            PRELUDE + self.source,
            entries=self.entries,
            settings=replace(self.settings, labels=labels),
        )
        built = build_python_image(replace(image, platform=self.platform), destination, cache=cache)
        if self.repo_tags is not None:
            claim_tags(destination, self.repo_tags)
        return built


def claim_tags(archive: Path, tags: tuple[str, ...]) -> None:
    """Append a manifest.json that claims `tags`; the older one is taken out."""
    with tarfile.open(archive) as tar:
        old = tar.extractfile("manifest.json")
        assert old is not None
        manifest = json.loads(old.read())
        # the manifest is the last member: what follows its header is written anew
        offset = tar.getmember("manifest.json").offset
    manifest[0]["RepoTags"] = list(tags)
    data = json.dumps(manifest).encode()
    member = tarfile.TarInfo("manifest.json")
    member.size = len(data)
    with archive.open("r+b") as file:
        file.truncate(offset)
        file.seek(offset)
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.addfile(member, io.BytesIO(data))
