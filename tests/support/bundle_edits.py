"""Take exported bundles apart, change them as an attacker would, and put them together again."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from manifests.digests import sha256_hex
from manifests.dsse import Envelope, Signature, pre_authentication_encoding, render_envelope
from manifests.encoding import canonical_json
from manifests.runs import RunRecord
from manifests.statements import SCORER_KINDS, STATEMENT, KeyRole, Statement
from manifests.sums import render_sums
from orchestrator.evidence.files.evidence_tar import EvidenceTar
from orchestrator.evidence.rules.bundle import (
    BUNDLE_FILE,
    LOG_CHECKPOINT,
    LOG_ENTRIES,
    bundle_bytes,
    parse_bundle,
    top_folder,
)
from orchestrator.keys.signing_port import Signer, SigningKeys
from orchestrator.ledger.append import seal_entry, sign_checkpoint
from orchestrator.ledger.rules.merkle import CompactRange, leaf_hash
from orchestrator.runs.rules.run_files import (
    IN_TOTO_PAYLOAD_TYPE,
    SUMS,
    UNLISTED,
    in_toto_statement,
    is_private,
)
from orchestrator.support.tar.deterministic_tar import tar_chunks

Files = dict[str, bytes]


def unpack(path: Path) -> Files:
    """Return a bundle's files by name, without the top folder."""
    tar = EvidenceTar(path)
    assert tar.faults == ()
    return {name: b"".join(tar.stream(name)) for name in tar.names}


def pack(files: Mapping[str, bytes], path: Path, *, top: str = "piste-bundle") -> Path:
    """Write `files` as a canonical tar."""
    members = ((f"{top}/{name}", len(files[name]), (files[name],)) for name in sorted(files))
    path.write_bytes(b"".join(tar_chunks(members)))
    return path


def resummed(files: Mapping[str, bytes]) -> Files:
    """Return the bundle with sums that fit again: anybody can do that."""
    kept = {name: data for name, data in files.items() if name != SUMS}
    return kept | {SUMS: render_sums({name: sha256_hex(data) for name, data in kept.items()})}


def rederived(files: Mapping[str, bytes]) -> Files:
    """Return the bundle with a bundle.json and sums that fit again."""
    document = parse_bundle(files[BUNDLE_FILE], source=BUNDLE_FILE)
    runs = sorted({name.split("/")[1] for name in files if name.startswith("runs/")})
    size = files[LOG_ENTRIES].count(b"\n")
    changed = document.model_copy(update={"runs": tuple(runs), "statements": size})
    return resummed({**files, BUNDLE_FILE: bundle_bytes(changed)})


def top_of(files: Mapping[str, bytes]) -> str:
    """Return the top folder that an export of these files has."""
    return top_folder(parse_bundle(files[BUNDLE_FILE], source=BUNDLE_FILE))


def flipped(data: bytes, at: int, mask: int = 1) -> bytes:
    """Return `data` with one byte changed."""
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def entries_of(files: Mapping[str, bytes]) -> list[bytes]:
    """Return the log's envelopes in order."""
    return files[LOG_ENTRIES].splitlines()


def with_entries(files: Mapping[str, bytes], entries: Iterable[bytes]) -> Files:
    """Return the bundle with other envelopes, everything that follows from them made anew."""
    return rederived({**files, LOG_ENTRIES: b"".join(entry + b"\n" for entry in entries)})


def statement_of(envelope: bytes) -> dict[str, Any]:
    """Return an envelope's payload, parsed."""
    found: dict[str, Any] = json.loads(base64.b64decode(json.loads(envelope)["payload"]))
    return found


def with_payload(envelope: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return the envelope with a changed payload and the old signature."""
    statement, outer = statement_of(envelope), json.loads(envelope)
    change(statement)
    outer["payload"] = base64.b64encode(canonical_json(statement)).decode("ascii")
    return canonical_json(outer)


def position_of(entries: list[bytes], kind: str, *, run_id: str | None = None) -> int:
    """Return where the first statement of this kind (and run) stands."""
    return next(
        place
        for place, statement in enumerate(map(statement_of, entries))
        if statement["kind"] == kind and run_id in {None, statement.get("run_id")}
    )


def relogged(
    files: Mapping[str, bytes],
    statements: Iterable[Statement],
    *,
    keys: SigningKeys,
    origin: str,
    later_keys: SigningKeys | None = None,
) -> Files:
    """Return the bundle with a log that an insider signed anew from its first statement.

    `later_keys` sign what stands behind a rotation.
    """
    tree, envelopes = CompactRange(), []
    for sequence, statement in enumerate(statements):
        role: KeyRole = "scorer" if statement.kind in SCORER_KINDS else "run"
        stamped = statement.model_copy(update={"sequence": sequence})
        entry, _ = seal_entry(stamped, keys.signer(role))
        tree, _ = tree.append(leaf_hash(entry.envelope))
        envelopes.append(entry.envelope)
        if statement.kind == "key-rotated":
            keys = later_keys or keys
    note = sign_checkpoint(origin, tree, keys.signer("log"))
    return with_entries({**files, LOG_CHECKPOINT: note}, envelopes)


def parsed(entries: Iterable[bytes]) -> list[Statement]:
    """Return the statements of envelopes."""
    return [STATEMENT.validate_python(statement_of(entry)) for entry in entries]


def resigned_run(files: Mapping[str, bytes], run_id: str, signer: Signer) -> Files:
    """Return the bundle with a run folder that whoever holds `signer` signed anew."""
    prefix = f"runs/{run_id}/"
    pem = signer.public_key.pem.encode("ascii")
    own = {
        name.removeprefix(prefix): data
        for name, data in files.items()
        if name.startswith(prefix) and "/scores/" not in name
    } | {"run.pub": pem}
    listed = {
        name: sha256_hex(data)
        for name, data in own.items()
        if name not in UNLISTED and not is_private(name)
    }
    own[SUMS] = render_sums(listed)
    own["SHA256SUMS.sig"] = base64.b64encode(signer.sign(own[SUMS])) + b"\n"
    record = RunRecord.model_validate_json(own["run.json"])
    subjects = listed | {SUMS: sha256_hex(own[SUMS])}
    payload = canonical_json(in_toto_statement(record, subjects, builder="0.1.0"))
    own["run.dsse.json"] = signed_envelope(payload, signer)
    return resummed({**files, **{prefix + name: data for name, data in own.items()}})


def signed_envelope(payload: bytes, signer: Signer) -> bytes:
    """Return an in-toto envelope over any payload."""
    signature = signer.sign(pre_authentication_encoding(IN_TOTO_PAYLOAD_TYPE, payload))
    key_id = signer.public_key.key_id
    return render_envelope(
        Envelope(
            payload=payload,
            payload_type=IN_TOTO_PAYLOAD_TYPE,
            signatures=(Signature(key_id=key_id, signature=signature),),
        )
    )


def edited_json(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a readable JSON document with one change, in the form in which it is written."""
    document = json.loads(data)
    change(document)
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False)
    return text.encode("utf-8") + b"\n"


def digest_of(path: Path) -> str:
    """Return a file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
