"""The run folder of a real certified run, checked with the tools of others."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from manifests.digests import sha256_hex
from manifests.outcomes import Outcome
from orchestrator.images.python.python_image import BuiltImage
from tests.support.certify_fixtures import Organizer

pytestmark = pytest.mark.docker

DSSE_RECIPE = """
jq -rj .payload run.dsse.json | base64 -d > payload.json; PT=$(jq -rj .payloadType run.dsse.json)
{ printf 'DSSEv1 %d %s %d ' ${#PT} "$PT" $(wc -c <payload.json); cat payload.json; } > pae.bin
jq -rj '.signatures[0].sig' run.dsse.json | base64 -d > sig.der
openssl dgst -sha256 -verify run.pub -signature sig.der pae.bin
"""
SUMS_RECIPE = """
base64 -d SHA256SUMS.sig > s.der && openssl dgst -sha256 -verify run.pub -signature s.der SHA256SUMS
"""


def needs(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, capture_output=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def folder(organizer: Organizer, honest_archive: BuiltImage) -> Path:
    """The folder of one certified run."""
    run = organizer.certify(honest_archive.path, team=organizer.new_team())
    assert run.record.outcome is Outcome.COMPLETED
    return Path(run.folder)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A copy of the run folder to write into."""
    shutil.copytree(folder, tmp_path / "run")
    return tmp_path / "run"


def test_sha256sum_checks_the_whole_folder(folder: Path, copy: Path) -> None:
    needs("sha256sum")
    assert shell("sha256sum -c --strict SHA256SUMS", folder).returncode == 0
    assert shell("sha256sum -c --strict private.sha256", folder).returncode == 0
    listed = {
        line.split("  ")[1]
        for name in ("SHA256SUMS", "private.sha256")
        for line in (folder / name).read_text().splitlines()
    }
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    unlisted = {"SHA256SUMS", "SHA256SUMS.sig", "run.dsse.json"}
    assert {name for name in files - listed if not name.startswith("scores/")} == unlisted
    with (copy / "predictions.jsonl").open("ab") as file:
        file.write(b" ")
    assert shell("sha256sum -c --strict SHA256SUMS", copy).returncode == 1


def test_openssl_verifies_the_sums_and_the_envelope(copy: Path) -> None:
    needs("openssl", "jq", "base64")
    for recipe in (SUMS_RECIPE, DSSE_RECIPE):
        verified = shell(recipe, copy)
        assert verified.returncode == 0, verified.stderr
        assert b"Verified OK" in verified.stdout
    with (copy / "SHA256SUMS").open("ab") as file:
        file.write(b"#\n")
    assert shell(SUMS_RECIPE, copy).returncode == 1
    envelope = json.loads((copy / "run.dsse.json").read_bytes())
    payload = base64.b64decode(envelope["payload"]).replace(b'"attempt":1', b'"attempt":2')
    envelope["payload"] = base64.b64encode(payload).decode()
    (copy / "run.dsse.json").write_text(json.dumps(envelope))
    assert shell(DSSE_RECIPE, copy).returncode == 1


def test_the_envelopes_subjects_are_the_folders_files(folder: Path) -> None:
    envelope = json.loads((folder / "run.dsse.json").read_bytes())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    subjects = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    assert {"SHA256SUMS", "predictions.jsonl", "run.json", "score.json"} <= set(subjects)
    for name, digest in subjects.items():
        assert sha256_hex((folder / name).read_bytes()) == digest
    predicate = statement["predicate"]
    assert predicate["buildDefinition"]["externalParameters"]["attempt"] == 1


def test_stock_age_opens_the_log_with_the_clips_identity_and_no_other(
    folder: Path, organizer: Organizer
) -> None:
    needs("age")
    keys = organizer.root / "keys"
    opened = {}
    for identity in sorted(keys.glob("*.agekey")):
        ended = subprocess.run(
            ["age", "-d", "-i", str(identity), str(folder / "log.age")],
            capture_output=True,
            timeout=60,
            check=False,
        )
        opened[identity.name] = ended.returncode == 0
    assert opened == {"clips.agekey": True, "labels.agekey": False}


def test_no_file_of_the_folder_is_for_others_to_change(folder: Path) -> None:
    for path in folder.rglob("*"):
        status = path.lstat()
        assert not status.st_mode & 0o022
        assert status.st_uid == os.getuid()
