"""Checks 12 to 15: an edition's files, against the log's edition-sealed statement."""

from __future__ import annotations

from manifests.editions import Edition, parse_edition
from manifests.errors import MalformedDocument
from manifests.statements import EditionSealed
from manifests.sums import parse_sums
from orchestrator.editions.rules.seal_documents import SealDocument, encode_seal, parse_seal
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_listing import compare_listing
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.ledger.rules.keyset import Keyset

EDITION_FILE = "edition.yaml"
PROFILE_FILE = "profile.yaml"
VOCABULARY_FILE = "vocabulary.txt"
SEAL_FILE = "seal.json"
SEALED_SUMS_FILE = "sealed.sha256"
SEALED_FOLDER = "sealed"
LABELS_FOLDER = "labels"
REVEALED_FOLDER = "revealed"

PUBLIC_FILES = (EDITION_FILE, PROFILE_FILE, VOCABULARY_FILE, SEAL_FILE, SEALED_SUMS_FILE)


def read_seal(findings: Findings, folder: Folder) -> SealDocument | None:
    """Return seal.json, which must be in the form in which it is written (check 12)."""
    with findings.judging(Check.SEAL):
        source, data = f"{folder.place}/{SEAL_FILE}", folder.read(SEAL_FILE)
        seal = parse_seal(data, source=source)
        if encode_seal(seal) != data:
            raise MalformedDocument(f"{source}: not in the form in which it is written")
        return seal
    return None


def check_edition_files(
    findings: Findings, folder: Folder, seal: SealDocument, *, statement: EditionSealed | None
) -> None:
    """Compare the edition's files with the digests that seal and statement hold (check 12)."""
    expected = {
        EDITION_FILE: seal.edition_sha256,
        PROFILE_FILE: seal.profile_sha256,
        SEALED_SUMS_FILE: seal.sealed_sums_sha256,
    }
    if seal.vocabulary_sha256 is not None:
        expected[VOCABULARY_FILE] = seal.vocabulary_sha256
    if statement is not None:
        expected[SEAL_FILE] = statement.seal_sha256
    else:
        findings.note(Check.SEAL, "no log is here: the seal's own digest was not compared")
    found = {name: digest for name, digest in folder.digests.items() if name in expected}
    compare_listing(findings, Check.SEAL, place=folder.place, listed=expected, found=found)
    for name in folder.digests:
        if name not in expected and name != SEAL_FILE and not _may_be_there(name):
            findings.fault(Check.SEAL, f"{folder.place}/{name}: is no file of an edition")


def _may_be_there(name: str) -> bool:
    folder, _, rest = name.partition("/")
    if not rest:
        return name.endswith(".age")  # clip sums and names, encrypted
    encrypted = folder in {SEALED_FOLDER, LABELS_FOLDER} and name.endswith(".age")
    return "/" not in rest and (encrypted or folder == REVEALED_FOLDER)


def check_edition_agrees(
    findings: Findings, folder: Folder, seal: SealDocument, *, statement: EditionSealed | None
) -> Edition | None:
    """Compare edition.yaml, seal.json and the statement field by field (check 13)."""
    with findings.judging(Check.EDITION):
        findings.compared(Check.EDITION)
        source = f"{folder.place}/{EDITION_FILE}"
        edition = parse_edition(folder.read(EDITION_FILE), source=source)
        facts = _seal_facts(seal, edition)
        if statement is not None:
            facts |= _statement_facts(statement, edition, seal)
        for name, (found, expected) in facts.items():
            if found != expected:
                text = f"{folder.place}: the {name} is {found} here and {expected} there"
                findings.fault(Check.EDITION, text)
        return edition
    return None


def _seal_facts(seal: SealDocument, edition: Edition) -> dict[str, tuple[object, object]]:
    versions = tuple(labels.version for labels in seal.labels)
    return {
        "seal's edition": (seal.edition, edition.edition),
        "seal's profile": (seal.profile, edition.profile),
        "seal's number of clips": (seal.clips, edition.expected_clips),
        "seal's label version": (versions, (edition.labels.version,)),
    }


def _statement_facts(
    statement: EditionSealed, edition: Edition, seal: SealDocument
) -> dict[str, tuple[object, object]]:
    return {
        "edition's name": (statement.edition, edition.edition),
        "title": (statement.title, edition.title),
        "track": (statement.track, edition.track),
        "round": (statement.round, edition.round),
        "number of clips": (statement.clips, seal.clips),
        "clip-set seal": (statement.clip_set_sha256, seal.clip_set_sha256),
        "list of ciphertexts": (statement.sealed_sums_sha256, seal.sealed_sums_sha256),
        "edition's digest": (statement.edition_sha256, seal.edition_sha256),
        "profile's digest": (statement.profile_sha256, seal.profile_sha256),
        "profile": (statement.profile, edition.profile),
        "label commitment": ((statement.labels,), seal.labels),
        "GPU rule": (statement.gpu, edition.gpu),
        "quota": (statement.quota, edition.quota),
        "submission limit": (statement.submissions, edition.submissions),
        "scorer": (statement.scorer, f"{edition.scorer.name} {edition.scorer.version}"),
        "opening": (statement.opens, edition.opens),
        "closing": (statement.closes, edition.closes),
        "consumer": (statement.consumer, edition.consumer),
    }


def check_published_keys(
    findings: Findings, seal: SealDocument, *, keyset: Keyset | None, sequence: int
) -> None:
    """Check that the seal published the keys that were in force in the log (check 14)."""
    if keyset is None:
        ids = ", ".join(f"{key.role} {key.key_id}" for key in seal.keys)
        findings.note(Check.PUBLISHED_KEYS, f"no log is here; {seal.edition} published {ids}")
        return
    known = {period.key: period.since for period in keyset.periods}
    for key in seal.keys:
        findings.require(
            Check.PUBLISHED_KEYS,
            known.get(key, sequence + 1) <= sequence,
            f"edition {seal.edition}: its {key.role} key {key.key_id[:16]} is not the log's",
        )
    roles = sorted(key.role for key in seal.keys)
    if roles != ["log", "run", "scorer"]:
        findings.fault(Check.PUBLISHED_KEYS, f"edition {seal.edition}: publishes keys for {roles}")


def check_ciphertexts(findings: Findings, folder: Folder, *, expected_clips: int) -> None:
    """Compare the sealed clips with `sealed.sha256`, both ways (check 15)."""
    with findings.judging(Check.CIPHERTEXTS):
        data = folder.read(SEALED_SUMS_FILE)
        listed = parse_sums(data, source=f"{folder.place}/{SEALED_SUMS_FILE}").by_name()
        if len(listed) != expected_clips:
            findings.fault(
                Check.CIPHERTEXTS,
                f"{folder.place}: {len(listed)} ciphertexts, sealed were {expected_clips} clips",
            )
        found = {n: d for n, d in folder.digests.items() if n.startswith(f"{SEALED_FOLDER}/")}
        if not found:
            findings.note(Check.CIPHERTEXTS, "the ciphertexts are not part of what was given")
            return
        compare_listing(findings, Check.CIPHERTEXTS, place=folder.place, listed=listed, found=found)


def sealed_clip_ids(folder: Folder) -> frozenset[str]:
    """Return the opaque names of the clips. Raises MalformedDocument."""
    data = folder.read(SEALED_SUMS_FILE)
    names = parse_sums(data, source=f"{folder.place}/{SEALED_SUMS_FILE}").by_name()
    return frozenset(name.removeprefix(f"{SEALED_FOLDER}/").removesuffix(".age") for name in names)
