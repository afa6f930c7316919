"""Checks 2 and 18: sums and files name each other, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from manifests.sums import parse_sums
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.runs.rules.run_files import PRIVATE_SUMS, SUMS, UNLISTED, is_private


def compare_listing(
    findings: Findings,
    check: Check,
    *,
    place: str,
    listed: Mapping[str, str],
    found: Mapping[str, str],
    may_be_absent: AbstractSet[str] = frozenset(),
) -> None:
    """Compare a list of digests with the files that are there, both ways."""
    for name in sorted(listed.keys() | found.keys()):
        if name not in listed:
            findings.fault(check, f"{place}/{name}: is there, but not listed")
        elif name in found:
            findings.require(
                check,
                listed[name] == found[name],
                f"{place}/{name}: SHA-256 {found[name][:16]}…, listed is {listed[name][:16]}…",
            )
        elif name not in may_be_absent:
            findings.fault(check, f"{place}/{name}: is listed, but missing")


def check_listing(findings: Findings, folder: Folder) -> dict[str, str] | None:
    """Check a signed folder's lists (check 18); return what `SHA256SUMS` lists.

    `SHA256SUMS` lists the public files, `private.sha256` the private ones, which may be absent:
    they stay with the organizer.
    """
    public: dict[str, str] | None = None
    private: dict[str, str] = {}
    with findings.judging(Check.LISTING):
        public = parse_sums(folder.read(SUMS), source=f"{folder.place}/{SUMS}").by_name()
    if public is None:
        return None
    if PRIVATE_SUMS in folder.digests:
        with findings.judging(Check.LISTING):
            source = f"{folder.place}/{PRIVATE_SUMS}"
            private = parse_sums(folder.read(PRIVATE_SUMS), source=source).by_name()
    misplaced = [n for n in public if is_private(n)] + [n for n in private if not is_private(n)]
    for name in misplaced:
        findings.fault(Check.LISTING, f"{folder.place}/{name}: stands in the other list")
    found = {name: digest for name, digest in folder.digests.items() if name not in UNLISTED}
    compare_listing(
        findings,
        Check.LISTING,
        place=folder.place,
        listed=public | private,
        found=found,
        may_be_absent=private.keys(),
    )
    return public


def check_bundle_listing(findings: Findings, bundle: Folder) -> None:
    """Check the bundle's own `SHA256SUMS` against every file in it (check 2)."""
    listed: dict[str, str] | None = None
    with findings.judging(Check.BUNDLE):
        listed = parse_sums(bundle.read(SUMS), source=f"{bundle.place}/{SUMS}").by_name()
    if listed is None:
        return
    found = {name: digest for name, digest in bundle.digests.items() if name != SUMS}
    compare_listing(findings, Check.BUNDLE, place=bundle.place, listed=listed, found=found)
