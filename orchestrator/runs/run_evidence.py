"""Write a run folder's evidence from the ledger and the kept files; writing it again is harmless.

`run.json` is rendered from the run's statements, the sums from the folder, and both are signed
with the run key. A kill in between leaves a folder that the next call completes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib.metadata import version

from manifests.digests import sha256_hex, sha256_of_chunks
from manifests.dsse import Envelope, Signature, pre_authentication_encoding, render_envelope
from manifests.encoding import canonical_json
from manifests.errors import PlatformFault
from manifests.runs import RunRecord
from manifests.sums import render_sums
from orchestrator.runs.rules.run_files import (
    ENVELOPE,
    IN_TOTO_PAYLOAD_TYPE,
    PRIVATE_SUMS,
    PUBLIC_KEY,
    RECORD,
    SUMS,
    SUMS_SIGNATURE,
    UNLISTED,
    in_toto_statement,
    is_private,
    record_bytes,
)
from orchestrator.runs.rules.run_record import certified_run_number, run_history, run_record
from orchestrator.workspace.ports import WorkspaceStore
from orchestrator.workspace.workspace import Workspace

POSE_FOLDER = "pose"


def run_folder(run_id: str) -> str:
    """Return a run's folder below the workspace."""
    return f"runs/{run_id}"


def has_evidence(store: WorkspaceStore, run_id: str) -> bool:
    """Tell whether the run's evidence is complete: the envelope is written last."""
    return store.exists(f"{run_folder(run_id)}/{ENVELOPE}")


def load_record(workspace: Workspace, run_id: str) -> RunRecord:
    """Return the run's record as the ledger tells it now."""
    ledger = workspace.ledger
    history = run_history(entry.statement for entry in ledger.entries(run_id=run_id))
    team = [
        entry.statement
        for entry in ledger.entries(edition=history.reserved.edition, team=history.reserved.team)
    ]
    return run_record(history, certified_run=certified_run_number(team, run_id))


def write_evidence(workspace: Workspace, run_id: str) -> RunRecord:
    """Write record, sums, signature and envelope of a run that is finished or voided.

    Raises:
        PlatformFault: a kept file is not the one that the ledger names.

    """
    store, folder = workspace.store, run_folder(run_id)
    record = load_record(workspace, run_id)
    _check_kept_files(store, folder, record)
    signer = workspace.signing.signer("run")
    store.replace(f"{folder}/{RECORD}", record_bytes(record))
    store.replace(f"{folder}/{PUBLIC_KEY}", signer.public_key.pem.encode("ascii"))
    digests = _digests(store, folder)
    private = {name: digest for name, digest in digests.items() if is_private(name)}
    public = {name: digest for name, digest in digests.items() if not is_private(name)}
    public.pop(PRIVATE_SUMS, None)
    if private:
        private_sums = render_sums(private)
        store.replace(f"{folder}/{PRIVATE_SUMS}", private_sums)
        public[PRIVATE_SUMS] = sha256_hex(private_sums)
    sums = render_sums(public)
    store.replace(f"{folder}/{SUMS}", sums)
    signature = base64.b64encode(signer.sign(sums)) + b"\n"
    store.replace(f"{folder}/{SUMS_SIGNATURE}", signature)
    subjects = public | {SUMS: sha256_hex(sums)}
    store.replace(f"{folder}/{ENVELOPE}", _envelope(workspace, record, subjects))
    return record


def _digests(store: WorkspaceStore, folder: str) -> dict[str, str]:
    names = [*store.list_names(folder)]
    poses = [f"{POSE_FOLDER}/{name}" for name in store.list_names(f"{folder}/{POSE_FOLDER}")]
    kept = [name for name in names if name not in {*UNLISTED, POSE_FOLDER, "scores"}] + poses
    return {name: sha256_of_chunks(store.stream(f"{folder}/{name}")) for name in kept}


def _check_kept_files(store: WorkspaceStore, folder: str, record: RunRecord) -> None:
    for name, expected in record.files.items():
        found = sha256_of_chunks(store.stream(f"{folder}/{name}"))
        if found != expected:
            raise PlatformFault(
                f"{store.root}/{folder}/{name}: SHA-256 {found[:16]}…, but the ledger recorded "
                f"{expected[:16]}…; restore the file from a backup"
            )


def _envelope(workspace: Workspace, record: RunRecord, subjects: Mapping[str, str]) -> bytes:
    signer = workspace.signing.signer("run")
    payload = canonical_json(in_toto_statement(record, subjects, builder=version("piste")))
    signature = Signature(
        key_id=signer.public_key.key_id,
        signature=signer.sign(pre_authentication_encoding(IN_TOTO_PAYLOAD_TYPE, payload)),
    )
    return render_envelope(
        Envelope(payload=payload, payload_type=IN_TOTO_PAYLOAD_TYPE, signatures=(signature,))
    )
