"""`piste verify RECEIPT.json`: what an entrant's receipt proves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli.views.console import say

if TYPE_CHECKING:
    from orchestrator.evidence.rules.receipt import VerifiedReceipt

_MOST_BYTES = 64 * 2**20


def receipt_bytes(path: Path) -> bytes | None:
    """Return the bytes of a receipt, or None where `path` is something else."""
    from orchestrator.support.files.input_files import read_input_file

    if not path.is_file():
        return None
    with path.open("rb") as file:
        if file.read(1) != b"{":
            return None
    return read_input_file(path, limit_bytes=_MOST_BYTES)


def verify_receipt_file(data: bytes, path: Path, *, key_ids: tuple[str, ...]) -> VerifiedReceipt:
    """Verify a receipt; with `key_ids` its keys have to be these or follow from them."""
    from orchestrator.evidence.rules.receipt import verify_receipt

    return verify_receipt(data, source=str(path), trusted_key_ids=key_ids or None)


def receipt_document(found: VerifiedReceipt) -> dict[str, Any]:
    """Return what a receipt proves as one JSON document."""
    return {
        "kind": "receipt",
        "holds": True,
        "run_id": found.run.run_id,
        "edition": found.run.edition,
        "team": found.run.team,
        "state": found.run.state.value,
        "outcome": found.run.outcome.value if found.run.outcome else None,
        "statements": [entry.statement.kind for entry in found.entries],
        "log": {"origin": found.checkpoint.origin, "size": found.checkpoint.size},
        "keys": {key.role: key.key_id for key in found.keyset.published()},
    }


def show_receipt(found: VerifiedReceipt, *, pinned: bool) -> None:
    """Print what a receipt proves, and what it leaves open."""
    run = found.run
    outcome = f", {run.outcome.value}" if run.outcome else ""
    say(f"run {run.run_id} of {run.team} in {run.edition}: {run.state.value}{outcome}")
    for entry in found.entries:
        at = f"{entry.statement.at:%Y-%m-%dT%H:%M:%SZ}"
        say(f"  {entry.sequence:>6}  {at}  {entry.statement.kind}")
    say(f"in the log {found.checkpoint.origin} of {found.checkpoint.size} statements")
    if not pinned:
        say("keys, to compare with what the organizer announced (or give --key):")
        for key in found.keyset.published():
            say(f"  {key.role:<7}{key.key_id}")
    say("holds; that nothing was added since, only the whole log shows")
