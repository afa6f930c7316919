"""An edition as the organizer wrote it, before it is sealed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from manifests.editions import Edition, parse_edition
from manifests.errors import MalformedDocument
from manifests.labels import Labels, RecognitionLabel, parse_labels
from manifests.vocabulary import parse_vocabulary
from orchestrator.editions.ports import EditionSource
from orchestrator.editions.rules.opaque_names import assign_opaque_names

LoadProfile = Callable[[EditionSource, str], bytes]
"""Returns the validated sandbox profile's file: a shipped one by name, or one by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditionDraft:
    """The edition as the organizer wrote it, every small file read and parsed once."""

    source: EditionSource
    edition: Edition
    document: bytes
    vocabulary: bytes | None
    labels: Labels
    profile: bytes
    names: Mapping[str, str]


def read_draft(source: EditionSource, load_profile: LoadProfile) -> EditionDraft:
    """Read and parse an edition's file and every small file that it names.

    Raises:
        MalformedDocument: with the file and the fact that is wrong.

    """
    document = source.document()
    edition = parse_edition(document, source=source.place)
    clip_ids = source.clips(edition.source).clip_ids()
    if len(clip_ids) != edition.expected_clips:
        raise MalformedDocument(
            f"{source.place_of(edition.source)}: {len(clip_ids)} clips, but the edition expects "
            f"{edition.expected_clips}; correct expected_clips or the folder"
        )
    names = assign_opaque_names(clip_ids, shuffle=secrets.SystemRandom().shuffle)
    return EditionDraft(
        source=source,
        edition=edition,
        document=document,
        vocabulary=_read_vocabulary(source, edition),
        labels=_read_labels(source, edition),
        profile=load_profile(source, edition.profile),
        names=names,
    )


def _read_vocabulary(source: EditionSource, edition: Edition) -> bytes | None:
    if edition.vocabulary is None:
        return None
    data = source.read(edition.vocabulary)
    parse_vocabulary(data, source=source.place_of(edition.vocabulary))
    return data


def _read_labels(source: EditionSource, edition: Edition) -> Labels:
    place = source.place_of(edition.labels.path)
    labels = parse_labels(source.read(edition.labels.path), track=edition.track, source=place)
    signers = {one.signer_id for one in labels.entries if isinstance(one, RecognitionLabel)}
    if edition.held_out_signer is not None and edition.held_out_signer not in signers:
        raise MalformedDocument(
            f"{place}: held_out_signer {edition.held_out_signer} signs no clip; the signers are "
            f"{', '.join(sorted(signers)[:20])}"
        )
    return labels
