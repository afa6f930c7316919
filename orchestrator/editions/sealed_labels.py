"""Rename, salt, commit and encrypt one label version."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from manifests.labels import Labels, labels_commitment, renamed_labels, render_salted_labels
from manifests.statements import LabelsCommitment
from orchestrator.keys.rules.recipients import SealingPlan
from orchestrator.keys.sealing_port import Sealer

SALT_BYTES = 32
NAMES_FILE = "clip-names.age"
"""Maps the clips' original names to the opaque ones, for the labels' recipients alone."""


def labels_file(version: str) -> str:
    """Return the name of a sealed label version below its edition's folder."""
    return f"labels/{version}.age"


@dataclass(frozen=True, slots=True)
class SealedLabels:
    """A label version that only its recipients can open, and its public commitment."""

    commitment: LabelsCommitment
    sealed: bytes


def seal_labels(
    labels: Labels,
    *,
    names: Mapping[str, str],
    version: str,
    note: str,
    sealer: Sealer,
    plan: SealingPlan,
) -> SealedLabels:
    """Return `labels` under opaque names, salted and encrypted."""
    salt = secrets.token_hex(SALT_BYTES)
    salted = render_salted_labels(renamed_labels(labels, names), salt=salt)
    commitment = labels_commitment(salted, version=version, note=note)
    return SealedLabels(commitment, sealer.seal(salted, plan))
