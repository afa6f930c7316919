"""The evidence of a run: complete, signed, written anew without harm, and honest about changes."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from manifests.digests import sha256_hex
from manifests.errors import PlatformFault
from orchestrator.runs.finish_run import void_run
from orchestrator.runs.rules.run_files import in_toto_statement, is_private
from orchestrator.runs.run_evidence import has_evidence, load_record, write_evidence
from orchestrator.runs.score_run import score_run
from orchestrator.workspace.workspace import Workspace
from tests.support.small_exams import (
    new_workspace,
    predictions,
    recognition_answers,
    register,
    retain_run,
    seal_edition,
)

EDITION, TEAM = "evidence-final", "nova"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    opened = new_workspace(tmp_path / "workspace")
    seal_edition(opened, tmp_path / "edition", EDITION)
    register(opened, TEAM)
    return opened


@pytest.fixture
def run_id(workspace: Workspace) -> str:
    data = predictions(workspace, EDITION, recognition_answers(wrong=2))
    return retain_run(workspace, EDITION, TEAM, data, files={"log.age": b"encrypted"})


def folder_of(workspace: Workspace, run_id: str) -> Path:
    return workspace.store.root / "runs" / run_id


def sums_of(path: Path) -> dict[str, str]:
    lines = [line.split("  ", 1) for line in path.read_text().splitlines()]
    return {name: digest for digest, name in lines}


def test_every_file_is_listed_once_in_the_public_or_in_the_private_list(
    workspace: Workspace, run_id: str
) -> None:
    score_run(workspace, run_id)
    write_evidence(workspace, run_id)
    folder = folder_of(workspace, run_id)
    public, private = sums_of(folder / "SHA256SUMS"), sums_of(folder / "private.sha256")
    assert not set(public) & set(private)
    assert all(is_private(name) for name in private)
    assert not any(is_private(name) for name in public)
    assert "private.sha256" in public
    files = {path.name for path in folder.iterdir() if path.is_file()}
    assert files - set(public) - set(private) == {"SHA256SUMS", "SHA256SUMS.sig", "run.dsse.json"}
    for name, digest in (public | private).items():
        assert sha256_hex((folder / name).read_bytes()) == digest
    assert list(public) == sorted(public)


def test_the_signature_is_over_the_list_and_by_the_run_key(
    workspace: Workspace, run_id: str
) -> None:
    write_evidence(workspace, run_id)
    folder = folder_of(workspace, run_id)
    key = load_pem_public_key((folder / "run.pub").read_bytes())
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert (
        workspace.signing.signer("run").public_key.pem.encode() == (folder / "run.pub").read_bytes()
    )
    signature = base64.b64decode((folder / "SHA256SUMS.sig").read_bytes())
    sums = (folder / "SHA256SUMS").read_bytes()
    algorithm = ec.ECDSA(hashes.SHA256())
    key.verify(signature, sums, algorithm)
    with pytest.raises(InvalidSignature):
        key.verify(signature, sums + b"\n", algorithm)


def test_writing_the_evidence_again_changes_nothing_but_the_signatures(
    workspace: Workspace, run_id: str
) -> None:
    first = write_evidence(workspace, run_id)
    folder = folder_of(workspace, run_id)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert write_evidence(workspace, run_id) == first
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    signed = {"SHA256SUMS.sig", "run.dsse.json"}
    assert {name for name in before if before[name] != after[name]} <= signed
    assert set(before) == set(after)


def test_a_kept_file_that_is_not_the_recorded_one_is_never_signed(
    workspace: Workspace, run_id: str
) -> None:
    folder = folder_of(workspace, run_id)
    (folder / "predictions.jsonl").write_bytes(b"{}\n")
    with pytest.raises(PlatformFault, match=r"predictions\.jsonl: SHA-256 .* the ledger recorded"):
        write_evidence(workspace, run_id)
    assert not has_evidence(workspace.store, run_id)
    assert not (folder / "SHA256SUMS").exists()


def test_a_kept_file_that_is_gone_is_never_passed_over(workspace: Workspace, run_id: str) -> None:
    (folder_of(workspace, run_id) / "log.age").unlink()
    with pytest.raises(PlatformFault, match=r"log\.age"):
        write_evidence(workspace, run_id)
    assert not has_evidence(workspace.store, run_id)


def test_a_folder_left_half_written_is_completed(workspace: Workspace, run_id: str) -> None:
    write_evidence(workspace, run_id)
    folder = folder_of(workspace, run_id)
    (folder / "run.dsse.json").unlink()
    (folder / "SHA256SUMS").write_bytes(b"half")
    assert not has_evidence(workspace.store, run_id)
    write_evidence(workspace, run_id)
    assert has_evidence(workspace.store, run_id)
    assert "predictions.jsonl" in sums_of(folder / "SHA256SUMS")


def test_the_record_is_what_the_ledger_tells(workspace: Workspace, run_id: str) -> None:
    record = write_evidence(workspace, run_id)
    written = json.loads((folder_of(workspace, run_id) / "run.json").read_bytes())
    assert written == record.model_dump(mode="json")
    assert (written["certified_run"], written["attempt"]) == (1, 1)
    void_run(workspace, run_id, reason="our side failed")
    voided = write_evidence(workspace, run_id)
    assert voided.certified_run is None
    assert voided.voided is not None
    assert load_record(workspace, run_id) == voided
    again = json.loads((folder_of(workspace, run_id) / "run.json").read_bytes())
    assert again["voided"] == {"by": "tool", "reason": "our side failed"}


def test_the_statement_names_image_clips_and_every_public_file(
    workspace: Workspace, run_id: str
) -> None:
    record = write_evidence(workspace, run_id)
    statement = in_toto_statement(record, {"b": "2" * 64, "a": "1" * 64}, builder="1.0")
    assert statement["subject"] == [
        {"name": "a", "digest": {"sha256": "1" * 64}},
        {"name": "b", "digest": {"sha256": "2" * 64}},
    ]
    envelope = json.loads((folder_of(workspace, run_id) / "run.dsse.json").read_bytes())
    signed = json.loads(base64.b64decode(envelope["payload"]))
    names = {each["name"] for each in signed["subject"]}
    assert names == {
        "SHA256SUMS",
        "predictions.jsonl",
        "private.sha256",
        "run.json",
        "run.pub",
    }
    needed = signed["predicate"]["buildDefinition"]["resolvedDependencies"]
    digests = {each["name"]: each["digest"]["sha256"] for each in needed}
    assert digests == {
        "image": record.image.config_digest.removeprefix("sha256:"),
        "clip-set": record.clip_set_sha256,
    }
