"""Tell who is missing before a sealed file is opened: a plan may take several people."""

from __future__ import annotations

from orchestrator.keys.rules.recipients import SealingPlan
from orchestrator.keys.sealing_port import IdentityMissing, Unsealer

_SHOWN = 4


def require_openable(plan: SealingPlan, unsealer: Unsealer, *, source: str) -> int:
    """Return how many layers `plan` has, when the identities at hand open all of them.

    Raises:
        IdentityMissing: with the recipients whose identity would open what is still closed.

    """
    missing = plan.missing(unsealer.recipients())
    if missing:
        held, needed = len(plan.layers) - len(missing), len(plan.layers)
        people = "; and of ".join(_any_of(layer) for layer in missing)
        rule = (
            f"takes {needed} identities together, and {held} of them "
            f"{'is' if held == 1 else 'are'} here; missing is the identity of "
            if needed > 1
            else "no identity here opens it; it takes the identity of "
        )
        raise IdentityMissing(
            f"{source}: {rule}{people}. Ask its holder to put that identity file, mode 0600, "
            "into keys/ beside the others, as labels-b.agekey or clips-b.agekey"
        )
    return len(plan.layers)


def _any_of(layer: tuple[str, ...]) -> str:
    more = f" or {len(layer) - _SHOWN} others" if len(layer) > _SHOWN else ""
    return " or ".join(layer[:_SHOWN]) + more
