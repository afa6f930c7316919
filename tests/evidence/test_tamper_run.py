"""Single changes to a run's folder, by somebody without a key: each found, and by the right check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.evidence.rules.catalogue import Check
from orchestrator.runs.rules.run_files import SUMS
from tests.support.bundle_edits import (
    Files,
    edited_json,
    pack,
    rederived,
    resummed,
)
from tests.support.bundle_story import (
    Story,
    copied_run,
    doubled_key,
    resummed_run,
    shared,
    swap_folders,
    swapped,
    with_run_lines,
)
from tests.support.synthetic_evidence import (
    failed,
    verify,
)


@pytest.fixture(scope="module")
def story() -> Story:
    return shared()


Tamper = Callable[[Story], Files]

TAMPERS: dict[str, tuple[Check, Tamper]] = {
    # a run, by an outsider
    "a record's outcome edited": (
        Check.SIGNATURE,
        lambda s: resummed_run(
            s,
            "crashed",
            "run.json",
            edited_json(
                s.files[s.run("crashed", "run.json")], lambda d: d.update(outcome="completed")
            ),
        ),
    ),
    "a record's outcome edited, unlisted": (
        Check.LISTING,
        lambda s: s.with_json(
            s.run("crashed", "run.json"), lambda d: d.update(outcome="completed")
        ),
    ),
    "predictions of two runs exchanged": (
        Check.KEPT,
        lambda s: resummed(
            swapped(
                s.files, s.run("first", "predictions.jsonl"), s.run("voided", "predictions.jsonl")
            )
        ),
    ),
    "cards of two runs exchanged": (
        Check.LISTING,
        lambda s: resummed(
            swapped(s.files, s.run("first", "score.json"), s.run("second", "score.json"))
        ),
    ),
    "two runs' folders exchanged": (Check.RECORD, lambda s: swap_folders(s, "first", "second")),
    "two runs' folders exchanged, seen in the files": (
        Check.KEPT,
        lambda s: swap_folders(s, "first", "second"),
    ),
    "a run's folder dropped": (Check.RUNS, lambda s: s.without(f"runs/{s.id('first')}/")),
    "a run that failed dropped": (Check.RUNS, lambda s: s.without(f"runs/{s.id('crashed')}/")),
    "a run's folder copied": (Check.RUNS, copied_run),
    "a card's digit changed": (
        Check.LISTING,
        lambda s: s.with_json(
            s.run("first", "score.json"), lambda d: d["public"].update(top1=0.99)
        ),
    ),
    "a signature of another run": (
        Check.SIGNATURE,
        lambda s: s.with_file(
            s.run("first", "SHA256SUMS.sig"), s.files[s.run("second", "SHA256SUMS.sig")]
        ),
    ),
    "a signature with a space": (
        Check.SIGNATURE,
        lambda s: s.with_file(
            s.run("first", "SHA256SUMS.sig"), b" " + s.files[s.run("first", "SHA256SUMS.sig")]
        ),
    ),
    "a signature dropped": (Check.SIGNATURE, lambda s: s.without(s.run("first", "SHA256SUMS.sig"))),
    "the sums dropped": (
        Check.LISTING,
        lambda s: resummed({n: d for n, d in s.files.items() if n != s.run("first", SUMS)}),
    ),
    "an envelope of another run": (
        Check.ENVELOPE,
        lambda s: s.with_file(
            s.run("second", "run.dsse.json"), s.files[s.run("crashed", "run.dsse.json")]
        ),
    ),
    "an envelope dropped": (Check.ENVELOPE, lambda s: s.without(s.run("first", "run.dsse.json"))),
    "a key twice in an envelope of a run": (
        Check.ENVELOPE,
        lambda s: s.with_file(
            s.run("first", "run.dsse.json"),
            doubled_key(s.files[s.run("first", "run.dsse.json")], "payload"),
        ),
    ),
    "a private line dropped": (
        Check.LISTING,
        lambda s: s.with_file(
            s.run("first", "private.sha256"), s.files[s.run("first", "private.sha256")][67:]
        ),
    ),
    "a file added to a run": (
        Check.LISTING,
        lambda s: s.with_file(s.run("first", "more.txt"), b"more\n"),
    ),
    "a run's line doubled": (
        Check.LISTING,
        lambda s: with_run_lines(s, lambda lines: lines.insert(1, lines[0])),
    ),
    "a run's line malformed": (
        Check.LISTING,
        lambda s: with_run_lines(s, lambda lines: lines.append(b"no line\n")),
    ),
    "a run's line with a path that climbs out": (
        Check.LISTING,
        lambda s: with_run_lines(s, lambda lines: lines.append(b"0" * 64 + b"  zz/../../x\n")),
    ),
    "a run's line in capitals": (
        Check.LISTING,
        lambda s: with_run_lines(s, lambda lines: lines.__setitem__(0, lines[0].upper())),
    ),
    "a run's lines with carriage returns": (
        Check.LISTING,
        lambda s: s.with_file(
            s.run("first", SUMS), s.files[s.run("first", SUMS)].replace(b"\n", b"\r\n")
        ),
    ),
    "later cards dropped": (Check.CARD, lambda s: s.without(s.run("first", "scores/"))),
    "later cards moved to another run": (
        Check.CARD,
        lambda s: rederived(
            {
                n.replace(s.run("first", "scores/"), s.run("second", "scores/")): d
                for n, d in s.files.items()
            }
        ),
    ),
    "the card dropped": (
        Check.CARD,
        lambda s: resummed({n: d for n, d in s.files.items() if n != s.run("first", "score.json")}),
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
