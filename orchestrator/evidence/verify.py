"""`piste verify`: every check that what was given allows, offline, without keys and clips."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, assert_never

from manifests.encoding import Json
from manifests.errors import ClaimDoesNotHold, MalformedDocument, PlatformFault
from orchestrator.evidence.evidence_reader import EvidenceReader
from orchestrator.evidence.ports import EvidenceTree
from orchestrator.evidence.rules.bundle import (
    EDITIONS_FOLDER,
    LOG_CHECKPOINT,
    LOG_ENTRIES,
    LOG_FOLDER,
    RUNS_FOLDER,
)
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_listing import check_bundle_listing
from orchestrator.evidence.rules.check_log import LogFacts, check_anchor, check_log
from orchestrator.evidence.rules.check_tiles import check_tiles
from orchestrator.evidence.rules.findings import CheckResult, Findings, Result
from orchestrator.evidence.rules.folders import Folder
from orchestrator.evidence.rules.kinds import EvidenceKind
from orchestrator.evidence.verify_bundle import check_bag, check_derived
from orchestrator.evidence.verify_editions import (
    GivenLabels,
    VerifiedEdition,
    verify_edition,
)
from orchestrator.evidence.verify_runs import verify_run, verify_run_alone
from orchestrator.ledger.rules.checkpoint import parse_checkpoint
from orchestrator.ledger.rules.entries import StoredLeaf
from orchestrator.ledger.rules.run_states import Run, RunState
from orchestrator.runs.rules.run_files import SUMS


class LogSource(Protocol):
    """A ledger as an auditor reads it: nothing of it is trusted."""

    def stored_leaves(self) -> Iterable[StoredLeaf]:
        """Yield every leaf as it is stored."""

    def checkpoint(self) -> bytes:
        """Return the signed note as it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """What to verify, and what the auditor holds from elsewhere."""

    tree: EvidenceTree
    kind: EvidenceKind
    ledger: LogSource | None = None
    """The workspace's."""
    labels: GivenLabels | None = None
    older_checkpoint: bytes | None = None
    key_ids: tuple[str, ...] = ()
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Every check, in the order of its number."""

    place: str
    kind: EvidenceKind
    results: tuple[CheckResult, ...]

    @property
    def holds(self) -> bool:
        """Tell whether nothing failed."""
        return all(result.result is not Result.FAILED for result in self.results)

    def as_document(self) -> dict[str, Json]:
        """Return the report for `--json`."""
        return {
            "path": self.place,
            "kind": self.kind.value,
            "holds": self.holds,
            "checks": [result.as_document() for result in self.results],
        }


def verify_evidence(request: VerifyRequest) -> Report:
    """Carry out the numbered checks; a false claim is a result, not an exception.

    Raises:
        MalformedDocument: what the auditor gave beside the evidence is malformed.

    """
    if request.older_checkpoint is not None:
        parse_checkpoint(request.older_checkpoint, source="--checkpoint")
    findings = Findings()
    tree = request.tree
    findings.compared(Check.TREE, len(tree.names))
    for fault in tree.faults:
        findings.fault(Check.TREE, fault)
    match request.kind:
        case EvidenceKind.RUN:
            _verify_run_folder(findings, request)
        case EvidenceKind.EDITION:
            _verify_edition_folder(findings, request)
        case EvidenceKind.WORKSPACE:
            _verify_workspace(findings, request)
        case EvidenceKind.BUNDLE:
            _verify_bundle(findings, request)
        case _:
            assert_never(request.kind)
    return Report(place=tree.place, kind=request.kind, results=findings.results())


def _verify_run_folder(findings: Findings, request: VerifyRequest) -> None:
    run = EvidenceReader(request.tree, findings).folder("", place=request.tree.place)
    key = verify_run_alone(findings, run)
    for key_id in request.key_ids:
        findings.require(
            Check.ANCHOR,
            key is not None and key.key_id == key_id,
            f"{run.place}: not signed by key {key_id}",
        )


def _verify_edition_folder(findings: Findings, request: VerifyRequest) -> None:
    folder = EvidenceReader(request.tree, findings).folder("", place=request.tree.place)
    verified = verify_edition(findings, folder, log=None, name=None, labels=request.labels)
    published = {key.key_id for key in verified.seal.keys} if verified is not None else set()
    for key_id in request.key_ids:
        findings.require(
            Check.ANCHOR, key_id in published, f"{folder.place}: does not publish key {key_id}"
        )
    _require_used(findings, request, [] if verified is None else [verified])


def _verify_workspace(findings: Findings, request: VerifyRequest) -> None:
    reader = EvidenceReader(request.tree, findings)
    log = _read_ledger(findings, request)
    _check_pins(findings, request, log)
    editions = _verify_editions(findings, reader, request, log)
    for name in log.editions:
        if name not in editions:
            findings.fault(Check.SEAL, f"{EDITIONS_FOLDER}/{name}: sealed, but not here")
    _verify_runs(findings, reader, log, editions, wanted=log.runs)


def _read_ledger(findings: Findings, request: VerifyRequest) -> LogFacts:
    older = request.older_checkpoint
    if request.ledger is None:
        findings.fault(Check.STATEMENTS, f"{request.tree.place}: the ledger cannot be read")
        return check_log(Findings(), (), checkpoint=None)
    try:
        leaves, note = request.ledger.stored_leaves(), request.ledger.checkpoint()
        return check_log(findings, leaves, checkpoint=note, older=older)
    except (PlatformFault, ClaimDoesNotHold, MalformedDocument) as error:
        findings.fault(Check.STATEMENTS, f"the ledger cannot be read: {error}")
        return check_log(Findings(), (), checkpoint=None)


def _verify_bundle(findings: Findings, request: VerifyRequest) -> None:
    if request.tree.faults and not request.tree.names:
        return
    base = check_bag(findings, request.tree)
    reader = EvidenceReader(request.tree, findings, base=base)
    place = request.tree.place
    apart = (f"{EDITIONS_FOLDER}/", f"{RUNS_FOLDER}/", LOG_ENTRIES)
    plain = [name for name in reader.names if not name.startswith(apart)]
    root = reader.select(plain, prefix="", place=place)
    log = _read_exported_log(findings, reader, root, request)
    _check_pins(findings, request, log)
    editions = _verify_editions(findings, reader, request, log)
    wanted = check_derived(findings, root, reader=reader, log=log)
    _verify_runs(findings, reader, log, editions, wanted=wanted)
    whole = Folder(place=place, digests=reader.digests, contents=root.contents)
    check_bundle_listing(findings, whole)


def _read_exported_log(
    findings: Findings, reader: EvidenceReader, root: Folder, request: VerifyRequest
) -> LogFacts:
    tiles = root.below(LOG_FOLDER)
    with_tiles = any(name.startswith("tile/") for name in tiles.digests)
    envelopes: list[bytes] = []
    log = check_log(
        findings,
        reader.leaves(LOG_ENTRIES, see=envelopes.append if with_tiles else None),
        checkpoint=root.contents.get(LOG_CHECKPOINT),
        older=request.older_checkpoint,
        with_columns=False,
        keep_hashes=with_tiles,
    )
    check_tiles(
        findings, tiles, leaf_hashes=log.leaf_hashes, leaf_at=lambda index: envelopes[index]
    )
    return log


def _check_pins(findings: Findings, request: VerifyRequest, log: LogFacts) -> None:
    check_anchor(findings, log.keyset, key_ids=request.key_ids, origin=request.origin)


def _verify_editions(
    findings: Findings, reader: EvidenceReader, request: VerifyRequest, log: LogFacts
) -> dict[str, VerifiedEdition | None]:
    found: dict[str, VerifiedEdition | None] = {}
    for name in reader.folders_below(f"{EDITIONS_FOLDER}/"):
        prefix = f"{EDITIONS_FOLDER}/{name}"
        folder = reader.folder(f"{prefix}/", place=prefix)
        found[name] = verify_edition(findings, folder, log=log, name=name, labels=request.labels)
    _require_used(findings, request, [one for one in found.values() if one is not None])
    return found


def _require_used(
    findings: Findings, request: VerifyRequest, editions: list[VerifiedEdition]
) -> None:
    if request.labels is not None and not any(one.used_labels for one in editions):
        findings.fault(
            Check.RESCORE, f"{request.labels.source}: no edition here is committed to these labels"
        )


def left_evidence(run: Run) -> bool:
    """Tell whether the run's folder must be there: it ended with kept predictions or without."""
    return run.state is RunState.SUBMITTED or run.outcome is not None


def _verify_runs(
    findings: Findings,
    reader: EvidenceReader,
    log: LogFacts,
    editions: dict[str, VerifiedEdition | None],
    *,
    wanted: Collection[str],
) -> None:
    here = set(reader.folders_below(f"{RUNS_FOLDER}/"))
    for run_id in wanted:
        run = log.runs.get(run_id)
        if run is not None and left_evidence(run):
            findings.require(
                Check.RUNS, run_id in here, f"{RUNS_FOLDER}/{run_id}: in the log, but not here"
            )
    for run_id in sorted(here):
        prefix = f"{RUNS_FOLDER}/{run_id}"
        if run_id not in log.runs:
            findings.fault(Check.RUNS, f"{prefix}: no run of the log has this folder")
            reader.folder(f"{prefix}/", place=prefix)
            continue
        run = log.runs[run_id]
        folder = reader.folder(f"{prefix}/", place=prefix)
        if not left_evidence(run) and SUMS not in folder.digests:
            findings.note(Check.RUNS, f"{prefix}: {run.state}, nothing signed yet")
            continue
        edition = editions.get(run.edition)
        exam = None if edition is None else edition.exam
        verify_run(findings, folder, run_id=run_id, log=log, exam=exam)
