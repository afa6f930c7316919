"""Which edition is the other round of the same exam. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from manifests.errors import RefusedByPolicy
from manifests.statements import EditionSealed


def find_counterpart(
    sealed: EditionSealed, others: Iterable[EditionSealed], *, named: str | None = None
) -> EditionSealed | str:
    """Return the other round's edition, or why there is none to compare with.

    `named` must be of the same track and scorer and of the other round. Without a name it is the
    only such edition whose dates meet this one's: overlap it, or lie at most a year from it.

    Raises:
        RefusedByPolicy: the named edition is not sealed, or is not the other round.

    """
    editions = list(others)
    if named is not None:
        return _named(sealed, editions, named)
    fitting = [one for one in editions if _fault(sealed, one) is None and _near(sealed, one)]
    if not fitting:
        return "no edition of the other round is sealed here"
    if len(fitting) > 1:
        names = ", ".join(sorted(one.edition for one in fitting))
        return f"several editions could be the other round: {names}; name one"
    return fitting[0]


def _named(sealed: EditionSealed, editions: list[EditionSealed], named: str) -> EditionSealed:
    for one in editions:
        if one.edition == named:
            fault = _fault(sealed, one)
            if fault is None:
                return one
            raise RefusedByPolicy(f"edition {named}: {fault}")
    raise RefusedByPolicy(f"edition {named}: not in this workspace")


def _fault(sealed: EditionSealed, other: EditionSealed) -> str | None:
    if other.round == sealed.round:
        return f"it is a {other.round} as {sealed.edition} is; name the other round's edition"
    if other.track != sealed.track:
        return f"its track is {other.track}, not {sealed.track}"
    if other.scorer != sealed.scorer:
        return f"its scorer is {other.scorer}, not {sealed.scorer}; their figures do not compare"
    return None


def _near(sealed: EditionSealed, other: EditionSealed) -> bool:
    first, second = sorted((sealed, other), key=lambda one: one.opens)
    return (second.opens - first.closes).days <= 365
