"""What an auditor is told: every check by its number, what was compared, and what was not."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.digests import sha256_hex
from manifests.errors import MalformedDocument
from manifests.statements import RunScored
from orchestrator.evidence.rules.catalogue import Check, markdown_table
from orchestrator.evidence.rules.check_quota import QuotaCount
from orchestrator.evidence.rules.findings import MAX_FAULTS, Findings, Result
from orchestrator.evidence.verify import Report
from orchestrator.scoring.rules import scoring
from tests.support.bundle_edits import (
    edited_json,
    entries_of,
    flipped,
    pack,
    parsed,
    relogged,
    resigned_run,
    unpack,
)
from tests.support.synthetic_evidence import (
    EDITION,
    ORIGIN,
    Scenario,
    add_run,
    failed,
    new_scenario,
    salted_labels,
    shared_bundle,
    shared_revealed_bundle,
    shared_story,
    verify,
    void,
)
from tests.support.synthetic_ledger import run_reserved, run_started, run_voided


@pytest.fixture(scope="module")
def story() -> Scenario:
    return shared_story()


@pytest.fixture(scope="module")
def bundle() -> Path:
    return shared_bundle()


def _results(report: Report) -> dict[Check, Result]:
    return {one.check: one.result for one in report.results}


def _notes(report: Report, check: Check) -> str:
    return " ".join(next(one.notes for one in report.results if one.check is check))


def test_checks_are_numbered_without_a_gap_and_named_once() -> None:
    assert [check.number for check in Check] == list(range(1, len(Check) + 1))
    assert len({check.title for check in Check}) == len(Check)


def test_the_readme_lists_the_same_checks() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    heading = "## What verify checks"
    if heading not in readme:
        pytest.skip(f"README.md has no section {heading!r} yet")
    section = readme.split(heading)[1].split("\n## ")[0]
    assert markdown_table() in section


def test_a_bundle_skips_only_what_it_cannot_hold(bundle: Path) -> None:
    skipped = {c for c, r in _results(verify(bundle)).items() if r is Result.SKIPPED}
    assert skipped == {
        Check.ANCHOR,
        Check.COLUMNS,
        Check.OLDER,
        Check.TILES,
        Check.CIPHERTEXTS,
        Check.REVEAL,
        Check.PRIVATE_CARD,
        Check.RESCORE,
    }


def test_a_workspace_skips_only_what_it_cannot_hold(story: Scenario) -> None:
    skipped = {c for c, r in _results(verify(story.root)).items() if r is Result.SKIPPED}
    assert skipped == {
        Check.BUNDLE,
        Check.DERIVED,
        Check.ANCHOR,
        Check.OLDER,
        Check.TILES,
        Check.REVEAL,
        Check.RESCORE,
    }


def test_every_skipped_check_says_why(bundle: Path) -> None:
    skipped = [one for one in verify(bundle).results if one.result is Result.SKIPPED]
    assert all(one.notes and one.compared == 0 for one in skipped)


def test_nothing_is_passed_without_a_comparison(bundle: Path, story: Scenario) -> None:
    for path in (bundle, story.root):
        passed = [one for one in verify(path).results if one.result is Result.PASSED]
        assert all(one.compared > 0 for one in passed)


def test_a_run_folder_alone_is_held_against_itself(story: Scenario) -> None:
    report = verify(story.root / "runs" / story.runs["first"])
    assert failed(report) == set()
    results = _results(report)
    compared = (Check.LISTING, Check.SIGNATURE, Check.ENVELOPE, Check.KEPT, Check.PRIVATE_CARD)
    assert {results[check] for check in compared} == {Result.PASSED}
    assert results[Check.RECORD] is Result.SKIPPED
    assert "no log is here" in _notes(report, Check.SIGNATURE)


@pytest.mark.parametrize("file", ["run.json", "predictions.jsonl", "score.json", "SHA256SUMS.sig"])
def test_a_change_to_a_run_folder_alone_is_found(
    file: str, story: Scenario, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(story.root / "runs" / story.runs["first"], tmp_path / "run"))
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(flipped(data, len(data) // 2))
    assert failed(verify(folder)) & {Check.LISTING, Check.SIGNATURE}


def test_a_run_folder_alone_is_held_against_a_key_that_is_given(story: Scenario) -> None:
    assert story.retired is not None
    assert story.retired.run is not None
    folder = story.root / "runs" / story.runs["first"]
    right = story.retired.run.public_key.key_id
    assert failed(verify(folder, key_ids=(right,))) == set()
    assert failed(verify(folder, key_ids=("0" * 64,))) == {Check.ANCHOR}


def test_an_edition_folder_alone_is_held_against_its_seal(story: Scenario, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(story.root / "editions" / EDITION, tmp_path / "edition"))
    assert failed(verify(folder)) == set()
    (folder / "edition.yaml").write_bytes((folder / "edition.yaml").read_bytes() + b"# x\n")
    assert failed(verify(folder)) == {Check.SEAL}
    assert failed(verify(folder, key_ids=("0" * 64,))) == {Check.SEAL, Check.ANCHOR}


def test_labels_are_scored_anew_after_their_commitment_was_checked(
    story: Scenario, bundle: Path
) -> None:
    labels = salted_labels(story)
    report = verify(bundle, labels=labels)
    assert failed(report) == set()
    rescored = next(one for one in report.results if one.check is Check.RESCORE)
    assert rescored.compared == 4  # the commitment, and the first cards of three runs
    assert "labels-v2 are not here" in " ".join(rescored.notes)


def test_labels_that_nobody_committed_to_are_not_even_parsed(bundle: Path, story: Scenario) -> None:
    other = salted_labels(story).replace(b"glosses", b"glossed")
    report = verify(bundle, labels=other)
    assert failed(report) == {Check.RESCORE}
    assert "no edition here is committed" in " ".join(
        next(one.faults for one in report.results if one.check is Check.RESCORE)
    )


def test_revealed_labels_are_used_without_being_given() -> None:
    report = verify(shared_revealed_bundle())
    assert failed(report) == set()
    assert _results(report)[Check.REVEAL] is Result.PASSED
    rescored = next(one for one in report.results if one.check is Check.RESCORE)
    assert rescored.compared == 6  # two commitments, three first cards, one later one


def test_a_card_that_an_insider_made_up_is_found_by_scoring_anew(
    story: Scenario, bundle: Path, tmp_path: Path
) -> None:
    """Card, row and log agree, every signature is right: only the labels tell."""
    files, run_id = unpack(bundle), story.runs["second"]
    name = f"runs/{run_id}/score.json"

    def better(card: dict[str, dict[str, float]]) -> None:
        card["public"]["top1"] = 0.999

    files[name] = edited_json(files[name], better)
    digest = sha256_hex(files[name])
    statements = [
        s.model_copy(update={"public_sha256": digest, "figures": s.figures | {"top1": 0.999}})
        if isinstance(s, RunScored) and s.run_id == run_id
        else s
        for s in parsed(entries_of(files))
    ]
    assert story.retired is not None
    keys = story.open().signing
    files = relogged(files, statements, keys=story.retired, later_keys=keys, origin=ORIGIN)
    files = resigned_run(files, run_id, keys.signer("run"))
    path = pack(files, tmp_path / "bundle.tar")
    assert failed(verify(path)) == set()
    assert failed(verify(path, labels=salted_labels(story))) == {Check.RESCORE}


def test_another_scorer_is_named_as_such_and_not_as_a_wrong_figure(
    story: Scenario, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = scoring.score
    monkeypatch.setattr(
        "orchestrator.evidence.rules.check_labels.score",
        lambda task: replace(score(task), scorer_string="epee200|numpy:9.9"),
    )
    report = verify(bundle, labels=salted_labels(story))
    faults = " ".join(next(one.faults for one in report.results if one.check is Check.RESCORE))
    assert "another scorer" in faults
    assert "scoring anew gives another" not in faults


def test_a_run_behind_a_later_void_keeps_the_number_it_had(tmp_path: Path) -> None:
    scenario = new_scenario(tmp_path / "workspace")
    add_run(scenario, "first")
    add_run(scenario, "second")
    void(scenario, "first")
    record = (scenario.root / "runs" / scenario.runs["second"] / "run.json").read_text()
    assert '"certified_run": 2' in record
    assert failed(verify(scenario.root)) == set()


def test_a_malformed_checkpoint_of_the_auditor_is_no_finding_but_an_error(bundle: Path) -> None:
    with pytest.raises(MalformedDocument, match="--checkpoint"):
        verify(bundle, older_checkpoint=b"no note")


def test_faults_are_bounded_and_counted() -> None:
    findings = Findings()
    for number in range(MAX_FAULTS + 5):
        findings.fault(Check.KEPT, f"\x1b[2J{number}" + "x" * 1000)
    result = next(one for one in findings.results() if one.check is Check.KEPT)
    assert len(result.faults) == MAX_FAULTS
    assert result.fault_count == MAX_FAULTS + 5
    assert all("\x1b" not in fault and len(fault) <= 300 for fault in result.faults)


def test_runs_of_an_edition_that_was_never_sealed_have_no_quota() -> None:
    findings, quota = Findings(), QuotaCount()
    quota.add(run_reserved("0" * 16))
    quota.add(run_started("0" * 16))
    quota.add(run_voided("0" * 16).model_copy(update={"reason": "  "}))
    quota.judge(findings)
    result = next(one for one in findings.results() if one.check is Check.QUOTA)
    assert result.fault_count == 2


def test_the_table_of_checks_has_a_row_for_each() -> None:
    rows = markdown_table().splitlines()[2:]
    assert [int(re.split(r"\s*\|\s*", row)[1]) for row in rows] == [c.number for c in Check]
