"""The exam's labels as arrays, checked once."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from manifests.glosses import label_gloss_fault
from manifests.text import escape_untrusted
from scorers.recognition.exam import ClipLabels


@dataclass(frozen=True, slots=True)
class Reference:
    """Labels of an exam with glosses as integers; clips stand in the order of their ids.

    Scored glosses are 0 .. ``vocabulary_size`` - 1, other labels follow. ``clip`` (the clip of
    each position) and ``label`` have shape (positions,); ``lengths`` has shape (clips,).
    """

    clip_ids: tuple[str, ...]
    signer_ids: tuple[str, ...]
    gloss_ids: Mapping[str, int]
    vocabulary_size: int
    lengths: NDArray[np.int64]
    clip: NDArray[np.int64]
    label: NDArray[np.int64]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Tell for each position whether its label is in the scored vocabulary."""
        return self.label < self.vocabulary_size

    @property
    def support(self) -> NDArray[np.int64]:
        """Count the labels of each vocabulary gloss; shape (vocabulary_size,)."""
        return np.bincount(self.label[self.scored], minlength=self.vocabulary_size)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Return the scored glosses, sorted."""
        return tuple(self.gloss_ids)[: self.vocabulary_size]

    @property
    def vocabulary_digest(self) -> str:
        """Return the SHA-256 (hex) of the sorted scored glosses, one a line."""
        return hashlib.sha256("".join(f"{g}\n" for g in self.vocabulary).encode()).hexdigest()


def encode_labels(labels: Sequence[ClipLabels], vocabulary: Sequence[str]) -> Reference:
    """Check labels and vocabulary and turn them into arrays.

    Neither the order of the clips nor that of the vocabulary changes the result. Raise
    ``MalformedDocument`` for no labels, a repeated clip or scored gloss, and what is no gloss.
    """
    clips = sorted(labels, key=lambda clip: clip.clip_id)
    _refuse_repeated_clips([clip.clip_id for clip in clips])
    gloss_ids = _vocabulary_ids(vocabulary)
    vocabulary_size = len(gloss_ids)
    for gloss in sorted(_label_glosses(clips)):
        gloss_ids.setdefault(gloss, len(gloss_ids))
    lengths = np.array([len(clip.glosses) for clip in clips], dtype=np.int64)
    return Reference(
        clip_ids=tuple(clip.clip_id for clip in clips),
        signer_ids=tuple(clip.signer_id for clip in clips),
        gloss_ids=gloss_ids,
        vocabulary_size=vocabulary_size,
        lengths=lengths,
        clip=np.repeat(np.arange(len(clips)), lengths),
        label=np.array([gloss_ids[g] for clip in clips for g in clip.glosses], dtype=np.int64),
    )


def _refuse_repeated_clips(sorted_ids: list[str]) -> None:
    if not sorted_ids:
        raise MalformedDocument("labels: no clip at all; an exam needs one or more labelled clips")
    for before, clip_id in itertools.pairwise(sorted_ids):
        if before == clip_id:
            shown = escape_untrusted(clip_id)
            raise MalformedDocument(f"labels, clip {shown}: labelled twice; keep one entry")


def _vocabulary_ids(vocabulary: Sequence[str]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for gloss in sorted(vocabulary):
        fault = label_gloss_fault(gloss)
        if gloss in ids:
            fault = f"the gloss {escape_untrusted(gloss)} stands twice; list each one once"
        if fault:
            raise MalformedDocument(f"vocabulary: {fault}")
        ids[gloss] = len(ids)
    if not ids:
        raise MalformedDocument("vocabulary: empty; list one or more scored glosses")
    return ids


def _label_glosses(clips: Sequence[ClipLabels]) -> set[str]:
    """Return the distinct labels; each is checked where it first stands."""
    seen: set[str] = set()
    for clip in clips:
        for place, gloss in enumerate(clip.glosses, start=1):
            fault = None if gloss in seen else label_gloss_fault(gloss)
            if fault:
                shown = escape_untrusted(clip.clip_id)
                raise MalformedDocument(f"labels, clip {shown}, position {place}: {fault}")
            seen.add(gloss)
    return seen
