"""`piste keys recipients set`: who will open the clips, or the labels, of the next edition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from pydantic import ValidationError

from manifests.errors import MalformedDocument
from manifests.text import escape_untrusted
from orchestrator.keys.rules.recipients import (
    SealingPlan,
    SealRecipients,
    any_of,
    both_of,
    encode_recipients,
)
from orchestrator.keys.sealing_port import Keyring, Purpose, Sealer
from orchestrator.workspace.initialise import RECIPIENTS_FILE
from orchestrator.workspace.ports import WorkspaceStore

MAX_RECIPIENTS = 16
_SECRET = "AGE-SECRET-KEY-"  # noqa: S105 - how every one begins


class OpeningRule(StrEnum):
    """How many of the recipients it takes."""

    ANY_OF = "any-of"
    TWO_PERSON = "two-person"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientTools:
    """What setting recipients needs; no secret."""

    store: WorkspaceStore
    keyring: Keyring
    sealer: Sealer


def set_recipients(
    purpose: Purpose, rule: OpeningRule, recipients: Sequence[str], *, tools: RecipientTools
) -> SealingPlan:
    """Write the plan for `purpose`. Sealed editions keep the recipients that they were sealed to.

    Raises:
        MalformedDocument: a recipient is not an age recipient, stands twice, or their number does
            not fit the rule.

    """
    plan = _plan(rule, recipients)
    tools.sealer.seal(b"", plan)  # a recipient with a slip of the pen is refused here
    plans = {one: tools.keyring.plan(one) for one in Purpose} | {purpose: plan}
    document = SealRecipients(clips=plans[Purpose.CLIPS], labels=plans[Purpose.LABELS])
    tools.store.replace(RECIPIENTS_FILE, encode_recipients(document))
    return plan


def _plan(rule: OpeningRule, recipients: Sequence[str]) -> SealingPlan:
    _check_number(rule, recipients)
    try:
        match rule:
            case OpeningRule.ANY_OF:
                return any_of(*recipients)
            case OpeningRule.TWO_PERSON:
                first, second = recipients
                return both_of(first, second)
            case _:
                assert_never(rule)
    except ValidationError as error:
        odd = str(error.errors(include_url=False)[0]["input"])
        raise MalformedDocument(
            f"{escape_untrusted(odd)}: not an age recipient, which is age1 and 58 characters; "
            "print one with: age-keygen -y IDENTITY-FILE"
        ) from error


def _check_number(rule: OpeningRule, recipients: Sequence[str]) -> None:
    if any(text.upper().startswith(_SECRET) for text in recipients):
        raise MalformedDocument(
            "recipients: one is a secret identity, now in this shell's history: replace it, and "
            "give the public half, which age-keygen -y IDENTITY-FILE prints"
        )
    if len(set(recipients)) != len(recipients):
        raise MalformedDocument("recipients: one stands twice; each person has a key of their own")
    if rule is OpeningRule.TWO_PERSON and len(recipients) != 2:
        raise MalformedDocument(f"recipients: {len(recipients)}, but {rule} takes exactly 2")
    if not 1 <= len(recipients) <= MAX_RECIPIENTS:
        raise MalformedDocument(f"recipients: {len(recipients)}, expected 1 to {MAX_RECIPIENTS}")
