"""`piste reveal`: once an edition is closed, publish what its commitments stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from manifests.digests import sha256_hex
from manifests.errors import RefusedByPolicy
from manifests.statements import EditionRevealed, Statement
from orchestrator.editions.open_clips import open_clip_sums
from orchestrator.editions.open_labels import label_commitments, open_salted_labels
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.editions.settle_editions import CLIP_SUMS_FILE
from orchestrator.keys.sealing_port import Keyring, Purpose
from orchestrator.ledger.ports import Entry, Ledger
from orchestrator.support.clock import Clock
from orchestrator.support.reporter import Reporter, SilentReporter, Step
from orchestrator.workspace.opening import require_openable
from orchestrator.workspace.ports import WorkspaceStore

REVEALED_FOLDER = "revealed"
CLIP_SUMS = f"{REVEALED_FOLDER}/clips.sha256"


def revealed_labels_file(version: str) -> str:
    """Return the name of a revealed label version below its edition's folder."""
    return f"{REVEALED_FOLDER}/{version}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealTools:
    """What revealing needs: the identities for clips and for labels."""

    store: WorkspaceStore
    ledger: Ledger
    keyring: Keyring
    clock: Clock
    reporter: Reporter = field(default_factory=SilentReporter)


def reveal_edition(edition: str, tools: RevealTools) -> EditionRevealed:
    """Publish the salted clip sums and label files of a closed edition.

    They carry their salts, so anybody can check them against the seal with `sha256sum` alone.
    Every file is held against its commitment before one is written.

    Raises:
        RefusedByPolicy: the edition is open, unknown, or revealed already.
        ClaimDoesNotHold: a file is not the one that was committed.

    """
    sealed = load_sealed_edition(edition, store=tools.store, ledger=tools.ledger)
    _require_closed(sealed, tools.clock)
    with tools.store.lock_edition(edition):
        _refuse_revealed(edition, tuple(tools.ledger.entries(edition=edition)))
        files = _open_everything(sealed, tools)
        for name, data in files.items():
            tools.store.replace(f"{sealed.folder}/{name}", data)
        digests = {name: sha256_hex(data) for name, data in files.items()}
        return _append(edition, digests, tools)


def _require_closed(sealed: SealedEdition, clock: Clock) -> None:
    now, closes = clock.now(), sealed.statement.closes
    if now < closes:
        raise RefusedByPolicy(
            f"edition {sealed.statement.edition}: open until {closes:%Y-%m-%dT%H:%M:%SZ}, now it "
            f"is {now:%Y-%m-%dT%H:%M:%SZ}; reveal it afterwards"
        )


def _refuse_revealed(edition: str, history: Sequence[Entry]) -> None:
    if any(entry.statement.kind == "edition-revealed" for entry in history):
        raise RefusedByPolicy(f"edition {edition}: revealed already; see {REVEALED_FOLDER}/")


def _open_everything(sealed: SealedEdition, tools: RevealTools) -> dict[str, bytes]:
    clips, labels = (tools.keyring.unsealer(purpose) for purpose in Purpose)
    commitments = label_commitments(sealed.statement.edition, tools.ledger)
    place = f"{sealed.folder}/{CLIP_SUMS_FILE}"
    layers = require_openable(sealed.seal.recipients.clips, clips, source=place)
    tools.reporter.step(Step.REVEAL)
    files = {CLIP_SUMS: open_clip_sums(sealed, store=tools.store, unsealer=clips, layers=layers)}
    for commitment in commitments:
        files[revealed_labels_file(commitment.version)] = open_salted_labels(
            sealed, commitment, store=tools.store, unsealer=labels
        )
        tools.reporter.progress(Step.REVEAL, len(files), len(commitments) + 1, "files")
    return files


def _append(edition: str, files: dict[str, str], tools: RevealTools) -> EditionRevealed:
    statement = EditionRevealed(at=tools.clock.now(), edition=edition, files=files)

    def decide(history: Sequence[Entry]) -> Statement:
        _refuse_revealed(edition, history)
        return statement

    tools.ledger.decide(decide, edition=edition)
    return statement
