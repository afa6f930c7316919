"""Make a folder below `runs/` evidence: its sums, their detached signature and the public key."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Literal

from manifests.digests import sha256_hex
from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.sums import parse_sums, render_sums
from orchestrator.keys.rules.signatures import verify_signature
from orchestrator.runs.rules.run_files import PRIVATE_SUMS, SUMS, SUMS_SIGNATURE, is_private
from orchestrator.workspace.ports import WorkspaceStore
from orchestrator.workspace.workspace import Workspace

SigningRole = Literal["run", "scorer"]


def public_key_file(role: SigningRole) -> str:
    """Return the name under which a folder holds the key that its sums are signed with."""
    return f"{role}.pub"


def sign_folder(
    workspace: Workspace, folder: str, digests: Mapping[str, str], *, role: SigningRole
) -> dict[str, str]:
    """List `digests`, the folder's files by name, and sign the list; the sums come last.

    `SHA256SUMS` lists the public files, `private.sha256` among them, which lists the private
    ones. `SHA256SUMS.sig` is the base64 of the DER
    that `openssl dgst -sha256 -verify run.pub -signature FILE SHA256SUMS` takes.

    Returns the digests of the public files by name, `SHA256SUMS` included.

    Raises:
        RefusedByPolicy: this host does not hold the key of `role`.

    """
    signer = workspace.signing.signer(role)
    store = workspace.store
    public = {name: digest for name, digest in digests.items() if not is_private(name)}
    private = {name: digest for name, digest in digests.items() if is_private(name)}
    added = {public_key_file(role): signer.public_key.pem.encode("ascii")}
    if private:
        added[PRIVATE_SUMS] = render_sums(private)
    for name, data in added.items():
        store.replace(f"{folder}/{name}", data)
        public[name] = sha256_hex(data)
    sums = render_sums(public)
    store.replace(f"{folder}/{SUMS_SIGNATURE}", base64.b64encode(signer.sign(sums)) + b"\n")
    store.replace(f"{folder}/{SUMS}", sums)
    return public | {SUMS: sha256_hex(sums)}


def is_signed(
    workspace: Workspace, folder: str, digests: Mapping[str, str], *, role: SigningRole
) -> bool:
    """Tell whether the folder lists exactly `digests` under a signature by a published key."""
    store = workspace.store
    try:
        sums = store.read_optional(f"{folder}/{SUMS}")
        signature = store.read_optional(f"{folder}/{SUMS_SIGNATURE}")
        pem = store.read_optional(f"{folder}/{public_key_file(role)}")
        if sums is None or signature is None or pem is None:
            return False
        keys = [key for key in workspace.ledger.keyset().published() if key.role == role]
        key = next((key for key in keys if key.pem.encode("ascii") == pem), None)
        if key is None:
            return False
        verify_signature(
            key, message=sums, signature=base64.b64decode(signature), source=f"{folder}/{SUMS}"
        )
        return _listed(store, folder, sums, role) == dict(digests)
    except (ClaimDoesNotHold, MalformedDocument, binascii.Error):
        return False


def _listed(store: WorkspaceStore, folder: str, sums: bytes, role: SigningRole) -> dict[str, str]:
    """Return the digests by name that the sums lead to, what signs them left out."""
    listed = parse_sums(sums, source=f"{folder}/{SUMS}").by_name()
    listed.pop(public_key_file(role), None)
    private_sums = listed.pop(PRIVATE_SUMS, None)
    if private_sums is not None:
        data = store.read_optional(f"{folder}/{PRIVATE_SUMS}") or b""
        if sha256_hex(data) != private_sums:
            raise ClaimDoesNotHold(f"{folder}/{PRIVATE_SUMS}: not the file that was signed")
        listed |= parse_sums(data, source=f"{folder}/{PRIVATE_SUMS}").by_name()
    return listed
