"""`piste export`: a run's or an edition's public evidence as one deterministic tar.

Files leave by an allow-list: an edition's public files, what a run's signed sums list and the log
knows, the log itself, and what follows from these. The tar is verified as an auditor would before
it gets its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from manifests.digests import sha256_of_chunks
from manifests.errors import ClaimDoesNotHold, RefusedByPolicy
from manifests.sums import parse_sums, render_sums
from manifests.text import escape_untrusted
from orchestrator.evidence.ports import StagedTar
from orchestrator.evidence.rules.bundle import (
    EDITIONS_FOLDER,
    LOG_CHECKPOINT,
    LOG_ENTRIES,
    LOG_FOLDER,
    RUNS_FOLDER,
    BundleDocument,
    bag_files,
    derived_files,
    entries_file,
    top_folder,
)
from orchestrator.evidence.rules.check_cards import SCORES
from orchestrator.evidence.rules.check_identities import STANDARD_FILES
from orchestrator.evidence.rules.check_log import LogFacts, check_log, history_in
from orchestrator.evidence.rules.check_seal import PUBLIC_FILES
from orchestrator.evidence.rules.check_tiles import log_tiles
from orchestrator.evidence.rules.findings import Findings, Result
from orchestrator.evidence.rules.kinds import EvidenceKind
from orchestrator.evidence.verify import (
    LogSource,
    VerifyRequest,
    left_evidence,
    verify_evidence,
)
from orchestrator.ledger.rules.checkpoint import parse_checkpoint
from orchestrator.ledger.rules.entries import StoredLeaf
from orchestrator.ledger.rules.keyset import Keyset
from orchestrator.runs.rules.run_files import (
    ENVELOPE,
    PREDICTIONS,
    PRIVATE_CARD,
    PUBLIC_CARD,
    SUMS,
    SUMS_SIGNATURE,
    is_private,
)
from orchestrator.support.tar.deterministic_tar import tar_chunks
from orchestrator.workspace.ports import WorkspaceStore

_CARD_FILES = frozenset({PUBLIC_CARD, "scorer.pub", "private.sha256"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """What to export: a run's id or an edition's name, and in which form."""

    target: str
    private: bool = False
    """Add the run's private cards, for its entrant."""
    tiles: bool = False
    """Add the log as static tlog-tiles files."""
    bag: bool = False
    """Wrap the bundle as a BagIt bag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written."""

    document: BundleDocument
    files: int
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    size_bytes: int
    sha256: str
    chunks: Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    facts: LogFacts
    keyset: Keyset
    envelopes: tuple[bytes, ...]
    note: bytes


def export_bundle(
    request: ExportRequest, *, store: WorkspaceStore, ledger: LogSource, staged: StagedTar
) -> Exported:
    """Write the bundle, verify it, and put it in place.

    Raises:
        RefusedByPolicy: no such run or edition, a run under way, or private cards of an edition.
        ClaimDoesNotHold: the workspace's own evidence does not hold; nothing is published.

    """
    log = _read_log(ledger)
    document = _document(request, log)
    files = _bundle_files(request, document, log=log, store=store)
    if request.bag:
        files = _bagged(files)
    top = top_folder(document)
    staged.write(
        tar_chunks(
            (f"{top}/{name}", files[name].size_bytes, files[name].chunks())
            for name in sorted(files)
        )
    )
    _require_verified(staged)
    staged.publish()
    return Exported(document=document, files=len(files), place=staged.place)


def _read_log(ledger: LogSource) -> _Log:
    """Read the log up to one checkpoint: what is appended meanwhile stays out."""
    note = ledger.checkpoint()
    size = parse_checkpoint(note, source="checkpoint").checkpoint.size
    leaves = [leaf for leaf in ledger.stored_leaves() if leaf.sequence < size]
    facts = check_log(Findings(), leaves, checkpoint=note, keep_hashes=True)
    if facts.keyset is None:
        raise ClaimDoesNotHold("the ledger does not hold; run: piste verify")
    return _Log(facts=facts, keyset=facts.keyset, envelopes=_envelopes(leaves), note=note)


def _envelopes(leaves: Iterable[StoredLeaf]) -> tuple[bytes, ...]:
    return tuple(leaf.envelope for leaf in leaves)


def _document(request: ExportRequest, log: _Log) -> BundleDocument:
    target, facts = request.target, log.facts
    run = facts.runs.get(target)
    if run is not None and not left_evidence(run):
        raise RefusedByPolicy(f"run {target} is {run.state}; export it when it has ended")
    if run is None and target not in facts.editions:
        shown = escape_untrusted(target, 64)
        raise RefusedByPolicy(f"{shown}: neither a run nor an edition in this workspace's ledger")
    if run is None and request.private:
        raise RefusedByPolicy(
            f"edition {target}: private cards go to one entrant each; export a run with --private"
        )
    edition = target if run is None else run.edition
    of: Literal["run", "edition"] = "edition" if run is None else "run"
    ended = (
        run_id
        for run_id, other in facts.runs.items()
        if other.edition == edition and left_evidence(other)
    )
    return BundleDocument(
        of=of,
        edition=edition,
        runs=(target,) if run is not None else tuple(sorted(ended)),
        origin=log.keyset.origin,
        statements=facts.size,
    )


def _bundle_files(
    request: ExportRequest, document: BundleDocument, *, log: _Log, store: WorkspaceStore
) -> dict[str, _File]:
    files = {name: _in_memory(data) for name, data in derived_files(document, log.keyset).items()}
    files[LOG_ENTRIES] = _in_memory(entries_file(log.envelopes))
    files[LOG_CHECKPOINT] = _in_memory(log.note)
    if request.tiles:
        tiles = log_tiles(log.facts.leaf_hashes, log.envelopes.__getitem__)
        files |= {f"{LOG_FOLDER}/{path}": _in_memory(data) for path, data in tiles}
    for name in _edition_files(document.edition, log.facts, store):
        files[name] = _stored(name, store)
    for run_id in document.runs:
        for name in _run_files(run_id, log.facts, store, private=request.private):
            files[name] = _stored(name, store)
    sums = render_sums({name: file.sha256 for name, file in files.items()})
    return files | {SUMS: _in_memory(sums)}


def _edition_files(edition: str, facts: LogFacts, store: WorkspaceStore) -> list[str]:
    folder = f"{EDITIONS_FOLDER}/{edition}"
    names = [f"{folder}/{name}" for name in PUBLIC_FILES]
    revealed = facts.revealed.get(edition)
    if revealed is not None:
        names += [f"{folder}/{name}" for name in revealed.files]
    return [name for name in names if store.exists(name)]


def _run_files(
    run_id: str, facts: LogFacts, store: WorkspaceStore, *, private: bool
) -> Iterator[str]:
    folder = f"{RUNS_FOLDER}/{run_id}"
    history = history_in(facts.statements_of(run_id))
    kept = {PREDICTIONS} if history is None else set[str]()
    if history is not None and history.finished is not None:
        kept = set(history.finished.files) | {PREDICTIONS}
    yield from _signed_files(folder, store, allowed=kept | STANDARD_FILES, private=private)
    for name in store.list_names(f"{folder}/{SCORES}"):
        later = f"{folder}/{SCORES}/{name}"
        yield from _signed_files(later, store, allowed=_CARD_FILES, private=private)


def _signed_files(
    folder: str, store: WorkspaceStore, *, allowed: Iterable[str], private: bool
) -> Iterator[str]:
    """Yield what the folder's sums list, and what signs them; the private card where wanted.

    Raises:
        ClaimDoesNotHold: the sums list a file that is not known as public.

    """
    listed = parse_sums(store.read(f"{folder}/{SUMS}"), source=f"{folder}/{SUMS}").by_name()
    for name in listed:
        if name not in set(allowed) or is_private(name):
            raise ClaimDoesNotHold(
                f"{store.root}/{folder}/{name}: is listed, but the log does not know it as a "
                "public file; it is not exported"
            )
        yield f"{folder}/{name}"
    yield f"{folder}/{SUMS}"
    yield f"{folder}/{SUMS_SIGNATURE}"
    for name in (ENVELOPE, *((PRIVATE_CARD,) if private else ())):
        if store.exists(f"{folder}/{name}"):
            yield f"{folder}/{name}"


def _stored(name: str, store: WorkspaceStore) -> _File:
    return _File(
        size_bytes=store.size_bytes(name),
        sha256=sha256_of_chunks(store.stream(name)),
        chunks=lambda: store.stream(name),
    )


def _in_memory(data: bytes) -> _File:
    return _File(
        size_bytes=len(data), sha256=sha256(data).hexdigest(), chunks=lambda: iter((data,))
    )


def _bagged(files: Mapping[str, _File]) -> dict[str, _File]:
    tags = bag_files(
        {name: file.sha256 for name, file in files.items()},
        payload_bytes=sum(file.size_bytes for file in files.values()),
    )
    payload = {f"data/{name}": file for name, file in files.items()}
    return payload | {name: _in_memory(data) for name, data in tags.items()}


def _require_verified(staged: StagedTar) -> None:
    """Verify the tar as an auditor will.

    Raises:
        ClaimDoesNotHold: it does not hold, with the first fault of each failed check.

    """
    report = verify_evidence(VerifyRequest(tree=staged.reopen(), kind=EvidenceKind.BUNDLE))
    failed = [result for result in report.results if result.result is Result.FAILED]
    if failed:
        lines = [f"{one.check.number} {one.check.title}: {one.faults[0]}" for one in failed]
        raise ClaimDoesNotHold(
            "the evidence does not hold, nothing is exported; see: piste verify\n"
            + "\n".join(lines)
        )
