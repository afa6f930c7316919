"""The grounding gate's derangement: every clip faces a sentence that is not its own.

A *value* derangement, not one of positions: where several clips share a sentence, no clip meets
an identical one. It uses no random numbers, so anybody can recompute it: equal texts form a
group; groups are ordered by SHA-256(key + NUL + text), the clips inside a group by clip id; and
with m the size of the largest group, position i takes the reference at position i + m, modulo
n. A group is contiguous and at most m long, so i + m lies past its end; it comes round again
only where a group is larger than n - m, which m <= n/2 excludes (scoring notes, 1.1).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from manifests.errors import MalformedDocument
from scorers.translation.exam import MAIN_SLICES, Corpus


def normalised_reference(text: str) -> str:
    """Fold Unicode whitespace to single spaces, strip, casefold: what makes two texts equal."""
    return " ".join(text.split()).casefold()


def derange(clip_ids: Sequence[str], references: Sequence[str], key: str = "") -> list[int]:
    """Return, for each clip, the position of the reference that it faces.

    The result does not depend on the order of the rows: it names the same pairs of clips.
    Raise ``MalformedDocument`` for duplicate clip ids, unequal lengths, and where no value
    derangement exists: a sentence that more than half of the clips share, or a single clip.
    """
    if len(clip_ids) != len(references):
        raise MalformedDocument(f"{len(clip_ids)} clips but {len(references)} references")
    if len(set(clip_ids)) != len(clip_ids):
        raise MalformedDocument("a derangement needs distinct clip ids")
    texts = [normalised_reference(reference) for reference in references]
    shift = _largest_group(texts)
    if 2 * shift > len(texts):
        raise MalformedDocument(
            f"no derangement exists: {shift} of {len(texts)} clips share one sentence, "
            "at most half may; add clips with other sentences"
        )
    order = sorted(range(len(texts)), key=lambda i: (_rank(texts[i], key), texts[i], clip_ids[i]))
    faced = [0] * len(order)
    for place, row in enumerate(order):
        faced[row] = order[(place + shift) % len(order)]
    return faced


def derange_main_slices(corpus: Corpus, key: str) -> NDArray[np.int64]:
    """Derange inside each main slice; shape (clips,). Canary clips keep their own reference.

    Across slices the register changes, which would lower the denominator of G for free.
    Raise ``MalformedDocument`` naming the slice that cannot be deranged.
    """
    faced = np.arange(len(corpus.clip_ids))
    for part in MAIN_SLICES:
        members = corpus.members(part)
        if members.size == 0:
            continue
        try:
            inside = derange(
                [corpus.clip_ids[i] for i in members], [corpus.references[i] for i in members], key
            )
        except MalformedDocument as error:
            raise MalformedDocument(f"slice {part}: {error}") from error
        faced[members] = members[inside]
    return faced


def _largest_group(texts: Sequence[str]) -> int:
    return max(Counter(texts).values(), default=1)


def _rank(text: str, key: str) -> bytes:
    material = key.encode("utf-8", "surrogatepass") + b"\0" + text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(material).digest()
