"""`piste labels add`: a new label version beside the old ones, for new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from pydantic import TypeAdapter, ValidationError

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.labels import (
    Label,
    LabelledClip,
    Labels,
    RecognitionLabel,
    SegmentationLabel,
    TranslationLabel,
    check_labels_fit,
    parse_labels,
)
from manifests.names import LabelsVersion
from manifests.statements import LabelsAdded, LabelsCommitment, Statement
from manifests.text import escape_untrusted
from orchestrator.editions.open_labels import label_commitments, open_labels, open_names
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.editions.sealed_labels import labels_file, seal_labels
from orchestrator.keys.sealing_port import Sealer, Unsealer
from orchestrator.ledger.ports import Entry, Ledger
from orchestrator.support.clock import Clock
from orchestrator.workspace.ports import WorkspaceStore

_VERSION: TypeAdapter[str] = TypeAdapter(LabelsVersion)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTools:
    """What adding labels needs. `unsealer` holds the label identities."""

    store: WorkspaceStore
    ledger: Ledger
    sealer: Sealer
    unsealer: Unsealer
    clock: Clock


def add_labels(
    edition: str, version: str, data: bytes, *, source: str, note: str, tools: LabelTools
) -> LabelsCommitment:
    """Validate, rename, salt, commit and encrypt a label file; `source` names it in messages.

    The file uses the clips' original names, or the opaque ones; where both fit, the original.

    Raises:
        MalformedDocument: the file or the version's name does not follow its format.
        RefusedByPolicy: no such edition, or the version exists already.

    """
    _check_version(version)
    sealed = load_sealed_edition(edition, store=tools.store, ledger=tools.ledger)
    with tools.store.lock_edition(edition):
        _refuse_known(edition, version, label_commitments(edition, tools.ledger))
        labels = parse_labels(data, track=sealed.edition.track, source=source)
        names = _names_used(labels, sealed, tools)
        check_labels_fit(labels, _facts(names, sealed, tools), source=source)
        added = seal_labels(
            labels,
            names=names,
            version=version,
            note=note,
            sealer=tools.sealer,
            plan=sealed.seal.recipients.labels,
        )
        # a file without its statement is what a killed command left, and is written anew
        tools.store.replace(f"{sealed.folder}/{labels_file(version)}", added.sealed)
        _append(edition, added.commitment, tools)
    return added.commitment


def _append(edition: str, commitment: LabelsCommitment, tools: LabelTools) -> None:
    def decide(_: Sequence[Entry]) -> Statement:
        return LabelsAdded(at=tools.clock.now(), edition=edition, labels=commitment)

    tools.ledger.decide(decide, edition=edition)


def _check_version(version: str) -> None:
    try:
        _VERSION.validate_python(version)
    except ValidationError as error:
        raise MalformedDocument(
            f"{escape_untrusted(version, 60)!r}: not a label version; use 1 to 40 of a-z, 0-9, "
            "- and ., as labels-v2"
        ) from error


def _refuse_known(edition: str, version: str, known: Sequence[LabelsCommitment]) -> None:
    if any(commitment.version == version for commitment in known):
        raise RefusedByPolicy(
            f"edition {edition}: labels {version} exist already and never change; name a new "
            "version"
        )


def _names_used(labels: Labels, sealed: SealedEdition, tools: LabelTools) -> dict[str, str]:
    """Return opaque names by the names that the file uses: the original ones where they fit."""
    names = open_names(sealed, store=tools.store, unsealer=tools.unsealer)
    used = labels.by_clip().keys()
    if used <= names.keys() or not used <= set(names.values()):
        return names
    return {opaque: opaque for opaque in names.values()}


def _facts(
    names: dict[str, str], sealed: SealedEdition, tools: LabelTools
) -> dict[str, LabelledClip]:
    """Return what each clip's label must agree with, as the first label version did."""
    first = open_labels(
        sealed, sealed.statement.labels, store=tools.store, unsealer=tools.unsealer
    ).by_clip()
    return {name: _labelled(first[opaque]) for name, opaque in names.items()}


def _labelled(label: Label) -> LabelledClip:
    match label:
        case RecognitionLabel():
            return LabelledClip(n_segments=len(label.glosses), n_frames=0, fps=0)
        case SegmentationLabel():
            return LabelledClip(
                n_segments=len(label.segments), n_frames=label.n_frames, fps=label.fps
            )
        case TranslationLabel():
            return LabelledClip(n_segments=0, n_frames=0, fps=0)
        case _:
            assert_never(label)
