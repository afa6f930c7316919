"""Write a run folder's evidence from the ledger and the kept files; writing it again is harmless.

`run.json` is rendered from the run's statements, the sums from the folder, and both are signed
with the run key. A kill in between leaves a folder that the next call completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from manifests.digests import sha256_of_chunks
from manifests.dsse import Envelope, Signature, pre_authentication_encoding, render_envelope
from manifests.encoding import canonical_json
from manifests.errors import PlatformFault
from manifests.runs import RunRecord
from orchestrator.runs.rules.run_files import (
    ENVELOPE,
    IN_TOTO_PAYLOAD_TYPE,
    POSE_FOLDER,
    PRIVATE_SUMS,
    PUBLIC_KEY,
    RECORD,
    SCORES_FOLDER,
    UNLISTED,
    in_toto_statement,
    record_bytes,
    run_folder,
)
from orchestrator.runs.rules.run_record import certified_run_number, run_history, run_record
from orchestrator.runs.signed_folder import sign_folder
from orchestrator.workspace.ports import WorkspaceStore
from orchestrator.workspace.workspace import Workspace


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
    store.replace(f"{folder}/{RECORD}", record_bytes(record))
    subjects = sign_folder(workspace, folder, _digests(store, folder), role="run")
    store.replace(f"{folder}/{ENVELOPE}", _envelope(workspace, record, subjects))
    return record


def _digests(store: WorkspaceStore, folder: str) -> dict[str, str]:
    names = store.list_names(folder)
    poses = [f"{POSE_FOLDER}/{name}" for name in store.list_names(f"{folder}/{POSE_FOLDER}")]
    made = {*UNLISTED, PRIVATE_SUMS, PUBLIC_KEY, POSE_FOLDER, SCORES_FOLDER}
    kept = [name for name in names if name not in made] + poses
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
