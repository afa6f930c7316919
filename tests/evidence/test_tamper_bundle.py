"""Single changes to what a bundle derives from its other files, and any byte of any file: each found, and by the right check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.evidence.rules.bundle import BUNDLE_FILE
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.runs.rules.run_files import SUMS
from tests.support.bundle_edits import (
    Files,
    flipped,
    pack,
    resummed,
    top_of,
)
from tests.support.bundle_story import Story, key_name, shared, with_sum_lines
from tests.support.synthetic_evidence import (
    failed,
    verify,
)


@pytest.fixture(scope="module")
def story() -> Story:
    return shared()


Tamper = Callable[[Story], Files]

TAMPERS: dict[str, tuple[Check, Tamper]] = {
    # what follows from the rest
    "bundle.json's runs edited": (
        Check.DERIVED,
        lambda s: s.with_json(BUNDLE_FILE, lambda d: d["runs"].pop()),
    ),
    "bundle.json's size edited": (
        Check.DERIVED,
        lambda s: s.with_json(BUNDLE_FILE, lambda d: d.update(statements=3)),
    ),
    "bundle.json says it is of one run": (
        Check.DERIVED,
        lambda s: s.with_json(BUNDLE_FILE, lambda d: d.update(of="run")),
    ),
    "bundle.json dropped": (
        Check.DERIVED,
        lambda s: resummed({n: d for n, d in s.files.items() if n != BUNDLE_FILE}),
    ),
    "a key replaced": (
        Check.DERIVED,
        lambda s: s.with_file(key_name(s, "run"), s.files[key_name(s, "scorer")]),
    ),
    "a key dropped": (Check.DERIVED, lambda s: s.without(key_name(s, "log"))),
    "a key added": (
        Check.DERIVED,
        lambda s: s.with_file("keys/run-0000000000000000.pem", s.files[key_name(s, "scorer")]),
    ),
    "the recipe says yes to all": (Check.DERIVED, lambda s: s.with_file("check.sh", b"exit 0\n")),
    "the recipe's text edited": (Check.DERIVED, lambda s: s.with_file("CHECK.md", b"trust me\n")),
    "a stray file": (Check.DERIVED, lambda s: s.with_file("more.txt", b"more\n")),
    "a run's log added": (
        Check.DERIVED,
        lambda s: s.with_file(s.run("first", "log.age"), b"age\n"),
    ),
    "the private card added": (
        Check.DERIVED,
        lambda s: s.with_file(s.run("first", "score.private.json"), b"{}\n"),
    ),
    "the bundle's sums dropped": (
        Check.BUNDLE,
        lambda s: {n: d for n, d in s.files.items() if n != SUMS},
    ),
    "a line of the bundle's sums dropped": (
        Check.BUNDLE,
        lambda s: with_sum_lines(s, lambda lines: lines.pop()),
    ),
    "a line added to the bundle's sums": (
        Check.BUNDLE,
        lambda s: with_sum_lines(s, lambda lines: lines.append(b"0" * 64 + b"  zz\n")),
    ),
    "the bundle's sums out of order": (
        Check.BUNDLE,
        lambda s: with_sum_lines(s, lambda lines: lines.reverse()),
    ),
}


@pytest.mark.parametrize("name", TAMPERS)
def test_a_change_is_found_by_the_check_that_is_meant_for_it(
    name: str, story: Story, tmp_path: Path
) -> None:
    check, tamper = TAMPERS[name]
    changed = tamper(story)
    assert changed != story.files
    report = verify(pack(changed, tmp_path / "bundle.tar"))
    assert check in failed(report)
    assert not report.holds


def test_the_untouched_bundle_holds(story: Story, tmp_path: Path) -> None:
    path = pack(story.files, tmp_path / "bundle.tar", top=top_of(story.files))
    assert failed(verify(path)) == set()


def test_a_changed_byte_in_any_file_is_found_by_the_sums(story: Story, tmp_path: Path) -> None:
    for name, data in story.files.items():
        changed = {**story.files, name: flipped(data, len(data) // 2)}
        report = verify(pack(changed, tmp_path / "bundle.tar"))
        assert Check.BUNDLE in failed(report), name


def test_a_changed_byte_in_any_file_is_found_without_the_sums(story: Story, tmp_path: Path) -> None:
    for name, data in story.files.items():
        if name != SUMS:
            changed = resummed({**story.files, name: flipped(data, len(data) // 2)})
            found = failed(verify(pack(changed, tmp_path / "bundle.tar")))
            assert found - {Check.BUNDLE}, name
