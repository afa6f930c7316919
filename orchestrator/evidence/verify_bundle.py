"""The parts of a bundle that follow from its other parts: made anew, and compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256

from manifests.errors import MalformedDocument
from orchestrator.evidence.evidence_reader import EvidenceReader
from orchestrator.evidence.ports import EvidenceTree
from orchestrator.evidence.rules.bundle import (
    BUNDLE_FILE,
    EDITIONS_FOLDER,
    LOG_CHECKPOINT,
    LOG_ENTRIES,
    LOG_FOLDER,
    RUNS_FOLDER,
    BundleDocument,
    bag_files,
    derived_files,
    is_derived,
    parse_bundle,
)
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_listing import compare_listing
from orchestrator.evidence.rules.check_log import LogFacts
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.runs.rules.run_files import PRIVATE_CARD, SUMS, is_private

_PAYLOAD = "data/"


def check_bag(findings: Findings, tree: EvidenceTree) -> str:
    """Check a BagIt bag's own files (check 2); return the payload's prefix, empty for no bag."""
    if "bagit.txt" not in tree.names:
        return ""
    payload = [name for name in tree.names if name.startswith(_PAYLOAD)]
    digests: dict[str, str] = {}
    for name in payload:
        with findings.judging(Check.TREE):
            digests[name.removeprefix(_PAYLOAD)] = _digest(tree.stream(name))
    wanted = bag_files(digests, payload_bytes=sum(map(tree.size_bytes, payload)))
    found: dict[str, str] = {}
    for name in tree.names:
        if not name.startswith(_PAYLOAD):
            with findings.judging(Check.TREE):
                found[name] = _digest(tree.stream(name))
    compare_listing(
        findings,
        Check.BUNDLE,
        place=tree.place,
        listed={name: sha256(data).hexdigest() for name, data in wanted.items()},
        found=found,
    )
    return _PAYLOAD


def _digest(chunks: Iterable[bytes]) -> str:
    hashed = sha256()
    for chunk in chunks:
        hashed.update(chunk)
    return hashed.hexdigest()


def check_derived(
    findings: Findings, root: Folder, *, reader: EvidenceReader, log: LogFacts
) -> Collection[str]:
    """Make bundle.json, keys and recipe anew (check 3); return the runs that must be here."""
    runs = reader.folders_below(f"{RUNS_FOLDER}/")
    with findings.judging(Check.DERIVED):
        findings.compared(Check.DERIVED)
        stated = parse_bundle(root.read(BUNDLE_FILE), source=f"{root.place}/{BUNDLE_FILE}")
        if log.keyset is None:
            raise MalformedDocument(f"{root.place}: the log publishes no keys to compare with")
        document = BundleDocument(
            of=stated.of,
            edition=stated.edition,
            runs=runs,
            origin=log.keyset.origin,
            statements=log.size,
        )
        wanted = {
            name: sha256(data).hexdigest()
            for name, data in derived_files(document, log.keyset).items()
        }
        found = {name: digest for name, digest in root.digests.items() if is_derived(name)}
        compare_listing(findings, Check.DERIVED, place=root.place, listed=wanted, found=found)
        _check_scope(findings, document, reader=reader, log=log)
        return _wanted_runs(document, log)
    return runs


def _wanted_runs(document: BundleDocument, log: LogFacts) -> Collection[str]:
    if document.of == "run":
        return document.runs
    return [run_id for run_id, run in log.runs.items() if run.edition == document.edition]


def _check_scope(
    findings: Findings, document: BundleDocument, *, reader: EvidenceReader, log: LogFacts
) -> None:
    """Check that nothing is here that does not belong into this bundle."""
    if document.of == "run" and len(document.runs) != 1:
        findings.fault(Check.DERIVED, f"a bundle of one run holds {len(document.runs)}")
    for run_id in document.runs:
        run = log.runs.get(run_id)
        if run is not None and run.edition != document.edition:
            findings.fault(Check.DERIVED, f"run {run_id} is of another edition, {run.edition}")
    for name in reader.names:
        if not _belongs(name, document):
            findings.fault(Check.DERIVED, f"{name}: does not belong into a bundle")


def _belongs(name: str, document: BundleDocument) -> bool:
    if name.startswith(f"{RUNS_FOLDER}/") and "/" in name.removeprefix(f"{RUNS_FOLDER}/"):
        private_card = name.rpartition("/")[2] == PRIVATE_CARD and document.of == "run"
        return private_card or not is_private(name)
    if name.startswith(f"{EDITIONS_FOLDER}/{document.edition}/"):
        return not is_private(name)
    if name in {SUMS, LOG_ENTRIES, LOG_CHECKPOINT} or name.startswith(f"{LOG_FOLDER}/tile/"):
        return True
    return is_derived(name)
