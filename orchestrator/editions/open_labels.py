"""Open sealed label versions and hold them against their commitments."""

from __future__ import annotations

from manifests.digests import sha256_hex
from manifests.errors import ClaimDoesNotHold, RefusedByPolicy
from manifests.labels import Labels, parse_salted_labels
from manifests.statements import EditionSealed, LabelsAdded, LabelsCommitment
from orchestrator.editions.rules.opaque_names import parse_names
from orchestrator.editions.sealed_editions import SealedEdition
from orchestrator.editions.sealed_labels import NAMES_FILE, labels_file
from orchestrator.keys.sealing_port import Unsealer
from orchestrator.ledger.ports import Ledger
from orchestrator.workspace.opening import require_openable
from orchestrator.workspace.ports import WorkspaceStore


def label_commitments(edition: str, ledger: Ledger) -> tuple[LabelsCommitment, ...]:
    """Return the commitments to all label versions of an edition, the oldest first."""
    statements = (entry.statement for entry in ledger.entries(edition=edition))
    return tuple(one.labels for one in statements if isinstance(one, EditionSealed | LabelsAdded))


def find_commitment(edition: str, version: str, ledger: Ledger) -> LabelsCommitment:
    """Return the commitment to one version.

    Raises:
        RefusedByPolicy: there is no such version; the message lists those that there are.

    """
    commitments = label_commitments(edition, ledger)
    for commitment in commitments:
        if commitment.version == version:
            return commitment
    known = ", ".join(commitment.version for commitment in commitments) or "none"
    raise RefusedByPolicy(f"edition {edition}: no labels {version}; the versions are: {known}")


def open_salted_labels(
    sealed: SealedEdition,
    commitment: LabelsCommitment,
    *,
    store: WorkspaceStore,
    unsealer: Unsealer,
) -> bytes:
    """Return the salted label file of `commitment`, as it was committed.

    Raises:
        IdentityMissing: the identities at hand do not open it.
        ClaimDoesNotHold: it opens to something that was not committed.

    """
    name = f"{sealed.folder}/{labels_file(commitment.version)}"
    source = f"{store.root}/{name}"
    layers = require_openable(sealed.seal.recipients.labels, unsealer, source=source)
    data = unsealer.open_sealed(store.read(name), layers=layers, source=source)
    if sha256_hex(data) != commitment.sha256:
        raise ClaimDoesNotHold(
            f"{source}: SHA-256 {sha256_hex(data)[:16]}…, but {commitment.sha256[:16]}… was "
            "committed; restore the file from a backup"
        )
    return data


def open_labels(
    sealed: SealedEdition,
    commitment: LabelsCommitment,
    *,
    store: WorkspaceStore,
    unsealer: Unsealer,
) -> Labels:
    """Return one label version, parsed. Raises as `open_salted_labels`."""
    data = open_salted_labels(sealed, commitment, store=store, unsealer=unsealer)
    source = f"{sealed.folder}/{labels_file(commitment.version)}"
    return parse_salted_labels(data, track=sealed.edition.track, source=source)


def open_names(
    sealed: SealedEdition, *, store: WorkspaceStore, unsealer: Unsealer
) -> dict[str, str]:
    """Return the opaque name of each clip by its original one. Raises IdentityMissing."""
    name = f"{sealed.folder}/{NAMES_FILE}"
    source = f"{store.root}/{name}"
    layers = require_openable(sealed.seal.recipients.labels, unsealer, source=source)
    return parse_names(
        unsealer.open_sealed(store.read(name), layers=layers, source=source), source=source
    )
