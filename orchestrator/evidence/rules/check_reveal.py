"""Check 16: what was revealed is what was committed to before the first run."""

from __future__ import annotations

from collections.abc import Mapping

from manifests.editions import Track
from manifests.errors import ClaimDoesNotHold
from manifests.labels import parse_salted_labels
from manifests.statements import EditionRevealed, LabelsCommitment
from manifests.sums import parse_sums
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_listing import compare_listing
from orchestrator.evidence.rules.check_seal import REVEALED_FOLDER, sealed_clip_ids
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder

CLIP_SUMS = f"{REVEALED_FOLDER}/clips.sha256"


def check_reveal(
    findings: Findings,
    folder: Folder,
    *,
    clip_set_sha256: str,
    track: Track,
    labels: Mapping[str, LabelsCommitment],
    statement: EditionRevealed | None,
    with_log: bool,
) -> None:
    """Check the revealed files against the statement, the seal and the label commitments."""
    found = {n: d for n, d in folder.digests.items() if n.startswith(f"{REVEALED_FOLDER}/")}
    if statement is None and not found:
        findings.note(Check.REVEAL, "not revealed yet")
        return
    if with_log and statement is None:
        findings.fault(Check.REVEAL, f"{folder.place}: files are revealed, but not by the log")
    if statement is not None:
        compare_listing(
            findings, Check.REVEAL, place=folder.place, listed=statement.files, found=found
        )
    expected = {CLIP_SUMS: clip_set_sha256}
    for version, commitment in labels.items():
        expected[f"{REVEALED_FOLDER}/{version}.jsonl"] = commitment.sha256
    for name, digest in found.items():
        if name not in expected and not with_log:
            findings.note(Check.REVEAL, f"{name}: its commitment is in the log, which is not here")
            continue
        findings.require(
            Check.REVEAL,
            expected.get(name) == digest,
            f"{folder.place}/{name}: not what was committed to",
        )
    with findings.judging(Check.REVEAL):
        _check_clips(folder, track, tuple(labels))


def _check_clips(folder: Folder, track: Track, versions: tuple[str, ...]) -> None:
    """Check that sums and labels are of exactly the sealed clips."""
    clips = sealed_clip_ids(folder)
    source = f"{folder.place}/{CLIP_SUMS}"
    sums = parse_sums(folder.read(CLIP_SUMS), source=source, salted=True).by_name()
    named = {name.rpartition("/")[2].rpartition(".")[0] for name in sums}
    if named != clips or len(sums) != 2 * len(clips):
        raise ClaimDoesNotHold(f"{source}: lists other clips than were sealed")
    for version in versions:
        name = f"{REVEALED_FOLDER}/{version}.jsonl"
        if name not in folder.digests:
            continue
        source = f"{folder.place}/{name}"
        labels = parse_salted_labels(folder.read(name), track=track, source=source)
        if labels.by_clip().keys() != clips:
            raise ClaimDoesNotHold(f"{source}: labels other clips than were sealed")
